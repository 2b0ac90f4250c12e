"""The service as a process of its own, for clients that need real HTTP; imports only the standard library."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
_LISTENS = re.compile(r"running on (http://\S+)")


@contextmanager
def served(folder: Path, python: str = sys.executable, **settings: object) -> Iterator[str]:
    """Runs the service with its data in a folder; gives its URL.

    Args:
        folder: where its data and its log are.
        python: the interpreter of the environment that Proofbox is in.
        settings: settings of the service.
    """
    given = {"data_dir": folder / "data", "port": 0, "pool_size": 2, "import_once": "off", **settings}
    environment = {**os.environ, **{f"PROOFBOX_{name.upper()}": str(value) for name, value in given.items()}}
    log = folder / "service.log"
    with log.open("wb") as output:
        service = subprocess.Popen(
            [python, "-m", "proofbox.cli", "serve"],
            cwd=REPOSITORY,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        while (found := _LISTENS.search(log.read_text())) is None:
            if service.poll() is not None:
                raise RuntimeError(log.read_text())
            time.sleep(0.05)
        yield found[1]
    finally:
        service.terminate()
        service.wait()
