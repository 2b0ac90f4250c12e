"""What the container engine answers about itself and the sandbox image."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import requests
from docker.errors import DockerException, ImageNotFound

from proofbox.service.app.own_image import FOLDER, content_hash
from proofbox.service.app.settings import Settings
from proofbox.service.errors import EngineUnavailableError

_ANSWER_S = 10
_MB = 1_000_000
LABEL_SOURCES = "proofbox.sources"


def engine_address(settings: Settings) -> str:
    """Where the engine is asked, in the form of DOCKER_HOST."""
    return settings.engine_host or os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


@contextmanager
def open_engine(settings: Settings) -> Iterator[docker.DockerClient]:
    """Connect to the engine.

    Raises:
        EngineUnavailableError: it does not answer; the message has its address and the reason.
    """
    try:
        client = docker.DockerClient(base_url=engine_address(settings), version="auto", timeout=_ANSWER_S)
    except (DockerException, requests.RequestException, OSError) as exc:
        raise EngineUnavailableError(f"no engine answers at {engine_address(settings)}: {reason_of(exc)}") from exc
    try:
        yield client
    finally:
        client.close()


def reason_of(exc: BaseException) -> str:
    """The innermost reason of an error, in its own words."""
    while (cause := exc.__cause__ or exc.__context__) is not None:
        exc = cause
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return str(getattr(exc, "explanation", "") or exc)


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """An engine's description of itself.

    Attributes:
        kind: Docker or Podman.
        version: its version.
        runtime: the name of the runtime that starts sandboxes.
        has_runtime: whether it is registered in the engine.
        runc: the version of runc, if the engine names it.
        cgroups: the version of the control groups.
        cgroup_driver: who manages them.
    """

    kind: str
    version: str
    runtime: str
    has_runtime: bool
    runc: str
    cgroups: str
    cgroup_driver: str


def read_facts(client: docker.DockerClient, settings: Settings) -> EngineFacts:
    """Ask the engine."""
    version, info = client.version(), client.info()
    components = {part.get("Name", ""): part.get("Version", "") for part in version.get("Components") or ()}
    runtime = settings.runtime or info.get("DefaultRuntime") or "runc"
    return EngineFacts(
        kind="Podman" if any("podman" in name.lower() for name in components) else "Docker",
        version=str(version.get("Version", "")),
        runtime=runtime,
        has_runtime=runtime in (info.get("Runtimes") or {runtime: {}}),
        runc=components.get("runc", ""),
        cgroups=str(info.get("CgroupVersion") or "1"),
        cgroup_driver=str(info.get("CgroupDriver") or "none"),
    )


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """The sandbox image in use.

    Attributes:
        reference: its name.
        image_id: its id; empty if the engine does not have it.
        size_bytes: its size.
        created: when it was built.
        is_of_this_version: whether it has the files of this version; None if it does not report.
    """

    reference: str
    image_id: str = ""
    size_bytes: int = 0
    created: str = ""
    is_of_this_version: bool | None = None

    @property
    def is_present(self) -> bool:
        """Whether the engine has it."""
        return bool(self.image_id)

    @property
    def sentence(self) -> str:
        """What a person reads."""
        if not self.is_present:
            return f"{self.reference}: the engine does not have it; run 'proofbox image build'"
        short = self.image_id.removeprefix("sha256:")[:12]
        other = {False: ", of another version", None: ", of an unknown version", True: ""}[self.is_of_this_version]
        return f"{self.reference}: {short}, {self.size_bytes // _MB} MB, built {self.created[:10]}{other}"

    def as_json(self) -> dict[str, Any]:
        """All facts."""
        return {
            "reference": self.reference,
            "is_present": self.is_present,
            "id": self.image_id or None,
            "size_bytes": self.size_bytes or None,
            "created": self.created or None,
            "is_of_this_version": self.is_of_this_version,
        }


def find_image(client: docker.DockerClient, settings: Settings) -> ImageFacts:
    """Look the sandbox image up on the engine."""
    reference = settings.sandbox_image
    try:
        found = client.images.get(reference).attrs
    except ImageNotFound:
        return ImageFacts(reference)
    sources = ((found.get("Config") or {}).get("Labels") or {}).get(LABEL_SOURCES)
    return ImageFacts(
        reference,
        str(found["Id"]),
        int(found.get("Size") or 0),
        str(found.get("Created") or ""),
        None if sources is None else sources == content_hash(FOLDER),
    )
