"""Names inside archives: would unpacking one of them write outside of the folder?"""

from __future__ import annotations

import re

from model import Problem, quoted

_DRIVE = re.compile(r"[A-Za-z]:")


def refuse_escape(name: str) -> None:
    """Raise the problem of a member that is absolute, climbs, or has a NUL in its name.

    A backslash separates, as it does where many an archive will be unpacked.
    """
    if "\x00" in name:
        raise Problem(f"the archive member {quoted(name)} has a NUL in its name")
    portable = name.replace("\\", "/")
    if portable.startswith("/") or _DRIVE.match(portable) or ".." in portable.split("/"):
        raise Problem(f"the archive member {quoted(name)} would be written outside the folder")


def refuse_link_escape(name: str, target: str) -> None:
    """Raise the problem of a symbolic link that leads, or through another link could lead, out of the folder.

    A target may climb only at its start, and no higher than the folder: a ``..`` after a name depends on what
    that name turns out to be.
    """
    portable = target.replace("\\", "/")
    parts = [part for part in portable.split("/") if part not in {"", "."}]
    climbs = 0
    while climbs < len(parts) and parts[climbs] == "..":
        climbs += 1
    depth = len([part for part in name.split("/")[:-1] if part not in {"", "."}])
    absolute = portable.startswith("/") or _DRIVE.match(portable) is not None
    if absolute or climbs > depth or ".." in parts[climbs:]:
        raise Problem(f"the link {quoted(name)} points outside the folder, to {quoted(target)}")
