"""Build what installs the packages of calls."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from proofbox.service.access.quotas import Quotas
from proofbox.service.app.settings import Settings
from proofbox.service.identity import Principal
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.packages.port import Packages
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import loaded_when_asked, read_roots

_MOUNTED = "mounted"


def mounted_packages(settings: Settings) -> Path | None:
    """The folder that sandboxes read packages from; None if no call gets packages."""
    return _folder(settings) / _MOUNTED if settings.package_index else None


@dataclass(frozen=True, slots=True)
class SandboxParts:
    """What packages need of sandboxes.

    Attributes:
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        image: lists what the sandbox image has, which packages have to fit.
    """

    jobs: JobRunner
    policy: CallPolicy
    image: ImageInventory


def build_packages(
    settings: Settings, quotas: Quotas, sandboxes: SandboxParts, resolve: Resolver
) -> Packages | None:
    """Build what installs packages; None if the operator has no index.

    Args:
        settings: of the service.
        quotas: know what callers may have.
        sandboxes: what packages have to fit, and are compiled in.
        resolve: resolves host names.
    """
    if not settings.package_index:
        return None
    # Their libraries are of the extra `packages`.
    from proofbox.service.packages.bytecode import BytecodeCompiler  # noqa: PLC0415
    from proofbox.service.packages.downloads import Downloads  # noqa: PLC0415
    from proofbox.service.packages.image_target import find_target  # noqa: PLC0415
    from proofbox.service.packages.installer import InstallerParts, PackageInstaller  # noqa: PLC0415
    from proofbox.service.packages.limits import InstallLimits  # noqa: PLC0415
    from proofbox.service.packages.overlays import Overlays  # noqa: PLC0415
    from proofbox.service.packages.places import InstallPlaces  # noqa: PLC0415
    from proofbox.service.packages.resolutions import Resolutions  # noqa: PLC0415
    from proofbox.service.packages.resolver import Index, Resolver, ResolverLimits  # noqa: PLC0415

    index = Index(settings.package_index, settings.package_index_login.get_secret_value())
    count_max = settings.package_call_count_max
    bytes_max, time_s = settings.package_call_bytes_max, settings.package_install_s
    compile_s = settings.package_compile_s
    principal = Principal(settings.tenant, settings.project, settings.user_type, settings.user)
    overlays = Overlays(_folder(settings), _MOUNTED, settings.package_cache_bytes_max)
    parts = InstallerParts(
        Resolver(
            index,
            ResolverLimits(time_s, bytes_max, count_max),
            cache(lambda: read_roots(settings.web_ca_file)),
        ),
        Downloads(index, resolve, settings.package_index_ranges, loaded_when_asked(settings.web_ca_file)),
        overlays,
        Resolutions(overlays.resolutions, index.url, settings.package_resolution_s),
        InstallPlaces(settings.package_installing_max, settings.queue_max, sandboxes.jobs.admission.share_of),
        lambda: find_target(sandboxes.image),
        BytecodeCompiler(sandboxes.jobs, sandboxes.policy, principal, compile_s) if compile_s else None,
    )
    limits = InstallLimits(time_s, bytes_max, settings.package_call_files_max, count_max)
    return PackageInstaller(parts, limits, settings.package_names, quotas.packages)


def _folder(settings: Settings) -> Path:
    return (settings.package_dir or settings.data_dir / "packages").absolute()
