"""A staging folder that is there."""

from pathlib import Path


class MadeFolder:
    """The port ``Staging`` over a folder of the test."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def folder(self) -> Path:
        return self._path
