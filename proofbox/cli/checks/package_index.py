"""Whether the package index of the settings answers the resolver that calls use."""

import asyncio
import platform
import tempfile
from functools import partial
from pathlib import Path

from proofbox.cli.checks.finding import Finding
from proofbox.contracts.codes import ContractCode
from proofbox.service.app.settings import Settings
from proofbox.service.errors import PackageIndexError
from proofbox.service.web.client.tls import read_roots

_WAIT_S = 20.0
_GLIBC_MINOR = 28
_METADATA_BYTES_MAX = 64 * 1024 * 1024
_ASKED = "packaging"


def check_package_index(settings: Settings) -> Finding:
    """Ask the index for a package: the first one that calls may have, or a small one that most indexes have."""
    # Their libraries are of the extra `packages`, which settings with an index need.
    from proofbox.service.packages.refusal import PackageRefusedError  # noqa: PLC0415
    from proofbox.service.packages.resolver import Index, Resolver, ResolverLimits  # noqa: PLC0415
    from proofbox.service.packages.target import Target  # noqa: PLC0415

    index = Index(settings.package_index, settings.package_index_login.get_secret_value())
    limits = ResolverLimits(min(_WAIT_S, settings.package_install_s), _METADATA_BYTES_MAX, 1)
    roots = partial(read_roots, settings.web_ca_file)
    name = settings.package_names[0] if settings.package_names else _ASKED
    target = Target("", platform.python_version(), platform.machine(), _GLIBC_MINOR, {})
    with tempfile.TemporaryDirectory(prefix="proofbox-doctor-") as folder:
        try:
            asyncio.run(Resolver(index, limits, roots).resolve([name], {}, target, Path(folder)))
        except PackageIndexError as exc:
            remedy = "check PROOFBOX_PACKAGE_INDEX, PROOFBOX_PACKAGE_INDEX_LOGIN and the network of this machine"
            if "certificate" in exc.message:
                remedy = "set PROOFBOX_WEB_CA_FILE to the authority of the index, PEM, or correct its certificate"
            return Finding("packages", "warn", exc.message.removeprefix("packages: "), remedy)
        except PackageRefusedError as exc:
            if exc.code is ContractCode.PACKAGE_NOT_FOUND and settings.package_names:
                remedy = "correct PROOFBOX_PACKAGE_NAMES, or have the index offer it"
                return Finding("packages", "warn", f"{index.url} answers, but has no {name}", remedy)
    return Finding("packages", "ok", f"{index.url} answers")
