"""Skills from a folder of the operator: ``<id>/SKILL.md`` or ``<id>.md``, with front matter or without."""

import asyncio
import os
import re
import stat
from pathlib import Path

from service.core.errors import StoreFailedError
from service.core.skills import SKILL_BYTES_MAX, Skill

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(?P<head>.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"(?P<name>name|description):[ \t]*(?P<value>.*)")
_QUOTES = ('"', "'")


class FolderSkills:
    """The port ``Skills`` over a folder.

    Args:
        folder: the folder; None for no skills at all.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else folder.resolve()

    async def read(self, skill_id: str) -> Skill | None:
        """See `Skills.read`; a symbolic link that leads out of the folder is no skill."""
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
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        raise StoreFailedError(f"the skill {skill_id} cannot be read") from exc
    with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        content = file.read(SKILL_BYTES_MAX + 1)
    if len(content) > SKILL_BYTES_MAX:
        raise StoreFailedError(
            f"the skill {skill_id} is larger than {SKILL_BYTES_MAX} bytes; move its details into files of their own"
        )
    return content.decode(errors="replace")


def _skill(skill_id: str, text: str) -> Skill:
    fields = {"name": skill_id.rpartition("/")[2], "description": ""}
    head = _FRONT_MATTER.match(text)
    if head is not None:
        text = text[head.end() :]
        # A value goes on in the indented lines below it.
        for line in re.sub(r"\r?\n[ \t]+", " ", head["head"]).splitlines():
            if (found := _FIELD.fullmatch(line.rstrip())) and (value := _plain(found["value"])):
                fields[found["name"]] = value
    return Skill(skill_id, fields["name"], fields["description"], text.strip())


def _plain(value: str) -> str:
    value = value.strip().removeprefix(">").removeprefix("|").strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES:
        return value[1:-1]
    return value
