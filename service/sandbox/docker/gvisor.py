"""Settings that gVisor, as a runtime of a Docker engine, takes in another form than runc."""

import json
from pathlib import PurePath
from typing import Any

_PROGRAM = "runsc"
_FILTERS = "--oci-seccomp"
# It answers every refusal with EPERM, also those that are to look as if the call did not exist; and the C library
# makes threads without clone3 only where that does not exist, as Node.js copies files without sendfile only where
# that cannot. gVisor's own of both reach nothing but gVisor.
_LET_THROUGH = (["clone3"], ["sendfile"])
# The build of 2022, which Debian has, knows this one by the older name.
_ALSO_NAMED = {"pselect6": "pselect"}

# What it counts as on the machine: its own threads, and for each process of the program some that follow it.
_OWN_TASKS, _TASKS_PER_PROCESS = 64, 6
TOO_MANY_TASKS = 2
"""Its exit code when the machine refuses it one more: it ends, and the sandbox with it."""
_OWN_BYTES = 48 * 1024 * 1024  # what it takes beside what the program does


def is_gvisor(name: str, runtime: dict[str, Any]) -> bool:
    """Whether a runtime, by its name and by the engine's description, is gVisor's."""
    program = PurePath(str(runtime.get("path") or "")).name
    return _PROGRAM in name or program.startswith(_PROGRAM)


def filters_calls(runtime: dict[str, Any]) -> bool:
    """Whether it is started so that it keeps to a seccomp profile, which it does only when it is asked to."""
    return any(str(word).startswith(_FILTERS) for word in runtime.get("runtimeArgs") or ())


def gvisor_form(profile: str) -> str:
    """The JSON text of a seccomp profile, in the form that gVisor keeps to as runc keeps to the given one."""
    parsed: dict[str, Any] = json.loads(profile)
    for rule in parsed["syscalls"]:
        rule["names"] += [_ALSO_NAMED[name] for name in rule["names"] if name in _ALSO_NAMED]
        if rule["names"] in _LET_THROUGH:
            rule["action"] = "SCMP_ACT_ALLOW"
            del rule["errnoRet"]
    return json.dumps(parsed)


def pids_limit(processes: int) -> int:
    """The limit of tasks of a whole gVisor in which a program may have so many processes."""
    return _OWN_TASKS + _TASKS_PER_PROCESS * processes


def memory_limit(memory_bytes: int) -> int:
    """The memory of a whole gVisor in which a program may have so much."""
    return _OWN_BYTES + memory_bytes
