"""Prints who this process is, what it may do and where it can write."""
# ruff: noqa: T201 -- what a probe prints is its answer

import errno
import getpass
import json
import os
from pathlib import Path

status = dict(
    line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines() if ":" in line
)
write_to = {}
for path in ("/opt/proofbox/x", "/usr/x", "/job/x", "/out/x", "/tmp/x"):
    try:
        Path(path).write_text("x", encoding="ascii")
        write_to[path] = None
    except OSError as error:
        write_to[path] = errno.errorcode[error.errno]
print(
    json.dumps(
        {
            "uid_gid_groups": [os.getuid(), os.getgid(), os.getgroups()],
            "user": getpass.getuser(),
            "home": str(Path.home()),
            "capabilities": [status[f"Cap{kind}"].strip() for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
            "no_new_privileges": status["NoNewPrivs"].strip(),
            "seccomp": status["Seccomp"].strip(),
            "write_to": write_to,
        }
    )
)
