"""The engine that the settings choose, wired together; a part of the composition root."""

import hashlib
import json
from collections.abc import Callable, Mapping

from proofbox.service.app.packages.wiring import mounted_packages
from proofbox.service.app.settings import Settings
from proofbox.service.observability.metrics_port import Reading
from proofbox.service.observability.tracing import Tracer
from proofbox.service.sandbox.containers import Containers
from proofbox.service.sandbox.docker.image import DockerImage
from proofbox.service.sandbox.engine import PooledEngine, PooledEngineSettings
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.oci.containers import OciContainers, OciSettings
from proofbox.service.sandbox.oci.image import ArchiveFile
from proofbox.service.sandbox.pool import Pool
from proofbox.service.sandbox.pool_sizing import PoolPolicy
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import StreamBounds
from proofbox.service.sandbox.sandbox_users import SandboxUsers
from proofbox.service.sandbox.service_cgroup import TotalLimits
from proofbox.service.storage.private_files import read_folder_id

_ENGINE_THREADS = 16
_POOL_RESERVE_MAX = 2  # unless the operator sets it


def service_name(settings: Settings) -> str:
    """The label of this service's containers: services on one engine each sweep their own, so each has another.

    In containers, the folders of many services have one path; a folder that was copied has the id of the other.

    Raises:
        StoreFailedError: the data folder cannot be used.
    """
    if settings.service_name:
        return settings.service_name
    place = f"{settings.data_dir.resolve()}\n{read_folder_id(settings.data_dir)}"
    return f"proofbox-{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def _pool_reserve(settings: Settings) -> int:
    if settings.pool_reserve is None:
        return min(_POOL_RESERVE_MAX, settings.pool_size // 4)
    return settings.pool_reserve


def sandbox_engine(
    settings: Settings,
    limits: CallLimits,
    boot_id: str,
    load: Callable[[], float] = lambda: 0.0,
    tracer: Tracer | None = None,
    containers: Containers | None = None,
) -> PooledEngine:
    """The engine; nothing is started yet.

    Args:
        settings: of the service.
        limits: of a call that asks for no others.
        boot_id: of this process.
        load: the share of the machine that calls use, 1 for all.
        tracer: of the starts of containers.
        containers: in place of those of the engine that the settings name.

    Raises:
        OSError: the seccomp profile cannot be read.
    """
    build = {"docker": _docker, "oci": _oci}[settings.engine]
    return PooledEngine(
        containers or build(settings, boot_id),
        PooledEngineSettings(
            boot_id=boot_id,
            default_limits=limits,
            pool=PoolPolicy(
                size=settings.pool_size,
                most=max(settings.pool_size, settings.pool_max),
                memory_bytes=settings.pool_memory_bytes,
                starts_max=settings.starts_max,
                age_max_s=settings.waiting_lifetime_s,
                unused_s=settings.pool_unused_s,
                reserve=_pool_reserve(settings),
            ),
            ready_s=settings.ready_s,
            call_lifetime_s=limits.wall_s + settings.overhead_s,
            sweep_every_s=settings.sweep_every_s,
            stream=StreamBounds(
                pass_on_bytes=settings.pass_on_bytes,
                grace_s=settings.lost_grace_s,
                collect_s=settings.collect_s,
            ),
            inspector=InspectorBounds(
                seconds_per_file=settings.inspect_s_per_file,
                image_pixels_max=settings.inspect_image_pixels_max,
                unpacked_bytes_max=settings.inspect_unpacked_bytes_max,
                members_max=settings.inspect_members_max,
                pages_max=settings.inspect_pages_max,
            ),
            users=SandboxUsers(settings.sandbox_user_first, settings.sandbox_users),
        ),
        load,
        tracer=tracer,
    )


def pool_readings(pool: Pool) -> list[Reading]:
    """What is known of the containers that wait."""
    counts = pool.counts

    def of_flavours(
        name: str, what: str, values: Mapping[PreloadSet, float], *, only_grows: bool = False
    ) -> Reading:
        return Reading(
            name, what, ("flavour",), {(flavour,): values[flavour] for flavour in PreloadSet}, only_grows
        )

    def of_none(name: str, what: str, value: float, *, only_grows: bool = False) -> Reading:
        return Reading(name, what, (), {(): value}, only_grows)

    taken: dict[tuple[str, ...], float] = {(wanted, took): count for (wanted, took), count in counts.taken.items()}
    return [
        of_flavours("pool_waiting", "Sandboxes that wait for a call.", {f: pool.waiting(f) for f in PreloadSet}),
        of_flavours(
            "pool_starting", "Sandboxes that are being started.", {f: pool.starting(f) for f in PreloadSet}
        ),
        of_flavours("pool_wanted", "Sandboxes that should wait.", pool.wanted()),
        of_flavours("pool_starts", "Sandboxes that were started.", counts.starts, only_grows=True),
        of_flavours("pool_start_seconds", "How long starting them took.", counts.start_s, only_grows=True),
        Reading(
            "pool_taken",
            "Calls, by the flavour wanted and what they got.",
            ("flavour", "got"),
            taken,
            only_grows=True,
        ),
        of_none("pool_failed_starts", "Starts that failed.", counts.failed, only_grows=True),
        of_none("pool_ended", "Waiting sandboxes that ended or gave no answer.", counts.ended, only_grows=True),
        of_none("pool_memory_bytes", "Memory that waiting sandboxes may take.", pool.policy.memory_bytes),
    ]


def together_readings(engine: PooledEngine) -> list[Reading]:
    """What all sandboxes use together, and may; nothing where that is not in our hands."""
    group = engine.together
    if group is None:
        return []
    memory, pids = group.memory(), group.pids()
    readings = (
        ("sandboxes_memory_bytes", "Memory of all sandboxes together.", memory.used),
        ("sandboxes_memory_limit_bytes", "What it may be; 0: not bounded.", memory.limit),
        ("sandboxes_pids", "Processes and threads of all sandboxes together.", pids.used),
        ("sandboxes_pids_limit", "What they may be; 0: not bounded.", pids.limit),
    )
    return [Reading(name, what, (), {(): value}) for name, what, value in readings]


def _totals(settings: Settings) -> TotalLimits:
    return TotalLimits.of_machine(settings.total_memory_bytes, settings.total_pids, settings.total_cpus)


def _docker(settings: Settings, boot_id: str) -> Containers:
    # The engine's library is 7 MB, which the other engine does without.
    from proofbox.service.sandbox.docker.client import EngineClient  # noqa: PLC0415
    from proofbox.service.sandbox.docker.container_config import ContainerSettings  # noqa: PLC0415
    from proofbox.service.sandbox.docker.containers import DockerContainers  # noqa: PLC0415

    client = EngineClient(settings.engine_host, settings.engine_timeout_s, _ENGINE_THREADS)
    container = ContainerSettings(
        image=settings.sandbox_image,
        runtime=settings.runtime,
        seccomp_profile=settings.seccomp_profile.read_text(encoding="utf-8"),
        cgroup_parent=settings.cgroup_parent,
        totals=_totals(settings),
        service_name=service_name(settings),
        boot_id=boot_id,
        import_once=settings.import_once,
        packages=mounted_packages(settings),
    )
    return DockerContainers(client, container)


def _oci(settings: Settings, boot_id: str) -> Containers:
    archive = settings.oci_image_archive
    engine = settings.engine_host, settings.engine_timeout_s
    source = ArchiveFile(archive) if archive else DockerImage(*engine, settings.sandbox_image)
    return OciContainers(
        source,
        OciSettings(
            runtime=settings.oci_runtime,
            seccomp_profile=json.loads(settings.seccomp_profile.read_text(encoding="utf-8")),
            cgroup_parent=settings.cgroup_parent,
            service_name=service_name(settings),
            boot_id=boot_id,
            cache_dir=settings.oci_cache_dir,
            run_dir=settings.oci_run_dir,
            totals=_totals(settings),
            start_s=settings.ready_s,
            threads=_ENGINE_THREADS,
            import_once=settings.import_once,
            packages=mounted_packages(settings),
        ),
    )
