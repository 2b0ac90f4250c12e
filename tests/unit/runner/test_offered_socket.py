"""The runner's way past an engine: a process that offers a socket, and goes on where it is spoken to."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from proofbox.service.sandbox.docker.direct_socket import DirectSocketError, take_socket_now
from proofbox.service.sandbox.runner.frames import NO_NONCE, Frame, FrameDecoder, encode

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
OURS = Path("/proc/self/cgroup").read_text(encoding="utf-8")
ENDED = 7
# As the runner's main does, and then says of each PING what it sees.
PROGRAM = f"""
import os, sys
sys.path[:0] = [{str(RUNNER)!r}, {str(RUNNER.parent)!r}]
import direct_socket, frames
from proofbox.sandbox_images.runner_protocol import frame_format
channel = frames.Channel(0, 1)
offered = direct_socket.offer_socket()
channel.send(frame_format.READY)
try:
    if offered is not None:
        direct_socket.use_if_chosen(offered, channel)
    while True:
        channel.receive()
        still = os.path.lexists('/proc/self/fd/99')
        channel.send_json(frame_format.PONG, [os.readlink('/proc/self/fd/0').partition(':')[0], still])
except (frames.StreamEndedError, ConnectionError):
    os._exit({ENDED})
"""
PING = encode(Frame.PING, NO_NONCE)


@contextlib.contextmanager
def runner(stream=subprocess.PIPE):
    process = subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=stream, stdout=stream)
    try:
        if stream == subprocess.PIPE:
            assert told(lambda: os.read(process.stdout.fileno(), 99)) == (Frame.READY, b"")
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def told(read):
    [(kind, payload)] = FrameDecoder().feed(read())
    return kind, payload


def pong(read):
    kind, payload = told(read)
    assert kind is Frame.PONG
    return json.loads(payload)


def taken_of(process):
    return take_socket_now(process.pid, OURS, socket.SOCK_STREAM)


def test_spoken_to_on_what_was_taken_it_stays_there_and_ends_with_it():
    with runner() as process:
        with taken_of(process) as taken:
            taken.sendall(PING)
            assert pong(lambda: taken.recv(99)) == ["socket", False]
            process.stdin.close()
            taken.sendall(PING)
            assert pong(lambda: taken.recv(99)) == ["socket", False]
        assert process.wait(60) == ENDED


def test_spoken_to_on_its_standard_input_it_stays_there_and_offers_nothing_any_more():
    with runner() as process:
        os.write(process.stdin.fileno(), PING)
        assert pong(lambda: os.read(process.stdout.fileno(), 99)) == ["pipe", False]
        with pytest.raises(DirectSocketError):
            taken_of(process)
        process.stdin.close()
        assert process.wait(60) == ENDED


def test_a_service_that_took_it_and_died_before_it_spoke_is_seen_to_be_gone():
    with runner() as process:
        taken = taken_of(process)
        process.stdin.close()
        assert process.wait(60) == ENDED
        taken.close()


def test_a_word_that_was_said_counts_although_the_other_stream_has_ended():
    with runner() as process, taken_of(process) as taken:
        taken.sendall(PING)
        process.stdin.close()
        assert pong(lambda: taken.recv(99)) == ["socket", False]


def test_a_stream_that_is_a_socket_already_stays():
    ours, theirs = socket.socketpair()
    with ours, theirs, runner(theirs.fileno()) as process:
        assert told(lambda: ours.recv(99)) == (Frame.READY, b"")
        with pytest.raises(DirectSocketError):
            taken_of(process)
        ours.sendall(PING)
        assert pong(lambda: ours.recv(99)) == ["socket", False]
