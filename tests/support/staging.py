"""A staging folder that is there, and the bytes of files on their way."""

from pathlib import Path

from service.file_content import FileBytes, opened


class MadeFolder:
    """The port ``Staging`` over a folder of the test."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def folder(self) -> Path:
        return self._path


def bytes_of(source: FileBytes) -> bytes:
    """What a file has, wherever it is until it is stored."""
    with opened(source) as file:
        return file.read()
