"""How the runner listens to a program: in pieces, in order, and to its end also while nothing else is heard."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pipes and processes of Linux")

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
# In an interpreter of its own: the runner reaps every child that there is. The program is a fork, which has the
# writing ends. Streams rest for longer than the program may take, and nothing but its end has the runner reap it.
SET_UP = f"""
import json, os, select, socket, sys, time
sys.path[:0] = [{str(RUNNER)!r}, {str(RUNNER.parent)!r}]
import frames, program_run as run
from proofbox.sandbox_images.runner_protocol import frame_format
run._REST_S = run._FIRST_REST_S = run._REAP_EVERY_S = 60.0
class Poll:
    asked = 0
    def __init__(self):
        self.real = select.poll()
        self.register, self.modify, self.unregister = self.real.register, self.real.modify, self.real.unregister
    def poll(self, milliseconds):
        Poll.asked += 1
        return self.real.poll(milliseconds)
told_read, told_write = os.pipe()
heard_read, heard_write = os.pipe()
(out, to_out), (err, to_err) = os.pipe(), os.pipe()
job = {{"pass_on_bytes": 1 << 20, "output_bytes": 1 << 20}}
def hear(program, rests_first=True, before=lambda: None):
    pid = os.fork()
    if pid == 0:
        os.close(out)
        os.close(err)
        program()
        os._exit(0)
    os.close(to_out)
    os.close(to_err)
    before()
    launcher = run.Launcher(pid, socket.socketpair()[0].detach(), out, err)
    listening = run.ProgramRun(frames.Channel(heard_read, told_write), launcher, job)
    pidfd, poll = os.pidfd_open(pid), Poll()
    for fd in (out, err, heard_read, pidfd):
        poll.register(fd, select.POLLIN)
    if rests_first:
        listening._rest(poll, run._FIRST_REST_S)
    listening._watch(poll, time.monotonic() + 20)
    listening._drain()
    os.close(told_write)
    said, pieces = os.read(told_read, 1 << 20), []
    while said:
        kind, _, length = frame_format.HEADER.unpack_from(said)
        piece, said = said[frame_format.HEADER.size :][:length], said[frame_format.HEADER.size + length :]
        pieces.append((kind == frame_format.STDERR, piece[1:].decode()))
    print(json.dumps([pieces, listening._timed_out, Poll.asked]))
"""


def heard(program: str):
    done = subprocess.run(
        [sys.executable, "-c", SET_UP + program], capture_output=True, check=True, text=True, timeout=60
    )
    pieces, timed_out, asked = json.loads(done.stdout)
    assert not timed_out
    return [tuple(piece) for piece in pieces], asked


@pytest.mark.parametrize("rests_first", [True, False])
def test_that_a_program_ends_is_heard_while_its_streams_rest(rests_first):
    pieces, _ = heard(
        f"""
def program():
    os.write(to_out, b"printed")
    time.sleep(0.1)
    os.close(to_out)
    os.close(to_err)
hear(program, rests_first={rests_first})
"""
    )
    assert pieces == [(False, "printed")]


def test_what_waits_in_one_stream_comes_before_the_end_of_the_other():
    pieces, _ = heard(
        """
def program():
    os.write(to_out, b"printed")
    os.write(to_err, b"a traceback")
    os.close(to_err)
    time.sleep(0.1)
    os.close(to_out)
hear(program)
"""
    )
    assert pieces == [(False, "printed"), (True, "a traceback")]


def test_the_end_of_a_program_that_has_closed_both_and_runs_on_is_waited_for_without_asking():
    run_on = """
def program():
    os.close(to_out)
    os.close(to_err)
    time.sleep(0.5)
hear(program)
"""
    _, asked = heard(run_on)
    assert asked < 10


def test_a_stream_that_has_ended_is_not_asked_again_while_the_other_goes_on():
    pieces, asked = heard(
        """
def program():
    os.close(to_out)
    for _ in range(5):
        time.sleep(0.1)
        os.write(to_err, b"x")
    os.close(to_err)
hear(program)
"""
    )
    assert ("".join(text for _, text in pieces), asked < 50) == ("xxxxx", True)


@pytest.mark.parametrize("rests_first", [True, False])
def test_a_program_that_had_said_all_before_it_was_listened_to_is_heard(rests_first):
    pieces, _ = heard(
        f"""
def program():
    os.write(to_out, b"printed")
    os.close(to_out)
    os.close(to_err)
    time.sleep(0.2)
hear(program, rests_first={rests_first}, before=lambda: time.sleep(0.1))
"""
    )
    assert pieces == [(False, "printed")]
