"""The engine that the settings choose, wired together; a part of the composition root."""

import hashlib
import json

from service.core.limits import CallLimits
from service.core.tracing import Tracer
from service.engines.containers import Containers
from service.engines.docker.client import EngineClient
from service.engines.docker.container import ContainerSettings
from service.engines.docker.containers import DockerContainers
from service.engines.docker.image import DockerImage
from service.engines.oci.containers import OciContainers, OciSettings
from service.engines.oci.image import ArchiveFile
from service.engines.pooled import PooledEngine, PooledEngineSettings
from service.engines.runner_sandbox import InspectorBounds, StreamBounds
from service.settings import Settings

_ENGINE_THREADS = 16


def service_name(settings: Settings) -> str:
    """Two services on one engine have two data folders, so each sweeps only its own containers."""
    folder = str(settings.data_dir.resolve())
    return settings.service_name or f"proofbox-{hashlib.sha256(folder.encode()).hexdigest()[:12]}"


def sandbox_engine(settings: Settings, limits: CallLimits, boot_id: str, tracer: Tracer) -> PooledEngine:
    """The engine; nothing is started yet.

    Raises:
        OSError: the seccomp profile cannot be read.
    """
    make = {"docker": _docker, "oci": _oci}[settings.engine]
    return PooledEngine(
        make(settings, boot_id),
        PooledEngineSettings(
            boot_id=boot_id,
            default_limits=limits,
            pool_size=settings.pool_size,
            starts_max=settings.starts_max,
            ready_s=settings.ready_s,
            waiting_lifetime_s=settings.waiting_lifetime_s,
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
        ),
        tracer,
    )


def _client(settings: Settings) -> EngineClient:
    return EngineClient(settings.engine_host, settings.engine_timeout_s, _ENGINE_THREADS)


def _docker(settings: Settings, boot_id: str) -> Containers:
    container = ContainerSettings(
        image=settings.image,
        runtime=settings.runtime,
        seccomp_profile=settings.seccomp_profile.read_text(encoding="utf-8"),
        cgroup_parent=settings.cgroup_parent,
        service_name=service_name(settings),
        boot_id=boot_id,
    )
    return DockerContainers(_client(settings), container)


def _oci(settings: Settings, boot_id: str) -> Containers:
    archive = settings.oci_image_archive
    source = ArchiveFile(archive) if archive else DockerImage(_client(settings), settings.image)
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
            start_s=settings.ready_s,
            threads=_ENGINE_THREADS,
        ),
    )
