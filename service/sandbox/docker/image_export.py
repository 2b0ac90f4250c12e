"""Asks a Docker engine for an image.

    python -m proofbox.service.sandbox.docker.image_export HOST TIMEOUT_S IMAGE [ARCHIVE]

An empty HOST is that of the environment. Prints the image's id, and writes the image to ARCHIVE first, as ``docker
save`` does. What goes wrong is the last line of standard error.
"""

import asyncio
import sys
from pathlib import Path

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.docker.client import EngineClient


async def asked(host: str, timeout_s: float, image: str, archive: Path | None) -> str:
    """The image's id; written to ``archive``, if there is one.

    Raises:
        EngineUnavailableError: the engine is not there or has no such image.
    """
    client = EngineClient(host, timeout_s, threads=1)
    try:
        await client.connect()
        image_id = await client.image_id(image)
        if archive is not None:
            await client.save(image_id, archive)
    finally:
        await client.close()
    return image_id


def main(host: str, timeout_s: str, image: str, *archive: str) -> None:
    """Asks, and prints."""
    try:
        print(asyncio.run(asked(host, float(timeout_s), image, Path(archive[0]) if archive else None)))  # noqa: T201
    except EngineUnavailableError as exc:
        sys.exit(exc.message)


if __name__ == "__main__":
    main(*sys.argv[1:])
