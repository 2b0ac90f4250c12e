"""Calls that are refused where an engine has user namespaces, since the kernel counts them otherwise there."""

import json
from typing import Any

# The kernel counts both for the user that made the namespace as well: root of the machine, or of a rootless engine.
# All containers together, and that user's own programs, would share 128 instances.
_INOTIFY = ("inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch")
_ENOSYS = 38


def own_users_form(profile: str) -> str:
    """The JSON text of a seccomp profile, without inotify: programs then look at files again and again."""
    changed: dict[str, Any] = json.loads(profile)
    for rule in changed["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name not in _INOTIFY]
    refused = {"names": list(_INOTIFY), "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS, "args": []}
    changed["syscalls"].append(refused)
    return json.dumps(changed)
