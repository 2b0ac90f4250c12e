"""Sockets taken from another process: here a child of the test, in the control group of both."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from proofbox.service.sandbox.docker.direct_socket import (
    LAID_OUT_FD,
    DirectSocketError,
    take_socket,
    take_socket_now,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of Linux")
OURS = Path("/proc/self/cgroup").read_text(encoding="utf-8") if sys.platform == "linux" else ""


@contextlib.contextmanager
def process_holding(fd, number):
    """A process that has a descriptor of this one under that number; yields its own number."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(fd, number)
        if number != LAID_OUT_FD:  # this process may have something of its own there
            with contextlib.suppress(OSError):
                os.close(LAID_OUT_FD)
        os.write(writing, b".")
        signal.pause()
        os._exit(1)
    os.read(reading, 1)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)


@contextlib.contextmanager
def process_with(kind=socket.SOCK_STREAM, number=LAID_OUT_FD):
    """The same with one end of a pair; yields its number and the other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with ours, theirs, process_holding(theirs.fileno(), number) as pid:
        theirs.close()
        yield pid, ours


def descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_what_was_laid_out_is_taken_and_leads_to_its_other_end():
    with process_with() as (pid, other), take_socket_now(pid, OURS, socket.SOCK_STREAM) as taken:
        taken.sendall(b"x")
        assert other.recv(1) == b"x"


async def test_a_socket_that_is_taken_after_its_caller_was_cancelled_is_closed():
    with process_with() as (pid, other):
        taking = asyncio.create_task(take_socket(pid, OURS, socket.SOCK_STREAM))
        await asyncio.sleep(0)  # the thread is at work
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking
        duplicate = other.dup()
    # The process that had laid it out has ended: only an end that was taken and not closed would hold it open.
    with duplicate:
        duplicate.settimeout(10)
        assert await asyncio.to_thread(duplicate.recv, 1) == b""


def test_a_process_of_another_container_is_left_alone():
    with process_with() as (pid, _), pytest.raises(DirectSocketError, match="are not those of this machine"):
        take_socket_now(pid, "0123456789abcdef", socket.SOCK_STREAM)


def test_a_socket_of_another_type_is_not_taken():
    with (
        process_with(socket.SOCK_SEQPACKET) as (pid, _),
        pytest.raises(
            DirectSocketError, match="has no socket for the service: what is there is another descriptor"
        ),
    ):
        take_socket_now(pid, OURS, socket.SOCK_STREAM)


def test_what_is_no_socket_is_not_taken_and_not_kept(tmp_path):
    with (tmp_path / "file").open("w") as file, process_holding(file.fileno(), LAID_OUT_FD) as pid:
        before = descriptors()
        with pytest.raises(DirectSocketError, match="what is there is another descriptor"):
            take_socket_now(pid, OURS, socket.SOCK_STREAM)
        assert descriptors() <= before  # other tests' files may end meanwhile


def test_a_process_that_lays_nothing_out_is_waited_for_no_longer_than_told():
    with (
        process_with(number=LAID_OUT_FD + 1) as (pid, _),
        pytest.raises(DirectSocketError, match="has no socket for the service: Bad file descriptor"),
    ):
        take_socket_now(pid, OURS, socket.SOCK_STREAM, within_s=0.05)


def test_a_process_that_has_ended_has_nothing():
    with process_with() as (pid, _):
        pass
    with pytest.raises(DirectSocketError, match="has ended"):
        take_socket_now(pid, OURS, socket.SOCK_STREAM)
