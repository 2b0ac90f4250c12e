"""Combinations of settings that cannot work: each rule yields what does not fit, and what to do.

Those without an effect are listed by themselves: a service works with them.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofbox.contracts.network import Endpoint
from proofbox.service.app.extras import missing_extra

if TYPE_CHECKING:
    from proofbox.service.app.settings import Settings

_S3_NEEDS_BUCKET = ("s3_prefix", "s3_endpoint", "s3_link_endpoint", "s3_region", "s3_access_key", "s3_secret_key")
_LIBRECHAT = ("librechat_key_file", "librechat_issuer", "librechat_audience")
_NATS_CREDENTIALS = ("nats_credentials_file", "nats_nkey_file", "nats_token", "nats_user")
_OCI = ("oci_runtime", "oci_image_archive")
_BARE_BYTES = 16 * 1024 * 1024  # what a waiting container counts
_GVISOR = "runsc"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Settings that do not fit together.

    Attributes:
        settings: their names.
        message: what does not fit, with values, and what to do.
    """

    settings: tuple[str, ...]
    message: str


Rule = Callable[["Settings"], Iterator[Conflict]]


def _extras_are_installed(settings: "Settings") -> Iterator[Conflict]:
    needs = (
        ("s3", "s3_bucket", bool(settings.s3_bucket)),
        ("postgres", "database_url", bool(settings.database_url.get_secret_value())),
        ("nats", "dispatch", settings.is_shared),
        ("otlp", "otlp_endpoint", settings.is_traced),
        ("packages", "package_index", bool(settings.package_index)),
    )
    for extra, name, is_needed in needs:
        if is_needed and (message := missing_extra(extra, _variable(name))):
            yield Conflict((name,), message)


def _runtime_is_used(settings: "Settings") -> Iterator[Conflict]:
    if settings.engine == "oci" and settings.runtime:
        yield Conflict(
            ("runtime", "engine"),
            f"PROOFBOX_RUNTIME {settings.runtime} is for the engine docker, PROOFBOX_ENGINE is oci: "
            "set PROOFBOX_OCI_RUNTIME, or PROOFBOX_ENGINE=docker",
        )


def _one_sandbox_fits_into_all(settings: "Settings") -> Iterator[Conflict]:
    for each, total in (("memory_bytes", "total_memory_bytes"), ("pids", "total_pids")):
        if 0 < getattr(settings, total) < getattr(settings, each):
            yield Conflict(
                (total, each),
                f"{_variable(total)} {getattr(settings, total)} is less than what one sandbox may take, "
                f"{_variable(each)} {getattr(settings, each)}: raise the first or lower the second",
            )


def _tmpfs_fits_memory(settings: "Settings") -> Iterator[Conflict]:
    if settings.out_dir_bytes > settings.memory_bytes // 2:
        yield Conflict(
            ("out_dir_bytes", "memory_bytes"),
            f"PROOFBOX_OUT_DIR_BYTES {settings.out_dir_bytes} is over half of PROOFBOX_MEMORY_BYTES "
            f"{settings.memory_bytes}: OUT_DIR counts as memory of its sandbox",
        )


def _s3_is_whole(settings: "Settings") -> Iterator[Conflict]:
    given = [name for name in _S3_NEEDS_BUCKET if _is_changed(settings, name)]
    if given and not settings.s3_bucket:
        yield Conflict(
            (given[0], "s3_bucket"),
            f"{_variable(given[0])} is set and PROOFBOX_S3_BUCKET is not: set both or neither",
        )
    elif bool(settings.s3_access_key) != bool(settings.s3_secret_key.get_secret_value()):
        yield Conflict(
            ("s3_access_key", "s3_secret_key"),
            "PROOFBOX_S3_ACCESS_KEY and PROOFBOX_S3_SECRET_KEY belong together: set both or none",
        )


def _others_need_keys(settings: "Settings") -> Iterator[Conflict]:
    from proofbox.service.app.auth_policy import StartRefusedError, needs_keys  # noqa: PLC0415 - it imports settings

    try:
        needs_keys(settings)
    except StartRefusedError as exc:
        yield Conflict(("auth", "host", "behind_authenticating_proxy"), exc.message)


def _pool_can_fill(settings: "Settings") -> Iterator[Conflict]:
    if settings.pool_size and 0 < settings.pool_memory_bytes < _BARE_BYTES:
        yield Conflict(
            ("pool_memory_bytes", "pool_size"),
            f"PROOFBOX_POOL_MEMORY_BYTES {settings.pool_memory_bytes} is less than one waiting container counts, "
            f"{_BARE_BYTES}: raise it, or set PROOFBOX_POOL_SIZE=0",
        )
    if settings.pool_reserve and not settings.pool_size:
        yield Conflict(
            ("pool_reserve", "pool_size"),
            f"PROOFBOX_POOL_RESERVE is {settings.pool_reserve} and PROOFBOX_POOL_SIZE 0, which disables the pool: "
            "raise the second or unset the first",
        )


def _bodies_fit_memory(settings: "Settings") -> Iterator[Conflict]:
    if settings.body_bytes_max > settings.bodies_bytes_max:
        yield Conflict(
            ("body_bytes_max", "bodies_bytes_max"),
            f"PROOFBOX_BODY_BYTES_MAX {settings.body_bytes_max} is more than PROOFBOX_BODIES_BYTES_MAX "
            f"{settings.bodies_bytes_max} for all bodies together: raise the second or lower the first",
        )


