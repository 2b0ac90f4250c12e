"""A socket taken from a process in a container on this machine: an engine hands none over."""

import asyncio
import contextlib
import ctypes
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from proofbox.sandbox_images.runner_protocol.descriptors import LAID_OUT_FD

_PIDFD_GETFD = 438  # on every machine
_LOOK_AGAIN_S = 0.01


class DirectSocketError(Exception):
    """No socket was taken; the message has the reason."""


async def take_socket(process: int, container_id: str, kind: socket.SocketKind) -> socket.socket:
    """`take_socket_now` in a thread. When the caller is cancelled meanwhile, the socket is closed.

    Raises:
        DirectSocketError: see `take_socket_now`.
    """
    taking = asyncio.ensure_future(asyncio.to_thread(take_socket_now, process, container_id, kind))
    try:
        return await asyncio.shield(taking)
    except asyncio.CancelledError:
        taking.add_done_callback(_close_when_taken)
        raise


def _close_when_taken(taking: asyncio.Future[socket.socket]) -> None:
    if not taking.cancelled() and taking.exception() is None:
        taking.result().close()


def take_socket_now(
    process: int, container_id: str, kind: socket.SocketKind, within_s: float = 0.0
) -> socket.socket:
    """The socket that a container's first process has laid out; blocks.

    Args:
        process: its number, as this machine counts.
        container_id: whose process it is.
        kind: the type of the socket.
        within_s: how long to wait until it is there.

    Raises:
        DirectSocketError: there is none, or the process is not of that container.
    """
    deadline = time.monotonic() + within_s
    with _opened(process) as pidfd:
        if container_id not in _control_groups(process):
            raise DirectSocketError("the engine's processes are not those of this machine")
        while True:
            fd = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, pidfd, LAID_OUT_FD, 0)
            if fd < 0:
                why = os.strerror(ctypes.get_errno())
            elif (taken := _socket_of(fd, kind)) is not None:
                return taken
            else:
                why = "what is there is another descriptor"
            if time.monotonic() >= deadline:
                raise DirectSocketError(f"the process of a container has no socket for the service: {why}")
            time.sleep(_LOOK_AGAIN_S)


def _socket_of(fd: int, kind: socket.SocketKind) -> socket.socket | None:
    try:
        found = socket.socket(fileno=fd)
    except OSError:  # no socket at all
        os.close(fd)
        return None
    if (found.family, found.type) == (socket.AF_UNIX, kind):
        return found
    found.close()
    return None


@contextlib.contextmanager
def _opened(process: int) -> Iterator[int]:
    try:
        pidfd = os.pidfd_open(process)
    except OSError as exc:
        raise DirectSocketError(
            "the process of a container has ended, or the engine's processes are not those of this machine"
        ) from exc
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def _control_groups(process: int) -> str:
    """Read after its pidfd was opened: while that one can be used, the number is its own."""
    try:
        return Path(f"/proc/{process}/cgroup").read_text(encoding="utf-8")
    except OSError as exc:
        raise DirectSocketError("the process of a container has ended") from exc
