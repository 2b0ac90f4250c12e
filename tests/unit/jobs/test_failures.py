"""How a run is judged: inputs as the engine and the runner really reported them, and the code of each."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofbox.contracts.codes import RuntimeCode
from proofbox.service.jobs.failures import (
    RuntimeFailure,
    classify,
    left_too_much,
    memory_failure,
    room_failure,
    signal_name,
)
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Collected, OutputPiece, ProcessOutcome, Room

MIB = 1024 * 1024
LIMITS = CallLimits(
    wall_s=3.0,
    cpus=2.0,
    memory_bytes=256 * MIB,
    pids=64,
    out_dir_bytes=64 * MIB,
    out_dir_inodes=2000,
    file_bytes=30 * MIB,
    files=500,
    depth=8,
    output_bytes=10 * MIB,
    artifact_bytes=20 * MIB,
)
OUT = "OUT_DIR holds 67108864 bytes and 2000 files and folders"
TMP = "/tmp holds 134217728 bytes"
SHM = "/dev/shm holds 67108864 bytes"
ROOMS = (
    Room("OUT_DIR", 64 * MIB, is_full=False),
    Room("/tmp", 128 * MIB, is_full=False),
    Room("/dev/shm", 64 * MIB, is_full=False),
)
MEMORY = (
    "was killed: more than 268435456 bytes of memory were needed, files in OUT_DIR, /tmp and /dev/shm counted in"
)

VALUE_ERROR = (
    b'Traceback (most recent call last):\n  File "/job/main.py", line 2, in <module>\n'
    b"    raise ValueError('boo')\nValueError: boo\n"
)
NO_SPACE = (
    b'Traceback (most recent call last):\n  File "/job/main.py", line 1, in <module>\n'
    b"    for i in range(100000): open(f'files/{i}','w')\n                            ~~~~^^^^^^\n"
    b"OSError: [Errno 28] No space left on device: 'files/1996'\n"
)
NO_THREAD = (
    b'  File "/usr/lib/python3.13/threading.py", line 975, in start\n    _start_joinable_thread(self._bootstrap)\n'
    b"RuntimeError: can't start new thread\n"
)
CHILD_DIED = (
    b'  File "/usr/lib/python3.13/subprocess.py", line 577, in run\n    raise CalledProcessError(retcode)\n'
    b"subprocess.CalledProcessError: Command '['python3', '-c', 'x']' died with <Signals.SIGKILL: 9>.\n"
)
FORK = b"/job/main.sh: fork: retry: Resource temporarily unavailable\n" * 2
BASH_FILE = b"/job/main.sh: line 1:     8 File size limit exceededhead -c 60000000 /dev/zero > files/a\n"
BASH_CHILD = b"/job/main.sh: line 1:     8 Segmentation fault      bash -c 'kill -SEGV $$'\n"
TOO_LARGE = b"OSError: [Errno 27] File too large\n"


def full(*places):
    """The places for files, of which some are full."""
    return tuple(replace(room, is_full=room.place in places) for room in ROOMS)


def on_stderr(data):
    """What a program wrote to its standard error, and nothing else."""
    return (OutputPiece("stderr", data),)


@pytest.mark.parametrize(
    ("outcome", "code", "message"),
    [
        (
            ProcessOutcome(exit_code=1, output=on_stderr(VALUE_ERROR)),
            "nonzero_exit",
            "exit status 1: ValueError: boo",
        ),
        (ProcessOutcome(exit_code=3, output=on_stderr(b"no input\n")), "nonzero_exit", "exit status 3: no input"),
        (ProcessOutcome(exit_code=3), "nonzero_exit", "exit status 3"),
        (
            ProcessOutcome(exit_code=139, output=on_stderr(BASH_CHILD)),
            "nonzero_exit",
            f"exit status 139: {BASH_CHILD.decode().strip()}",
        ),
        (ProcessOutcome(signal=11), "killed", "the program was ended by SIGSEGV (signal 11)"),
        (ProcessOutcome(signal=9), "killed", "the program was ended by SIGKILL (signal 9)"),
        (ProcessOutcome(signal=9, oom_kills=1), "out_of_memory", f"the program {MEMORY}"),
        (
            ProcessOutcome(exit_code=1, oom_kills=1, output=on_stderr(CHILD_DIED)),
            "out_of_memory",
            f"a child process of the program {MEMORY}",
        ),
        (ProcessOutcome(exit_code=137, oom_kills=1), "out_of_memory", f"a child process of the program {MEMORY}"),
        (
            ProcessOutcome(exit_code=1, rooms=full("/tmp"), output=on_stderr(NO_SPACE)),
            "disk_limit",
            f"{TMP} and is full: OSError: [Errno 28] No space left on device: 'files/1996'",
        ),
        (
            ProcessOutcome(exit_code=1, rooms=full("OUT_DIR"), output=on_stderr(NO_SPACE)),
            "disk_limit",
            f"{OUT} and is full: OSError: [Errno 28] No space left on device: 'files/1996'",
        ),
        (
            ProcessOutcome(exit_code=1, rooms=full("OUT_DIR")),
            "disk_limit",
            f"{OUT} and is full: no space left",
        ),
        # Shared memory that is full to the last byte is no failure by itself.
        (
            ProcessOutcome(exit_code=1, rooms=full("/dev/shm"), output=on_stderr(VALUE_ERROR)),
            "nonzero_exit",
            "exit status 1: ValueError: boo",
        ),
        (
            ProcessOutcome(signal=7, rooms=full("/dev/shm")),
            "disk_limit",
            (
                f"{SHM} and is full: the program was ended by SIGBUS (signal 7) when it wrote to shared memory "
                "beyond that"
            ),
        ),
        (
            ProcessOutcome(signal=7, rooms=ROOMS),
            "killed",
            (
                "the program was ended by SIGBUS (signal 7): a mapped file was cut short, or found no room to "
                f"grow; {OUT}, {TMP}, {SHM}"
            ),
        ),
        (
            ProcessOutcome(exit_code=1, rooms=ROOMS, output=on_stderr(NO_SPACE)),
            "disk_limit",
            f"{OUT}, {TMP}, {SHM}: OSError: [Errno 28] No space left on device: 'files/1996'",
        ),
        (
            ProcessOutcome(exit_code=1, output=on_stderr(TOO_LARGE)),
            "disk_limit",
            "one file may have 31457280 bytes: OSError: [Errno 27] File too large",
        ),
        (
            ProcessOutcome(exit_code=153, output=on_stderr(BASH_FILE)),
            "disk_limit",
            f"one file may have 31457280 bytes: {BASH_FILE.decode().strip()}",
        ),
        (ProcessOutcome(signal=25), "disk_limit", "one file may have 31457280 bytes: a file grew beyond"),
        (
            ProcessOutcome(exit_code=1, pids_hits=1, output=on_stderr(NO_THREAD)),
            "process_limit",
            "at most 64 processes and threads are allowed: RuntimeError: can't start new thread",
        ),
        (
            ProcessOutcome(exit_code=254, pids_hits=2, output=on_stderr(FORK)),
            "process_limit",
            f"at most 64 processes and threads are allowed: {FORK.decode().splitlines()[-1]}",
        ),
        (
            ProcessOutcome(signal=6, pids_hits=2),
            "process_limit",
            "at most 64 processes and threads are allowed: no more could be started",
        ),
        # Words without the kernel's count, or a count without the words, are another failure.
        (
            ProcessOutcome(exit_code=1, output=on_stderr(NO_THREAD)),
            "nonzero_exit",
            "exit status 1: RuntimeError: can't start new thread",
        ),
        (
            ProcessOutcome(exit_code=1, pids_hits=1, output=on_stderr(VALUE_ERROR)),
            "nonzero_exit",
            "exit status 1: ValueError: boo",
        ),
        (ProcessOutcome(signal=9, timed_out=True), "timeout", "Timeout after 3s"),
        (
            ProcessOutcome(signal=9, timed_out=True, oom_kills=1),
            "out_of_memory",
            (
                f"a child process of the program {MEMORY}; the program waited for it until its wall clock of 3s "
                "ended it"
            ),
        ),
        (
            ProcessOutcome(signal=9, timed_out=True, pids_hits=2, output=on_stderr(FORK)),
            "timeout",
            "Timeout after 3s",
        ),
        (
            ProcessOutcome(signal=9, output_exceeded=True, stdout_bytes=10486476),
            "output_limit",
            "the program wrote more than 10485760 bytes to stdout and stderr and was ended",
        ),
        (
            ProcessOutcome(exit_code=0, output_exceeded=True),
            "output_limit",
            "the program wrote more than 10485760 bytes to stdout and stderr and was ended",
        ),
        (
            ProcessOutcome(lost="the sandbox ended by itself"),
            "sandbox_failed",
            "the sandbox ended by itself; call again under a new tool_call_id",
        ),
        (
            ProcessOutcome(lost="the sandbox ended by itself", lost_to_memory=True),
            "out_of_memory",
            f"the sandbox {MEMORY}",
        ),
        (
            ProcessOutcome(lost="the sandbox ended by itself", lost_to_processes=True),
            "process_limit",
            f"at most {LIMITS.pids} processes and threads are allowed: the sandbox was ended",
        ),
        (
            ProcessOutcome(lost="x", timed_out=True, exit_code=1),
            "sandbox_failed",
            "x; call again under a new tool_call_id",
        ),
    ],
)
def test_every_way_to_fail_has_its_code_and_sentence(outcome, code, message):
    assert classify(outcome, LIMITS) == RuntimeFailure(RuntimeCode(code), message)


@pytest.mark.parametrize(
    "outcome",
    [
        ProcessOutcome(exit_code=0),
        ProcessOutcome(exit_code=0, stdout_bytes=5, output=on_stderr(VALUE_ERROR)),
        ProcessOutcome(exit_code=0, oom_kills=1, pids_hits=3, rooms=full("OUT_DIR")),
    ],
)
def test_a_program_that_ended_well_failed_in_nothing(outcome):
    assert classify(outcome, LIMITS) is None


@pytest.mark.parametrize(("wall_s", "said"), [(30.0, "30s"), (0.5, "0.5s"), (600, "600s"), (1.25, "1.25s")])
def test_a_timeout_says_its_seconds_as_they_were_asked(wall_s, said):
    failure = classify(ProcessOutcome(signal=9, timed_out=True), replace(LIMITS, wall_s=wall_s))
    assert failure == RuntimeFailure(RuntimeCode.TIMEOUT, f"Timeout after {said}")


@pytest.mark.parametrize(
    ("collected", "message"),
    [
        (Collected((), files_exceeded=True), "the program left more than 500 files; the rest was not looked at"),
        (
            Collected((), depth_exceeded=True),
            "the program left folders more than 8 deep; what is below was not looked at",
        ),
    ],
)
def test_a_program_that_left_too_much_is_over_its_disk_limit(collected, message):
    assert left_too_much(collected, LIMITS) == RuntimeFailure(RuntimeCode.DISK_LIMIT, message)
    assert left_too_much(Collected(()), LIMITS) is None


def test_a_child_that_was_killed_for_memory_explains_missing_files_of_a_program_that_ended_well():
    outcome = ProcessOutcome(exit_code=0, oom_kills=1)
    failure = RuntimeFailure(RuntimeCode.OUT_OF_MEMORY, f"a child process of the program {MEMORY}")
    assert memory_failure(outcome, LIMITS) == failure
    assert memory_failure(ProcessOutcome(exit_code=0), LIMITS) is None


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        (ProcessOutcome(exit_code=0, rooms=full("OUT_DIR")), f"{OUT} and was full while the program ran"),
        (ProcessOutcome(exit_code=0, rooms=full("/tmp")), f"{TMP} and was full while the program ran"),
        (ProcessOutcome(exit_code=0, rooms=ROOMS, output=on_stderr(NO_SPACE)), f"{OUT}, {TMP}, {SHM}"),
        (
            ProcessOutcome(exit_code=0, rooms=full("/dev/shm"), output=on_stderr(NO_SPACE)),
            f"{SHM} and was full while the program ran",
        ),
    ],
)
def test_a_place_that_was_full_is_why_files_are_missing_although_the_program_ended_well(outcome, message):
    assert classify(outcome, LIMITS) is None
    failure = RuntimeFailure(RuntimeCode.DISK_LIMIT, f"{message}: files may have found no space left")
    assert room_failure(outcome, LIMITS) == failure


@pytest.mark.parametrize(
    "outcome", [ProcessOutcome(exit_code=0, rooms=ROOMS), ProcessOutcome(exit_code=0, rooms=full("/dev/shm"))]
)
def test_places_with_room_are_no_reason_for_missing_files(outcome):
    assert room_failure(outcome, LIMITS) is None


@pytest.mark.parametrize(
    ("number", "name"), [(9, "SIGKILL (signal 9)"), (34, "SIGRTMIN (signal 34)"), (40, "signal 40")]
)
def test_signals_are_named(number, name):
    assert signal_name(number) == name


@given(
    st.builds(
        ProcessOutcome,
        exit_code=st.one_of(st.none(), st.integers(0, 255)),
        signal=st.one_of(st.none(), st.integers(1, 64)),
        timed_out=st.booleans(),
        output_exceeded=st.booleans(),
        oom_kills=st.integers(0, 2),
        pids_hits=st.integers(0, 2),
        rooms=st.sets(st.sampled_from(["OUT_DIR", "/tmp", "/dev/shm"])).map(lambda names: full(*names)),
        output=st.binary(max_size=400).map(on_stderr),
        lost=st.one_of(st.none(), st.just("the sandbox ended by itself")),
        lost_to_memory=st.booleans(),
    )
)
def test_any_outcome_is_judged_and_only_an_exit_of_zero_is_well(outcome):
    failure = classify(outcome, LIMITS)
    is_well = outcome.exit_code == 0 and not (outcome.lost or outcome.timed_out or outcome.output_exceeded)
    assert (failure is None) == is_well
    if failure is not None:
        assert failure.message.isprintable()
        assert len(failure.message) <= 500
