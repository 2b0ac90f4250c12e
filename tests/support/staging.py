"""A staging folder of the test."""

from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

from proofbox.service.artifacts.staging import Staging


class MadeFolder(Staging):
    """A ``Staging`` over a folder of the test."""

    def __init__(self, path: Path) -> None:
        super().__init__(lambda: nullcontext(path), AsyncExitStack())
