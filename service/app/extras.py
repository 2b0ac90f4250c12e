"""Extras of the package: what of it needs libraries that a plain installation does not have."""

from importlib.util import find_spec

from proofbox.service.react.memsearch.e5_weights import PACKAGE as MODEL_PACKAGE

EXTRAS = {
    "memory": ("numpy", "onnxruntime", MODEL_PACKAGE),
    "gateway": ("jsonschema_rs", "tzdata"),
    "s3": ("botocore",),
    "postgres": ("psycopg",),
    "packages": ("packaging", "uv"),
    "nats": ("nats", "nkeys"),
    "otlp": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
}
"""The modules that each extra brings; `pyproject.toml` names their packages."""

NO_MEMORY_SEARCH = "memory search is not installed in this service; its operator installs proofbox[memory]"


def missing_modules(extra: str) -> list[str]:
    """List the modules of an extra that are not installed; nothing is imported but their parent packages."""
    return [name for name in EXTRAS[extra] if not _is_installed(name)]


def can_search_memory() -> bool:
    """Return whether memory searches work: without their model they compare words alone."""
    return set(missing_modules("memory")) <= {MODEL_PACKAGE}


def missing_extra(extra: str, setting: str) -> str:
    """Name what a setting lacks, with the command that installs it; empty if its libraries are installed."""
    if missing := missing_modules(extra):
        return f"{setting} needs {', '.join(missing)}, not installed here: run pip install 'proofbox[{extra}]'"
    return ""


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package
        return False
