"""The sandbox image out of a Docker engine, for an engine that runs it without one.

A process of its own asks for it: this one, which never asks again, is spared the library and its memory.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

from proofbox.service.errors import EngineUnavailableError

_PACKAGE_ROOT = Path(__file__).parents[4]
_ASKED_S_MAX = 600.0


class DockerImage:
    """The port `ImageSource` over a Docker engine, which is asked at the start and not after.

    Args:
        host: where the engine answers, as in ``DOCKER_HOST``; empty for that of the environment.
        timeout_s: how long one of its answers may take to begin.
        image: name or id.
    """

    def __init__(self, host: str, timeout_s: float, image: str) -> None:
        self._engine = (host, str(timeout_s))
        self._image = image
        self._image_id = ""

    async def key(self) -> str:
        """See `ImageSource.key`."""
        try:
            self._image_id = await asyncio.to_thread(self._run_export, self._image)
        except EngineUnavailableError as exc:
            raise EngineUnavailableError(
                f"{exc.message}; the engine 'oci' takes its image from there, or from PROOFBOX_OCI_IMAGE_ARCHIVE"
            ) from exc
        return self._image_id.rpartition(":")[2]

    async def archive(self, into: Path) -> Path:
        """See `ImageSource.archive`."""
        archive = into / "image.tar"
        await asyncio.to_thread(self._run_export, self._image_id, str(archive))
        return archive

    def _run_export(self, image: str, *archive: str) -> str:
        """The image's id, once it lies in the archive, if one is named."""
        command = [
            sys.executable,
            "-m",
            "proofbox.service.sandbox.docker.image_export",
            *self._engine,
            image,
            *archive,
        ]
        try:
            done = subprocess.run(  # noqa: S603 - our own program
                command, capture_output=True, text=True, check=True, cwd=_PACKAGE_ROOT, timeout=_ASKED_S_MAX
            )
        except subprocess.CalledProcessError as exc:
            lines = exc.stderr.strip().splitlines()
            raise EngineUnavailableError(lines[-1] if lines else f"the sandbox image was not found: {exc}") from exc
        except subprocess.TimeoutExpired as exc:
            raise EngineUnavailableError(f"the container engine took longer than {_ASKED_S_MAX:.0f} s") from exc
        return done.stdout.strip()
