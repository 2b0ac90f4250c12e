"""Loads every extension module and library of the virtual environment and prints those that cannot be loaded."""
# ruff: noqa: T201 -- what a probe prints is its answer

import ctypes
import json
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

# Each in a process of its own would take minutes; a library that kills the process takes its hundred with it.
if sys.argv[1:]:
    for path in sys.argv[1:]:
        try:
            ctypes.CDLL(path)
        except OSError as error:
            print(json.dumps([path, str(error)]))
    print(json.dumps("loaded"))
    sys.exit()

packages = Path(sysconfig.get_path("purelib"))
libraries = sorted(str(path) for path in packages.rglob("*.so*") if re.search(r"\.so(\.[\d.]+)?$", path.name))
failed = []
for begin in range(0, len(libraries), 100):
    some = libraries[begin : begin + 100]
    done = subprocess.run([sys.executable, __file__, *some], capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    failed += lines[:-1] if lines[-1:] == ["loaded"] else [[done.returncode, some]]
print(json.dumps({"libraries": len(libraries) > 300, "failed": failed}))
