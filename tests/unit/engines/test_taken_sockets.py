"""Sockets taken from another process: here a child of the test, in the control group of both."""

import contextlib
import os
import signal
import socket
import sys
from pathlib import Path

import pytest

from service.engines.docker.taking import LAID_OUT_FD, NotTakenError, taken_socket

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of Linux")
OURS = Path("/proc/self/cgroup").read_text(encoding="utf-8") if sys.platform == "linux" else ""


@contextlib.contextmanager
def process_with(kind=socket.SOCK_STREAM, fd=LAID_OUT_FD):
    """A process that has the end of a pair under that number; yields its number and the other end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(theirs.fileno(), fd)
        os.write(writing, b".")
        signal.pause()
        os._exit(1)
    with ours, theirs:
        os.read(reading, 1)
        theirs.close()
        try:
            yield pid, ours
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reading)
            os.close(writing)


def descriptors():
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def test_what_was_laid_out_is_taken_and_leads_to_its_other_end():
    with process_with() as (pid, other), taken_socket(pid, OURS, socket.SOCK_STREAM) as taken:
        taken.sendall(b"x")
        assert other.recv(1) == b"x"


def test_a_process_of_another_container_is_left_alone():
    with process_with() as (pid, _), pytest.raises(NotTakenError, match="are not those of this machine"):
        taken_socket(pid, "0123456789abcdef", socket.SOCK_STREAM)


def test_a_socket_of_another_type_is_not_taken():
    with (
        process_with(socket.SOCK_SEQPACKET) as (pid, _),
        pytest.raises(NotTakenError, match="has no socket for the service: what is there is another descriptor"),
    ):
        taken_socket(pid, OURS, socket.SOCK_STREAM)


def test_what_is_no_socket_is_not_taken_and_not_kept():
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(reading, LAID_OUT_FD)
        os.write(writing, b".")
        signal.pause()
        os._exit(1)
    os.read(reading, 1)
    before = descriptors()
    try:
        with pytest.raises(NotTakenError, match="what is there is another descriptor"):
            taken_socket(pid, OURS, socket.SOCK_STREAM)
        assert descriptors() == before
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(reading)
        os.close(writing)


def test_a_process_that_lays_nothing_out_is_waited_for_no_longer_than_told():
    with (
        process_with(fd=LAID_OUT_FD + 1) as (pid, _),
        pytest.raises(NotTakenError, match="has no socket for the service: Bad file descriptor"),
    ):
        taken_socket(pid, OURS, socket.SOCK_STREAM, within_s=0.05)


def test_a_process_that_has_ended_has_nothing():
    with process_with() as (pid, _):
        pass
    with pytest.raises(NotTakenError, match="has ended"):
        taken_socket(pid, OURS, socket.SOCK_STREAM)
