"""Skills from a folder of the operator: ``<id>/SKILL.md`` or ``<id>.md``, with front matter or without."""

import asyncio
import errno
import os
import re
import stat
from pathlib import Path
from typing import Any

from typing_extensions import override

from proofbox.contracts.blocks import TRUNCATED_SUFFIX
from proofbox.service.artifacts.skills import SKILL_BYTES_MAX, Skill, Skills
from proofbox.service.errors import StoreFailedError

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_ABOUT_CHARS_MAX = 1_000
# Nothing there, a file where a folder should be, a name that no file has, a ring of links, a socket.
_NO_FILE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.ENXIO})


class FolderSkills(Skills):
    """The port ``Skills`` over a folder.

    Args:
        folder: the folder; None for no skills at all.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder.resolve()

    @override
    async def read(self, skill_id: str) -> Skill | None:
        return await asyncio.to_thread(self._read, skill_id)

    def _read(self, skill_id: str) -> Skill | None:
        if self._folder is None:
            return None
        for name in (f"{skill_id}/SKILL.md", f"{skill_id}.md"):
            # Resolved first, so that neither .. nor a symbolic link leads out of the folder.
            path = Path(os.path.realpath(self._folder / name))
            if path.is_relative_to(self._folder) and (text := _text(path, skill_id)) is not None:
                return _skill(skill_id, text)
        return None


def _text(path: Path, skill_id: str) -> str | None:
    try:
        # Opened without waiting, so that a FIFO is seen for what it is.
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        if exc.errno in _NO_FILE:
            return None
        raise StoreFailedError(f"the skill {skill_id} cannot be read") from exc
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        content = file.read(SKILL_BYTES_MAX + 1)
    if len(content) > SKILL_BYTES_MAX:
        return content[:SKILL_BYTES_MAX].decode(errors="ignore") + TRUNCATED_SUFFIX
    return content.decode(errors="replace")


def _skill(skill_id: str, text: str) -> Skill:
    head = _FRONT_MATTER.match(text)
    fields = {} if head is None else _fields(head["head"])
    name, description = (str(fields.get(field) or "").strip() for field in ("name", "description"))
    return Skill(
        skill_id,
        name[:_ABOUT_CHARS_MAX] or skill_id.rpartition("/")[2],
        description[:_ABOUT_CHARS_MAX],
        (text if head is None else text[head.end() :]).strip(),
    )


def _fields(head: str) -> dict[Any, Any]:
    """Parse the front matter; empty if it is invalid."""
    import yaml  # noqa: PLC0415 - 1.5 MB that a service without skills is spared

    try:
        fields = yaml.safe_load(head)
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return fields if isinstance(fields, dict) else {}
