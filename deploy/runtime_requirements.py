"""Write the lines of requirements.lock that an installation of the service needs, with their hashes.

    python deploy/runtime_requirements.py FOLDER EXTRA...

FOLDER gets runtime.txt, with what has wheels, sources.txt, with what is built, and tools.txt, with what builds it.

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
WITHOUT_WHEELS = frozenset({"nkeys"})
"""Pure Python, published as source alone."""
TOOLS = ("setuptools",)
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
    """Write the files; 1 if the lock lacks a package."""
    blocks, names = locked_blocks(), needed_names(sys.argv[2:])
    if missing := sorted({*names, *TOOLS} - blocks.keys()):
        sys.stderr.write(f"requirements.lock has no {', '.join(missing)}: run make lock\n")
        return 1
    parts = {"runtime": names - WITHOUT_WHEELS, "sources": names & WITHOUT_WHEELS, "tools": TOOLS}
    for name, packages in parts.items():
        Path(sys.argv[1], f"{name}.txt").write_text("".join(blocks[package] for package in sorted(packages)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