def _gvisor_forks_nothing(settings: "Settings") -> Iterator[Conflict]:
    if settings.import_once == "on" and _GVISOR in settings.runtime:
        yield Conflict(
            ("import_once", "runtime"),
            f"PROOFBOX_IMPORT_ONCE is on, which is impossible with PROOFBOX_RUNTIME {settings.runtime}: "
            "set it to auto or off",
        )


def _settings_have_an_effect(settings: "Settings") -> Iterator[Conflict]:
    if settings.engine == "docker":
        for name in _OCI:
            if _is_changed(settings, name):
                yield Conflict(
                    (name, "engine"),
                    f"{_variable(name)} is for the engine oci, PROOFBOX_ENGINE is docker: unset it, or set "
                    "PROOFBOX_ENGINE=oci",
                )
    if not settings.librechat:
        for name in _LIBRECHAT:
            if _is_changed(settings, name):
                yield Conflict(
                    (name, "librechat"),
                    f"{_variable(name)} is set and PROOFBOX_LIBRECHAT is not: set it to true, or unset the first",
                )


def _secrets_are_for_allowed_hosts(settings: "Settings") -> Iterator[Conflict]:
    allowed = [Endpoint.parse(entry) for entry in settings.sandbox_network]
    for name, secret in settings.sandbox_network_secrets.items():
        for host in secret.hosts:
            if not any(entry.covers(Endpoint.parse(host)) for entry in allowed):
                yield Conflict(
                    ("sandbox_network_secrets", "sandbox_network"),
                    f"PROOFBOX_SANDBOX_NETWORK_SECRETS has {name} for {host}, which PROOFBOX_SANDBOX_NETWORK does "
                    "not allow: add the host there, or remove it here",
                )


def _dispatch_is_used(settings: "Settings") -> Iterator[Conflict]:
    if settings.is_shared:
        return
    for name in ("role", "nats_urls", *_NATS_CREDENTIALS):
        if _is_changed(settings, name):
            yield Conflict(
                (name, "dispatch"),
                f"{_variable(name)} is for PROOFBOX_DISPATCH=nats, which is local: unset it, or set that",
            )


def _audit_files_differ(settings: "Settings") -> Iterator[Conflict]:
    key, heads = settings.audit_files
    files = {"audit_key_file": key, "audit_heads_file": heads, "audit_file": settings.audit_file}
    seen: dict[str, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        other = seen.setdefault(str(path.absolute()), name)
        if other != name:
            yield Conflict(
                (other, name),
                f"{_variable(other)} and {_variable(name)} name one file, {path}: give each its own",
            )


def _many_processes_share_stores(settings: "Settings") -> Iterator[Conflict]:
    if not settings.is_shared:
        return
    needs = {
        "nats_urls": bool(settings.nats_urls),
        "database_url": bool(settings.database_url.get_secret_value()),
        "s3_bucket": bool(settings.s3_bucket),
        "keys_dir": settings.keys_dir is not None,
    }
    for name, is_given in needs.items():
        if not is_given:
            yield Conflict(
                ("dispatch", name),
                f"PROOFBOX_DISPATCH=nats needs {_variable(name)}, which the processes share: set it, or "
                "PROOFBOX_DISPATCH=local",
            )


def _nats_is_whole(settings: "Settings") -> Iterator[Conflict]:
    certificate = settings.nats_certificate_file is None, settings.nats_certificate_key_file is None
    pairs = (
        ("nats_user", "nats_password", bool(settings.nats_user), bool(settings.nats_password.get_secret_value())),
        ("nats_certificate_file", "nats_certificate_key_file", *certificate),
    )
    for one, other, is_one, is_other in pairs:
        if is_one != is_other:
            message = f"{_variable(one)} and {_variable(other)} belong together: set both or none"
            yield Conflict((one, other), message)
    given = [name for name in _NATS_CREDENTIALS if _is_changed(settings, name)]
    for one, other in itertools.pairwise(given):
        yield Conflict((one, other), f"{_variable(one)} and {_variable(other)} are both set: set one")


_ALWAYS: tuple[Rule, ...] = (
    _extras_are_installed,
    _runtime_is_used,
    _one_sandbox_fits_into_all,
    _tmpfs_fits_memory,
    _s3_is_whole,
    _many_processes_share_stores,
    _nats_is_whole,
)
_OF_A_SERVICE: tuple[Rule, ...] = (
    _others_need_keys,
    _bodies_fit_memory,
    _gvisor_forks_nothing,
    _audit_files_differ,
)
_WARNINGS: tuple[Rule, ...] = (
    _pool_can_fill,
    _settings_have_an_effect,
    _dispatch_is_used,
    _secrets_are_for_allowed_hosts,
)


def find_conflicts(settings: "Settings", *, serves: bool) -> list[Conflict]:
    """List the combinations that cannot work.

    Args:
        settings: the settings.
        serves: whether they are for a service; commands that only read the stores need less.
    """
    rules = (*_ALWAYS, *_OF_A_SERVICE) if serves else _ALWAYS
    return [conflict for rule in rules for conflict in rule(settings)]


def find_idle_settings(settings: "Settings") -> list[Conflict]:
    """List the settings of a service that have no effect beside others; it works without them."""
    return [conflict for rule in _WARNINGS for conflict in rule(settings)]


def _variable(name: str) -> str:
    return f"PROOFBOX_{name.upper()}"


def _is_changed(settings: "Settings", name: str) -> bool:
    return bool(getattr(settings, name) != type(settings).model_fields[name].default)
