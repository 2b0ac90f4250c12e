"""The sandbox image out of a Docker engine, for an engine that runs it without one."""

from pathlib import Path

from service.core.errors import EngineUnavailableError
from service.engines.docker.client import EngineClient


class DockerImage:
    """The port `ImageSource` over a Docker engine, which is asked at the start and not after."""

    def __init__(self, client: EngineClient, image: str) -> None:
        self._client = client
        self._image = image
        self._image_id = ""

    async def key(self) -> str:
        """See `ImageSource.key`."""
        try:
            await self._client.connect()
            self._image_id = await self._client.image_id(self._image)
        except EngineUnavailableError as exc:
            raise EngineUnavailableError(
                f"{exc.message}; the engine 'oci' takes its image from there, or from PROOFBOX_OCI_IMAGE_ARCHIVE"
            ) from exc
        return self._image_id.rpartition(":")[2]

    async def archive(self, into: Path) -> Path:
        """See `ImageSource.archive`."""
        archive = into / "image.tar"
        await self._client.save(self._image_id, archive)
        return archive

    async def close(self) -> None:
        """See `ImageSource.close`."""
        await self._client.close()
