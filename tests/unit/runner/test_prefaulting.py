"""Pages that a fork copies ahead: those that another fork was seen to write to, and no others."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages of Linux")

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
PAGES, WRITTEN = 256, (3, 4, 6, 100, 250)
# In an interpreter of its own, which has one thread: memory that is written to, and forks that write to some of it.
SET_UP = f"""
import ctypes, io, json, mmap, os, sys, time
sys.path.insert(0, {str(RUNNER)!r})
import prefaulting
PAGES, WRITTEN, SIZE = {PAGES}, {WRITTEN}, mmap.PAGESIZE
memory = mmap.mmap(-1, PAGES * SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
memory[:] = bytes([1]) * len(memory)
begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
def write():
    for page in WRITTEN:
        memory[page * SIZE] = 2
def ours(ranges):
    return [((a - begin) // SIZE, (b - begin) // SIZE) for a, b in ranges if begin <= a < begin + len(memory)]
"""


def told(program: str):
    done = subprocess.run([sys.executable, "-c", SET_UP + program], capture_output=True, check=True, text=True)
    return json.loads(done.stdout)


def test_pages_are_those_that_the_work_writes_to_and_one_between_two_of_them():
    found = told("print(json.dumps(ours(prefaulting.written_by(write))))")
    assert found == [[3, 7], [100, 101], [250, 251]]


def test_what_the_work_does_stays_in_its_fork():
    assert told("prefaulting.written_by(write)\nprint(memory[3 * SIZE])") == 1


def test_a_fork_that_copies_ahead_has_pages_of_its_own_before_it_writes():
    program = """
known = prefaulting.written_by(write)
read_fd, write_fd = os.pipe()
for ahead in (False, True):
    if os.fork() == 0:
        if ahead:
            prefaulting.write_ahead(known)
        copied = list(prefaulting._copied([(begin, begin + len(memory))]))
        os.write(write_fd, json.dumps([(a - begin) // SIZE for a, _ in copied]).encode() + b"\\n")
        os._exit(0)
    os.wait()
os.close(write_fd)
with os.fdopen(read_fd) as file:
    print(json.dumps([json.loads(line) for line in file]))
"""
    assert told(program) == [[], [3, 4, 5, 6, 100, 250]]


def test_a_fork_stops_to_copy_when_it_is_called():
    program = """
known = [(begin + page * SIZE, begin + (page + 1) * SIZE) for page in range(0, PAGES, 4)]
if os.fork() == 0:
    asked = []
    prefaulting.write_ahead(known, until=lambda: asked.append(1) or len(asked) > 1)
    copied = list(prefaulting._copied([(begin, begin + len(memory))]))
    print(json.dumps([len(known), len(copied), len(asked)]), flush=True)
    os._exit(0)
os.wait()
"""
    assert told(program) == [64, 16, 2]


@pytest.mark.parametrize(
    "work", ["lambda: 1 / 0", "lambda: os._exit(3)", "lambda: os.abort()", "lambda: time.sleep(1000)"]
)
def test_work_that_fails_or_hangs_leaves_nothing_to_be_copied_and_no_process(work):
    program = f"""
sys.stderr = heard = io.StringIO()
found = prefaulting.written_by({work}, 0.3)
try:
    os.wait()
except ChildProcessError:
    print(json.dumps([found, heard.getvalue()[:26]]))
"""
    assert told(program) == [[], "no pages are copied ahead:"]


def test_memory_that_is_gone_meanwhile_is_no_harm():
    program = "prefaulting.write_ahead([(begin, begin + SIZE), (1 << 46, (1 << 46) + SIZE)])\nprint(memory[0])"
    assert told(program) == 1
