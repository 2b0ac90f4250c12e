"""Files that their owner alone can read, made by the first process that needs them: keys, the id of a folder."""

import errno
import os
import re
import secrets
from pathlib import Path

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.error_translation import translate_errors

_ID_NAME = "service-id"
_ID_ROLE = "the data folder"
_ID = re.compile(r"[0-9a-f]{12}")
_WITHOUT_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS})


def create_private_file(path: Path, content: bytes) -> None:
    """Make a file unless it exists: of several processes that do so together, one does, and all read its file.

    Args:
        path: the file; its folder is made if need be.
        content: its bytes.

    Raises:
        OSError: it cannot be made.
    """
    fresh = _write_beside(path, content)
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass  # of another process
    except OSError as exc:
        if exc.errno not in _WITHOUT_LINKS:
            raise
        fresh.replace(path)  # a file system without hard links
    finally:
        fresh.unlink(missing_ok=True)


def replace_private_file(path: Path, content: bytes) -> None:
    """Put a file in the place of one of that name, if there is one; readers see either.

    Args:
        path: the file; its folder is made if need be.
        content: its bytes.

    Raises:
        OSError: it cannot be made.
    """
    _write_beside(path, content).replace(path)


def read_folder_id(data_dir: Path) -> str:
    """The id of a data folder, 12 hexadecimal digits, made at the first use.

    Args:
        data_dir: the data folder.

    Raises:
        StoreFailedError: the file cannot be read or made, or is damaged.
        StoreFullError: no space is left.
    """
    path = data_dir / _ID_NAME
    with translate_errors(_ID_ROLE, data_dir):
        if not path.exists():
            create_private_file(path, secrets.token_hex(6).encode())
        found = path.read_text(encoding="ascii", errors="replace").strip()
    if not _ID.fullmatch(found):
        raise StoreFailedError(f"{_ID_ROLE} has a damaged id; remove its file {_ID_NAME}, and a new one is made")
    return found


def _write_beside(path: Path, content: bytes) -> Path:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return fresh
