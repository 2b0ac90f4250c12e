"""The environment variables and the home folder that a program begins with."""

from __future__ import annotations

import os

OUT_DIR = "/out"
HOME = "/mnt/data"  # the working directory: ~/a.csv is a.csv
_OF_PROGRAMS = "/tmp/home"  # noqa: S108 - the container's own: what libraries would keep in the home folder
_SKELETON = "/opt/proofbox/skel"


def program_variables() -> dict[str, str]:
    """The variables of a program's process; a call adds its own."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": HOME,
        "XDG_CACHE_HOME": f"{_OF_PROGRAMS}/.cache",
        "XDG_CONFIG_HOME": f"{_OF_PROGRAMS}/.config",
        "XDG_DATA_HOME": f"{_OF_PROGRAMS}/.local/share",
        "XDG_STATE_HOME": f"{_OF_PROGRAMS}/.local/state",
        "PYTHONUSERBASE": f"{_OF_PROGRAMS}/.local",
        "TMPDIR": "/tmp",  # noqa: S108 - the container's own
        "OUT_DIR": OUT_DIR,
        "OUTPUT_DIR": OUT_DIR,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONINTMAXSTRDIGITS": "0",  # numbers of any length can be printed; the wall clock bounds the time
    }


def make_home() -> None:
    """Makes the folder of settings and caches, a copy of the image's."""
    _copy(_SKELETON, _OF_PROGRAMS)


def _copy(source: str, target: str) -> None:
    os.mkdir(target)
    try:
        entries = os.scandir(source)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            path = os.path.join(target, entry.name)
            if entry.is_dir():
                _copy(entry.path, path)
            else:
                with open(entry.path, "rb") as read, open(path, "wb") as written:
                    written.write(read.read())
