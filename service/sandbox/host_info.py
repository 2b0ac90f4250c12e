"""What this machine has."""

import re
from pathlib import Path

_LINE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)


def meminfo(path: Path = Path("/proc/meminfo")) -> dict[str, int]:
    """The kernel's figures of memory, in bytes by its own names; empty where it has none."""
    try:
        text = path.read_text(encoding="ascii")
    except OSError:
        return {}
    return {name: int(kilobytes) * 1024 for name, kilobytes in _LINE.findall(text)}
