"""What a program has shown, as it wrote that down: all of it is the program's own word."""

from __future__ import annotations

import os
import stat

from frames import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BYTES_MAX = 256 * 1024
_FILES_MAX = 20
_NOTES_MAX = 10
_NAME_CHARS_MAX = 100
_NOTE_CHARS_MAX = 500
_VALUE_CHARS_MAX = 9_000
_VALUE_BYTES_MAX = 64 * 1024


def read(path: str) -> dict[str, Any]:
    """The fields of EXIT for what was shown: names below ``files/``, notes and the last value."""
    shown: dict[str, Any] = {}
    files: list[str] = []
    notes: list[str] = []
    for line in _lines(path):
        try:
            entry = read_json(line)
        except (ValueError, StopIteration, RecursionError):
            continue
        if not isinstance(entry, dict):
            continue
        name, note, value = entry.get("file"), entry.get("note"), entry.get("value")
        if isinstance(name, str) and len(files) < _FILES_MAX and _is_name(name) and name not in files:
            files.append(name)
        if isinstance(note, str) and len(notes) < _NOTES_MAX:
            notes.append("".join(c if c.isprintable() else " " for c in note[:_NOTE_CHARS_MAX]))
        if isinstance(value, str):
            text = value[:_VALUE_CHARS_MAX].encode("utf-8", "replace")[:_VALUE_BYTES_MAX]
            shown["last_value"] = text.decode("utf-8", "replace")
    if files:
        shown["shown"] = files
    if notes:
        shown["shown_notes"] = list(dict.fromkeys(notes))
    return shown


def _is_name(name: str) -> bool:
    return name.isprintable() and 0 < len(name) <= _NAME_CHARS_MAX and "/" not in name and name not in {".", ".."}


def _lines(path: str) -> list[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        return os.read(fd, _BYTES_MAX).split(b"\n")
    finally:
        os.close(fd)
