"""``python -m inventory``: prints what a program finds in this image, as one line of JSON.

``{"python": "3.13.5", "libraries": {name: version}, "commands": [name], "languages": [name], "machine": "x86_64",
"glibc": "2.41"}``, all in the order of their names. Names of libraries are written as package indexes do: in small
letters, with dashes.
"""

import json
import os
import platform
import re
import shutil
import sys
from importlib import metadata

# The command that runs the programs of each language; a language without its command is not there.
INTERPRETERS = {"bash": "bash", "node": "node", "python": "python3"}
_SEPARATORS = re.compile(r"[-_.]+")


def libraries() -> dict[str, str]:
    """The version of each installed library; where two lie on the path, that of the one which is imported."""
    found: dict[str, str] = {}
    for library in metadata.distributions():
        name = library.metadata["Name"]
        if name:  # the folder of a library that was removed may be left, without its facts
            found.setdefault(_SEPARATORS.sub("-", name).lower(), library.version)
    return dict(sorted(found.items()))


def commands() -> list[str]:
    """The names of all programs in the folders of PATH."""
    found: set[str] = set()
    for folder in os.get_exec_path():
        try:
            with os.scandir(folder) as entries:
                found.update(entry.name for entry in entries if entry.is_file() and os.access(entry.path, os.X_OK))
        except OSError:
            continue  # a folder of PATH need not exist
    return sorted(found)


def languages() -> list[str]:
    """The languages whose programs can run."""
    return [language for language, command in INTERPRETERS.items() if shutil.which(command)]


def main() -> int:
    """Prints the inventory; gives the exit status."""
    inventory = {
        "python": platform.python_version(),
        "libraries": libraries(),
        "commands": commands(),
        "languages": languages(),
        "machine": platform.machine(),
        "glibc": platform.libc_ver()[1],
    }
    sys.stdout.write(json.dumps(inventory) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
