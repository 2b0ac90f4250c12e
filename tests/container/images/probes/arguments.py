"""Calls that are allowed or refused by their arguments, in both ways, and prints the outcome of each."""
# ruff: noqa: T201 -- what a probe prints is its answer

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import socket
import stat
from collections.abc import Callable
from pathlib import Path

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
ADDR_NO_RANDOMIZE, PER_LINUX32, QUERY = 0x0040000, 0x0008, 0xFFFFFFFF
CLONE = {"x86_64": 56, "aarch64": 220}[platform.machine()]
MSG_ZEROCOPY, PR_SET_SECCOMP, PR_SET_NAME = 0x4000000, 22, 15
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
OPTIONS = {
    "encapsulation": (UDP, socket.IPPROTO_UDP, 100),
    "upper protocol": (TCP, socket.IPPROTO_TCP, 31),
    "signatures": (TCP, socket.IPPROTO_TCP, 14),
    "filter of a socket": (TCP, socket.SOL_SOCKET, 26),
    "filter of a group": (TCP, socket.SOL_SOCKET, 51),
    "zero copy": (TCP, socket.SOL_SOCKET, 60),
    "no delay": (TCP, socket.IPPROTO_TCP, socket.TCP_NODELAY),
}
# Process 1 of the container: the shell that started this probe is replaced by it, so a child plays the caller.
libc = ctypes.CDLL(None, use_errno=True)


def outcome(call: Callable[[], object]) -> str:
    try:
        call()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "allowed"


def checked(result: int) -> int:
    if result == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def clone(flags: int) -> None:
    # A child that comes to life against expectation must not go on with this program.
    if checked(libc.syscall(CLONE, flags | signal.SIGCHLD, 0, 0, 0, 0)) == 0:
        os._exit(0)


def set_option(kind: int, level: int, option: int) -> None:
    with socket.socket(socket.AF_INET, kind) as connection:
        connection.setsockopt(level, option, 1)


def send(flags: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(b"x", flags)


def send_file() -> None:
    with socket.socketpair()[0] as connection, Path("/etc/passwd").open("rb") as file:
        os.sendfile(connection.fileno(), file.fileno(), 0, 10)


def told() -> dict[str, str]:
    return {
        "limits of process 1": outcome(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE)),
        "own limits": outcome(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))),
        "priority of process 1": outcome(lambda: os.setpriority(os.PRIO_PROCESS, 1, 10)),
        "scheduler of process 1": outcome(lambda: os.sched_setscheduler(1, os.SCHED_BATCH, os.sched_param(0))),
        "clone into a user namespace": outcome(lambda: clone(CLONE_NEWUSER)),
        "clone into a network namespace": outcome(lambda: clone(CLONE_NEWNET)),
        "character device": outcome(lambda: os.mknod("/tmp/null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))),
        "whiteout": outcome(lambda: os.mknod("/tmp/whiteout", 0o600 | stat.S_IFCHR, os.makedev(0, 0))),
        "block device": outcome(lambda: os.mknod("/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(254, 0))),
        "named pipe": outcome(lambda: os.mkfifo("/tmp/pipe")),
        "personality without address randomisation": outcome(lambda: checked(libc.personality(ADDR_NO_RANDOMIZE))),
        "32-bit personality": outcome(lambda: checked(libc.personality(PER_LINUX32))),
        "urgent data": outcome(lambda: send(socket.MSG_OOB)),
        "ask for urgent data": outcome(lambda: socket.socketpair()[0].recv(1, socket.MSG_OOB)),
        "send without a copy": outcome(lambda: send(MSG_ZEROCOPY)),
        "send without waiting": outcome(lambda: send(socket.MSG_DONTWAIT)),
        **{name: outcome(lambda o=option: set_option(*o)) for name, option in OPTIONS.items()},
        "filter of calls": outcome(lambda: checked(libc.prctl(PR_SET_SECCOMP, 2, 0, 0, 0))),
        "name of a thread": outcome(lambda: checked(libc.prctl(PR_SET_NAME, b"name", 0, 0, 0))),
        "a file into a socket": outcome(send_file),
        "ask for the personality": outcome(lambda: checked(libc.personality(ctypes.c_ulong(QUERY)))),
    }


child = os.fork()
if child == 0:
    print(json.dumps(told()), flush=True)
    os._exit(0)
os.waitpid(child, 0)
