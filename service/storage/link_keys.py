"""The keys that sign download links, in a file of the data folder that its owner alone can read."""

import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path

from proofbox.service.artifacts.download_links import LinkKey
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.error_translation import translate_errors

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
                self._write([_fresh()])
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
            self._write([fresh, *valid][:_KEYS_MAX])
        return str(fresh["id"])

    def _read(self) -> list[dict[str, str | float]]:
        try:
            keys: list[dict[str, str | float]] = json.loads(self._path.read_bytes())["keys"]
            _ = keys[0], [bytes.fromhex(str(key["secret"])) for key in keys]
        except (ValueError, LookupError, TypeError) as exc:
            raise StoreFailedError(f"{_ROLE} is damaged; 'proofbox links rotate --at-once' makes another") from exc
        return keys

    def _write(self, keys: list[dict[str, str | float]]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._path.with_name(f".{_NAME}.{secrets.token_hex(_ID_BYTES)}")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps({"keys": keys}).encode())
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(self._path)


def _fresh() -> dict[str, str | float]:
    return {"id": secrets.token_hex(_ID_BYTES), "secret": secrets.token_hex(_SECRET_BYTES)}
