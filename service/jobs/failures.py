"""Whether a program failed, and as what: a pure function of what was measured outside of it."""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace

from proofbox.contracts.codes import RuntimeCode
from proofbox.service.jobs.error_lines import error_line
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Collected, Job, ProcessOutcome, Room
from proofbox.service.sandbox.program_output import stderr_text

_SIGBUS_REASON = "a mapped file was cut short, or found no room to grow"
_CHILD = "a child process of the program"
_DISK_WORDS = re.compile(r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]")
_HEAP_WORDS = re.compile(r"JavaScript heap out of memory|invalid (?:array|table) size Allocation failed")
_FILE_WORDS = re.compile(r"File too large|File size limit exceeded|\[Errno 27\]")
_PROCESS_WORDS = re.compile(
    r"Resource temporarily unavailable|can't start new thread|fork: retry|Cannot fork|\[Errno 11\]"
)


@dataclass(frozen=True, slots=True)
class RuntimeFailure:
    """Why a run counts as failed: the code of the protocol, and a sentence for the model."""

    code: RuntimeCode
    message: str


def classify(outcome: ProcessOutcome, limits: CallLimits, job: Job | None = None) -> RuntimeFailure | None:
    """The failure of a run; None if the program ended well.

    Args:
        outcome: what was measured.
        limits: what the program might use.
        job: the program, where it is known: its lines distinguish its own errors from imitations.

    The causes outside of the program come first: what follows from them (a traceback, an exit code) is noise.
    """
    if outcome.lost is not None:
        if outcome.lost_to_memory:
            return _out_of_memory("the sandbox", limits)
        if outcome.lost_to_processes:
            return _too_many_processes("the sandbox was ended", limits)
        return RuntimeFailure(RuntimeCode.SANDBOX_FAILED, f"{outcome.lost}; call again under a new tool_call_id")
    if outcome.timed_out:
        if outcome.oom_kills:
            failure = _out_of_memory(_CHILD, limits)
            waited = f"the program waited for it until its wall clock of {limits.wall_s:g}s ended it"
            return replace(failure, message=f"{failure.message}; {waited}")
        return RuntimeFailure(RuntimeCode.TIMEOUT, f"Timeout after {limits.wall_s:g}s")
    if outcome.output_exceeded:
        return RuntimeFailure(
            RuntimeCode.OUTPUT_LIMIT,
            f"the program wrote more than {limits.output_bytes} bytes to stdout and stderr and was ended",
        )
    if outcome.exit_code == 0:
        return None
    return _failed_exit(outcome, limits, job)


def memory_failure(outcome: ProcessOutcome, limits: CallLimits) -> RuntimeFailure | None:
    """Why files are missing although the program ended well: a process of it was killed for memory."""
    return _out_of_memory(_CHILD, limits) if outcome.oom_kills else None


def room_failure(outcome: ProcessOutcome, limits: CallLimits) -> RuntimeFailure | None:
    """Why files are missing or empty although the program ended well: a place for files was full while it ran.

    What took the place may be deleted by now.
    """
    spoke = _DISK_WORDS.search(stderr_text(outcome.output)) is not None
    full = _full(outcome, even_shared_memory=spoke)
    if not full and not spoke:
        return None
    rooms = _rooms_text(full or outcome.rooms, limits)
    was_full = " and was full while the program ran" if full else ""
    return RuntimeFailure(RuntimeCode.DISK_LIMIT, f"{rooms}{was_full}: files may have found no space left")


