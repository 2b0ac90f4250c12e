"""The keys that sign download links, in a file of the data folder that its owner alone can read."""

import json
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.error_translation import translate_errors
from proofbox.service.storage.private_files import create_private_file, replace_private_file

_NAME = "link-keys.json"
_ROLE = "the file of the keys of download links"
_SECRET_BYTES = 32
_ID_BYTES = 4
_KEYS_MAX = 8


class LinkKeyFile:
    """The keys; created at the first use, read again when the file was changed.

    Args:
        data_dir: the data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / _NAME
        self._keys: Sequence[LinkKey] = ()
        self._seen: tuple[int, int, int] | None = None

    def in_use(self) -> Sequence[LinkKey]:
        """The keys that are in use, the newest first.

        Raises:
            StoreFailedError: the file cannot be read or created, other users can read it, or it is invalid.
            StoreFullError: no space is left.
        """
        with translate_errors(_ROLE, self._path.parent):
            if not self._path.exists():
                create_private_file(self._path, _encode([_fresh()]))
            found = self._path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size)
            if seen != self._seen:
                if found.st_mode & 0o077:
                    raise StoreFailedError(f"{_ROLE} can be read by others; chmod 600 {_NAME}, and rotate the keys")
                self._keys = [LinkKey(str(key["id"]), bytes.fromhex(str(key["secret"]))) for key in self._read()]
                self._seen = seen
        return self._keys

    def rotate(self, link_s: float, *, at_once: bool) -> str:
        """Sign with a new key from now on; its id.

        Args:
            link_s: how long links that were signed before may still be checked.
            at_once: whether they are refused from now on.

        Raises:
            StoreFailedError: the file cannot be read or made.
        """
        with translate_errors(_ROLE, self._path.parent):
            now = time.time()
            valid = []
            if self._path.exists() and not at_once:
                valid = [{"until": now + link_s, **key} for key in self._read()]
                valid = [key for key in valid if float(key["until"]) > now]
            fresh = _fresh()
            replace_private_file(self._path, _encode([fresh, *valid][:_KEYS_MAX]))
        return str(fresh["id"])

    def _read(self) -> list[dict[str, str | float]]:
        try:
            keys: list[dict[str, str | float]] = json.loads(self._path.read_bytes())["keys"]
            _ = keys[0], [bytes.fromhex(str(key["secret"])) for key in keys]
        except (ValueError, LookupError, TypeError) as exc:
            raise StoreFailedError(f"{_ROLE} is damaged; 'proofbox links rotate --at-once' makes another") from exc
        return keys


def _encode(keys: list[dict[str, str | float]]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def _fresh() -> dict[str, str | float]:
    return {"id": secrets.token_hex(_ID_BYTES), "secret": secrets.token_hex(_SECRET_BYTES)}
