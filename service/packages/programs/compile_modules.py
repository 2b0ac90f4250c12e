"""Compiles the modules of a folder of packages into one file; a program for a sandbox, whole by itself.

It imports no module of the folder. Modules near the top come first, because the time may not suffice for all; those
of tests are left out. An entry of the file has the lengths of name and bytecode, the name and the bytecode.
"""

import importlib.util
import json
import marshal
import os
import struct
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

ENTRY = struct.Struct(">HI")
_SOURCE_BYTES_MAX = 2 * 1024 * 1024
_TESTS = frozenset({"test", "tests"})
# Valid whatever the source is: it is read-only, and its time is that of its unpacking.
_UNCHECKED_HASH = (1).to_bytes(4, "little")


def find_modules(folder: bytes) -> list[bytes]:
    """List the modules below a folder, relative to it, the most likely ones to be imported first."""
    found = []
    for root, folders, names in os.walk(folder):
        depth = 0 if root == folder else os.path.relpath(root, folder).count(b"/") + 1
        folders[:] = [name for name in folders if not depth or os.fsdecode(name) not in _TESTS]
        found += [
            (depth, os.path.relpath(os.path.join(root, name), folder)) for name in names if name.endswith(b".py")
        ]
    return [path for _, path in sorted(found)]


def compile_module(path: bytes) -> "bytes | None":
    """Return what the file of the module's bytecode holds; None if it cannot be compiled."""
    try:
        with open(path, "rb") as file:
            source = file.read(_SOURCE_BYTES_MAX + 1)
        if len(source) > _SOURCE_BYTES_MAX:
            return None
        code = compile(source, os.fsdecode(path), "exec", dont_inherit=True, optimize=0)
        body = marshal.dumps(code)
    except Exception:  # noqa: BLE001 - of a file that anybody may have written
        return None
    return importlib.util.MAGIC_NUMBER + _UNCHECKED_HASH + importlib.util.source_hash(source) + body


def compile_all(folder: bytes, until: float, bytes_max: int) -> Iterator[bytes]:
    """Yield the entries, as long as time and bytes suffice.

    Args:
        folder: the folder.
        until: when no further module is begun, on the monotonic clock.
        bytes_max: of all entries.
    """
    for name in find_modules(folder):
        if time.monotonic() > until:
            return
        content = compile_module(os.path.join(folder, name))
        if content is None:
            continue
        bytes_max -= ENTRY.size + len(name) + len(content)
        if bytes_max < 0:
            return
        yield ENTRY.pack(len(name), len(content)) + name + content


def run(request: "dict[str, Any]") -> None:
    """Compile what a request names: ``folder``, ``target``, ``time_s``, ``bytes_max``."""
    warnings.simplefilter("ignore")
    until = time.monotonic() + request["time_s"]
    with open(request["target"], "wb") as target:
        target.writelines(compile_all(os.fsencode(request["folder"]), until, request["bytes_max"]))


if __name__ == "__main__":
    run(json.load(sys.stdin))