def _failed_exit(outcome: ProcessOutcome, limits: CallLimits, job: Job | None) -> RuntimeFailure:
    stderr = stderr_text(outcome.output)
    last = error_line(stderr, job)
    if outcome.oom_kills:
        return _out_of_memory("the program" if outcome.signal == signal.SIGKILL else _CHILD, limits)
    if (disk := _disk_failure(outcome, (stderr, last), limits)) is not None:
        return disk
    if outcome.pids_hits and (outcome.exit_code is None or _PROCESS_WORDS.search(stderr)):
        return _too_many_processes(last or "no more could be started", limits)
    if outcome.signal == signal.SIGBUS:
        return _build_killed(outcome.signal, f": {_SIGBUS_REASON}; {_rooms_text(outcome.rooms, limits)}")
    if outcome.signal == signal.SIGABRT and (heap := _HEAP_WORDS.search(stderr)) is not None:
        return RuntimeFailure(
            RuntimeCode.OUT_OF_MEMORY,
            f"Node.js ended with {heap[0]!r}: its heap may have 3/4 of {limits.memory_bytes} bytes of memory",
        )
    if outcome.signal is not None:
        return _build_killed(outcome.signal)
    message = f"exit status {outcome.exit_code}"
    return RuntimeFailure(RuntimeCode.NONZERO_EXIT, f"{message}: {last}" if last else message)


def _build_killed(number: int, reason: str = "") -> RuntimeFailure:
    return RuntimeFailure(RuntimeCode.KILLED, f"the program was ended by {signal_name(number)}{reason}")


def _disk_failure(outcome: ProcessOutcome, error: tuple[str, str], limits: CallLimits) -> RuntimeFailure | None:
    """Which place for files has no room, if that is why the program failed.

    Args:
        outcome: what was measured.
        error: stderr, and its error line.
        limits: what the program might use.
    """
    stderr, last = error
    if outcome.signal == signal.SIGXFSZ or _FILE_WORDS.search(stderr):
        return RuntimeFailure(
            RuntimeCode.DISK_LIMIT, f"one file may have {limits.file_bytes} bytes: {last or 'a file grew beyond'}"
        )
    spoke = _DISK_WORDS.search(stderr) is not None
    if outcome.signal == signal.SIGBUS and not spoke:
        last = f"the program was ended by {signal_name(outcome.signal)} when it wrote to shared memory beyond that"
    full = _full(outcome, even_shared_memory=spoke or outcome.signal == signal.SIGBUS)
    if full:
        return RuntimeFailure(
            RuntimeCode.DISK_LIMIT, f"{_rooms_text(full, limits)} and is full: {last or 'no space left'}"
        )
    if not spoke:
        return None
    every = _rooms_text(outcome.rooms, limits) or f"OUT_DIR holds {limits.out_dir_bytes} bytes"
    return RuntimeFailure(RuntimeCode.DISK_LIMIT, f"{every}: {last}")


def _full(outcome: ProcessOutcome, *, even_shared_memory: bool) -> list[Room]:
    """The places that were full.

    What is shared between processes may fill its place to the last byte, and be no failure.
    """
    shared = () if even_shared_memory else ("/dev/shm",)  # noqa: S108 - the container's own
    return [room for room in outcome.rooms if room.is_full and room.place not in shared]


def _rooms_text(rooms: Sequence[Room], limits: CallLimits) -> str:
    return ", ".join(
        f"{room.place} holds {room.size_bytes} bytes"
        + (f" and {limits.out_dir_inodes} files and folders" if room.place == "OUT_DIR" else "")
        for room in rooms
    )


def left_too_much(collected: Collected, limits: CallLimits) -> RuntimeFailure | None:
    """The failure of a run that left more files or deeper folders than are checked."""
    if collected.files_exceeded:
        return RuntimeFailure(
            RuntimeCode.DISK_LIMIT, f"the program left more than {limits.files} files; the rest was not looked at"
        )
    if collected.depth_exceeded:
        return RuntimeFailure(
            RuntimeCode.DISK_LIMIT,
            f"the program left folders more than {limits.depth} deep; what is below was not looked at",
        )
    return None


def signal_name(number: int) -> str:
    """``SIGSEGV (signal 11)``, or the number alone for a real-time signal."""
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def _out_of_memory(what: str, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.OUT_OF_MEMORY,
        f"{what} was killed: more than {limits.memory_bytes} bytes of memory were needed, files in "
        "OUT_DIR, /tmp and /dev/shm counted in",
    )


def _too_many_processes(stderr: str, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.PROCESS_LIMIT, f"at most {limits.pids} processes and threads are allowed: {stderr}"
    )
