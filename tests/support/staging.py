"""A staging folder of the test, and saves."""

from contextlib import AsyncExitStack, nullcontext
from pathlib import Path

from proofbox.service.artifacts.port import ArtifactStore, NewSave, StoredArtifact
from proofbox.service.artifacts.staging import Staging


class MadeFolder(Staging):
    """A ``Staging`` over a folder of the test."""

    def __init__(self, path: Path) -> None:
        super().__init__(lambda: nullcontext(path), AsyncExitStack())


async def save_together(artifacts: ArtifactStore, new: NewSave) -> list[StoredArtifact]:
    """Stores what belongs together, without an answer."""
    return await (await artifacts.prepare(new)).store()
