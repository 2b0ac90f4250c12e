"""Whether a program failed, and as what: a pure function of what was measured outside of it."""

import re
import signal
from dataclasses import dataclass

from contracts.codes import RuntimeCode
from service.core.engine_port import Collected, ProcessOutcome
from service.core.limits import CallLimits

_LINE_CHARS_MAX = 300
_DISK_WORDS = re.compile(
    r"No space left on device|File too large|File size limit exceeded|Disk quota exceeded|\[Errno (?:28|27|122)\]"
)
_PROCESS_WORDS = re.compile(
    r"Resource temporarily unavailable|can't start new thread|fork: retry|Cannot fork|\[Errno 11\]"
)


@dataclass(frozen=True, slots=True)
class RuntimeFailure:
    """Why a run counts as failed: the code of the protocol, and a sentence for the model."""

    code: RuntimeCode
    message: str


def classify(outcome: ProcessOutcome, limits: CallLimits) -> RuntimeFailure | None:
    """The failure of a run; None if the program ended well.

    The causes outside of the program come first: what follows from them (a traceback, an exit code) is noise.
    """
    if outcome.lost is not None:
        if outcome.lost_to_memory:
            return _out_of_memory("the sandbox", limits)
        if outcome.lost_to_processes:
            return _too_many_processes("the sandbox was ended", limits)
        return RuntimeFailure(RuntimeCode.SANDBOX_FAILED, f"{outcome.lost}; call again under a new tool_call_id")
    if outcome.timed_out:
        return RuntimeFailure(RuntimeCode.TIMEOUT, f"Timeout after {limits.wall_s:g}s")
    if outcome.output_exceeded:
        return RuntimeFailure(
            RuntimeCode.OUTPUT_LIMIT,
            f"the program wrote more than {limits.output_bytes} bytes to stdout and stderr and was ended",
        )
    if outcome.exit_code == 0:
        return None
    return _failed_exit(outcome, limits)


def _failed_exit(outcome: ProcessOutcome, limits: CallLimits) -> RuntimeFailure:
    last = last_line(outcome.stderr_tail)
    said = outcome.stderr_tail.decode(errors="replace")
    if outcome.oom_kills:
        whose = "the program" if outcome.signal == signal.SIGKILL else "a child process of the program"
        return _out_of_memory(whose, limits)
    if outcome.signal == signal.SIGXFSZ or _DISK_WORDS.search(said) or outcome.disk_full:
        return RuntimeFailure(
            RuntimeCode.DISK_LIMIT,
            f"OUT_DIR holds {limits.out_dir_bytes} bytes and {limits.out_dir_inodes} files and folders, one file "
            f"{limits.file_bytes} bytes: {last or 'no space left'}",
        )
    if outcome.pids_hits and (outcome.exit_code is None or _PROCESS_WORDS.search(said)):
        return _too_many_processes(last or "no more could be started", limits)
    if outcome.signal is not None:
        return RuntimeFailure(RuntimeCode.KILLED, f"the program was ended by {signal_name(outcome.signal)}")
    message = f"exit status {outcome.exit_code}"
    return RuntimeFailure(RuntimeCode.NONZERO_EXIT, f"{message}: {last}" if last else message)


def left_too_much(collected: Collected, limits: CallLimits) -> RuntimeFailure | None:
    """The failure of a run that left more files or deeper folders than are looked at."""
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


def last_line(tail: bytes) -> str:
    """The last line that says something, such as ``ValueError: boo``; at most 300 characters."""
    lines = [line.strip() for line in tail.decode(errors="replace").splitlines() if line.strip()]
    text = "".join(c if c.isprintable() else " " for c in lines[-1]) if lines else ""
    return text if len(text) <= _LINE_CHARS_MAX else text[: _LINE_CHARS_MAX - 1] + "…"


def signal_name(number: int) -> str:
    """``SIGSEGV (signal 11)``, or the number alone for a real-time signal."""
    try:
        return f"{signal.Signals(number).name} (signal {number})"
    except ValueError:
        return f"signal {number}"


def _out_of_memory(whose: str, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.OUT_OF_MEMORY,
        f"{whose} was killed: more than {limits.memory_bytes} bytes of memory were needed, files in "
        "OUT_DIR and /tmp counted in",
    )


def _too_many_processes(said: str, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.PROCESS_LIMIT, f"at most {limits.pids} processes and threads are allowed: {said}"
    )
