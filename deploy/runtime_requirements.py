"""Print the lines of requirements.lock that an installation of the service needs, with its hashes.

    python deploy/runtime_requirements.py EXTRA... >runtime.txt

The lock also names what tests and the sandbox image need. Runs in the environment that `make venv` made, since the
requirements of each package are read from its metadata.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCK = Path(__file__).parents[1] / "requirements.lock"
_TARGET = {"python_version": "3.13", "python_full_version": "3.13.5"}  # of the image


def needed_names(extras: list[str]) -> set[str]:
    """The packages that ``proofbox[EXTRA]`` requires, and all that these require."""
    waiting = [Requirement(f"proofbox[{','.join(extras)}]")]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key in seen:
            continue
        seen.add(key)
        for text in metadata.requires(requirement.name) or ():
            further = Requirement(text)
            extras_here = requirement.extras or {""}
            if further.marker is None or any(
                further.marker.evaluate({**_TARGET, "extra": extra}) for extra in extras_here
            ):
                waiting.append(further)
    return {name for name, _ in seen} - {"proofbox"}


def locked_blocks() -> dict[str, str]:
    """The lines of each package in the lock."""
    blocks = re.split(r"^(?=[a-z0-9])", LOCK.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = (block for block in blocks if "==" in block.partition("\n")[0])
    return {canonicalize_name(re.split(r"[=\[ ]", block, maxsplit=1)[0]): block for block in named}


def main() -> int:
    """Print the lines; 1 if the lock lacks a package."""
    blocks, names = locked_blocks(), needed_names(sys.argv[1:])
    if missing := sorted(names - blocks.keys()):
        sys.stderr.write(f"requirements.lock has no {', '.join(missing)}: run make lock\n")
        return 1
    sys.stdout.write("".join(blocks[name] for name in sorted(names)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
