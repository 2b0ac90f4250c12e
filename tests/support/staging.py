"""A staging folder of the test, and the bytes of files on their way."""

from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

from service.artifacts.staging import Staging
from service.file_content import FileBytes, opened


class MadeFolder(Staging):
    """A ``Staging`` over a folder of the test."""

    def __init__(self, path: Path) -> None:
        super().__init__(lambda: nullcontext(path), AsyncExitStack())


def bytes_of(source: FileBytes) -> bytes:
    """What a file has, wherever it is until it is stored."""
    with opened(source) as file:
        return file.read()
