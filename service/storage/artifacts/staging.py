"""Temporary folders for files before they are stored, on the local disk."""

import logging
import shutil
import uuid
from pathlib import Path

_log = logging.getLogger(__name__)


class Staging:
    """Fresh folders below one folder, which is emptied at each start.

    All methods raise OSError for what the file system refuses.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def prepare(self) -> None:
        """Create the folder, without files of an earlier process."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir()

    def stage(self) -> Path:
        """A fresh folder."""
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir(parents=True)
        return folder

    def unstage(self, folder: Path) -> None:
        """Remove a fresh folder; never raises for the file system, the next start tries again."""
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError:
            _log.warning("a staging folder could not be removed", exc_info=True)
