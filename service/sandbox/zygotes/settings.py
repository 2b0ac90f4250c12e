"""The settings of a zygote: what to import, and what its forks have to be."""

import base64
from typing import Any

from proofbox.service.sandbox.hardening import GROUP_ID
from proofbox.service.sandbox.preload import PREIMPORTED, PreloadSet
from proofbox.service.sandbox.zygotes.manager import Kind

ZYGOTE_CAPABILITIES = ("CAP_SYS_ADMIN", "CAP_SYS_CHROOT", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")
"""What entering a container's namespaces and giving up everything takes."""
ZYGOTE_MEMORY_BYTES = 1024 * 1024 * 1024
ZYGOTE_PIDS = 64
ZYGOTE_TMP_BYTES = 16 * 1024 * 1024
_UMASK = 0o022
_PLAIN_FAMILIES = (
    "binary", "delimited", "json_document", "json_lines", "notebook", "python_source", "text", "toml_document",
)  # fmt: skip
_FAMILIES = (
    *_PLAIN_FAMILIES,
    "html", "image", "office.excel", "office.powerpoint", "office.word", "pdf", "svg", "tar_archive", "xml",
    "yaml_document", "zip_archive",
)  # fmt: skip
_RENDERER = (
    "render.frontend.pipeline",
    "render.paged.pdf_writer",
    "render.paged.png_writer",
    "render.docx.writer",
    "render.pptx.writer",
    "render.warm_up",
)


def zygote_command(kind: Kind) -> str:
    """The argument of the program in the image: what the forks of the zygote are."""
    return "programs" if kind.runs_programs else "inspectors"


def zygote_settings(kind: Kind, seccomp: bytes) -> dict[str, Any]:
    """The first message to a zygote; ``seccomp`` is the filter as the kernel takes it."""
    own: tuple[str, ...] = ()
    imports: tuple[str, ...]
    if not kind.runs_programs:
        families = _FAMILIES if kind is Kind.INSPECTOR else _PLAIN_FAMILIES
        imports = ("session", *(f"families.{family}" for family in families))
    else:
        imports = PREIMPORTED[PreloadSet(kind.value)]
        own = _RENDERER if kind is Kind.DOCUMENTS else ()
    return {
        "kind": kind.value,
        "imports": list(imports),
        "own_imports": list(own),
        "runs_programs": kind.runs_programs,
        "group": GROUP_ID,
        "groups": [GROUP_ID],
        "umask": _UMASK,
        "seccomp": base64.b64encode(seccomp).decode("ascii"),
    }
