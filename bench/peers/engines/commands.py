"""How the peers that are programs are started."""

import subprocess
from collections.abc import Sequence

SAID_MAX = 300


def run(command: Sequence[str]) -> list[str]:
    """Runs a program in the current folder; gives what it said as warnings.

    Raises:
        RuntimeError: it ended with another status than 0.
    """
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {done.stderr[-SAID_MAX:]}")
    return [line[:SAID_MAX] for line in done.stderr.splitlines()[:20]]
