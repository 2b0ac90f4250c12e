"""The Open XML SDK's own validator, as WebAssembly in Node: many files a start, as a start costs seconds."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

PROGRAM = Path(__file__).with_name("sdk.mjs")


def validate(paths: Sequence[Path], seconds: int) -> dict[Path, list[str]]:
    """The SDK's errors of each file, against Microsoft 365; a file that it cannot open has one that says so."""
    if not paths:
        return {}
    try:
        done = subprocess.run(
            ["node", PROGRAM, *paths],
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            cwd="/opt/readers",
        )
    except subprocess.TimeoutExpired:
        return {path: [f"not validated: the validator needed more than {seconds} s"] for path in paths}
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    said = done.stderr.strip()[-500:]
    return {path: found.get(str(path), [f"not validated: {said}"]) for path in paths}
