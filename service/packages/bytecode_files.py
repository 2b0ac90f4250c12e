"""Places the bytecode that a sandbox has compiled beside the modules that it belongs to.

The bytecode is not parsed here, and no path of the sandbox is used: a name counts if a module has it.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from proofbox.service.errors import DISK_FULL
from proofbox.service.packages.programs.compile_modules import ENTRY


def place_bytecode(entries: BinaryIO, folder: Path, python: str, bytes_max: int) -> int:
    """Places bytecode in a folder of packages; ends at the first entry that is not whole.

    Args:
        entries: what `compile_modules` has written, or anything else.
        folder: the packages; nobody else writes to it.
        python: the version of the Python of the image, such as ``3.13.5``.
        bytes_max: of the bytecode of all modules.

    Returns:
        How many modules have got theirs.

    Raises:
        OSError: the disk is full.
    """
    modules = _list_modules(folder)
    suffix = f".cpython-{''.join(python.split('.')[:2])}.pyc"
    placed = 0
    while len(head := entries.read(ENTRY.size)) == ENTRY.size:
        name_bytes, content_bytes = ENTRY.unpack(head)
        bytes_max -= content_bytes
        if bytes_max < 0:
            break
        name, content = entries.read(name_bytes), entries.read(content_bytes)
        if len(content) != content_bytes:
            break
        module = modules.pop(name, None)
        if module is not None and _place(module.parent / "__pycache__" / f"{module.stem}{suffix}", content):
            placed += 1
    return placed


def _list_modules(folder: Path) -> dict[bytes, Path]:
    """The regular files below a folder that end as modules do, by their names relative to it."""
    found = {}
    for root, _, names in os.walk(folder):
        for name in names:
            path = Path(root, name)
            if path.suffix == ".py" and stat.S_ISREG(path.lstat().st_mode):
                found[os.fsencode(path.relative_to(folder))] = path
    return found


def _place(path: Path, content: bytes) -> bool:
    """Writes a file in place of what a package may have brought; False if there can be none of that name.

    Raises:
        OSError: the disk is full; then there is no such file.
    """
    try:
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        if exc.errno in DISK_FULL:
            raise
        return False  # too long with its ending, or the package has a folder or file there
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        path.chmod(0o644)  # whatever the mask of this process is
    except OSError:
        path.unlink()
        raise
    path.parent.chmod(0o755)
    return True
