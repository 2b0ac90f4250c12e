"""Judges files in processes of their own, so that a file can take down no more than its own verdict.

Files that are opened by libraries in C have a child each; those that nothing but Python reads share one, which
answers for each file before it opens the next. A child is bounded in processor time, in wall-clock time
(killed from outside) and in memory, and can write no file; its answers come back over a pipe, bounded, and are
validated.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from formats import extension_of, format_of
from judge import import_family, judge
from memory_budget import memory_for_judge
from model import PROBLEM_CHARS_MAX, Limits, one_line
from request import Entry

_ANSWER_BYTES_MAX = 65_536
_ALONE = b"alone"
"""The answer for a file that there was no memory for after others."""
_PLAIN_FAMILIES = frozenset(
    {
        *(
            "text",
            "binary",
            "delimited",
            "json_document",
            "json_lines",
            "notebook",
            "python_source",
            "toml_document",
        ),
        *("component_text", "email_message", "rich_text"),
    }
)
_TOGETHER_MAX = 50
_CRASHED = "could not be opened: the checker crashed"
_OUT_OF_MEMORY = "could not be opened: the checker ran out of memory"
_FIRST_TO_BE_KILLED = b"1000"
"""The highest oom_score_adj: when the sandbox is full, the kernel takes the judge and not what waits for it."""


def judge_files(root: Path, entries: list[Entry], limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield the verdict on each file, as soon as it is there: ``{id, ok, mime, problem, facts}``.

    A file has a child of its own, unless it and those before it are read by Python alone: a fork costs some
    milliseconds. Raises nothing for any file.
    """
    at = 0
    while at < len(entries):
        try:
            # Imported before the fork: the next file of the format finds it loaded, and it costs this one no time.
            import_family(format_of(entries[at].path))
        except ImportError as error:
            yield _verdict_without_reader(entries[at], error)
            at += 1
            continue
        for verdict in _judged(root, _together(entries, at), limits):
            yield verdict
            at += 1


def _together(entries: list[Entry], at: int) -> list[Entry]:
    """Return the files that one child judges, from one on."""
    end = at + 1
    if _is_plain(entries[at]):
        while end < min(len(entries), at + _TOGETHER_MAX) and _is_plain(entries[end]):
            end += 1
    return entries[at:end]


def _is_plain(entry: Entry) -> bool:
    family = format_of(entry.path)
    if family.family not in _PLAIN_FAMILIES:
        return False
    try:
        import_family(family)
    except ImportError:
        return False
    return True


def _verdict_without_reader(entry: Entry, error: ImportError) -> dict[str, Any]:
    sentence = f"cannot be opened by this image, which has no reader for .{extension_of(entry.path)} files"
    return _verdict(entry) | {"problem": one_line(f"{sentence}: {error}", PROBLEM_CHARS_MAX)}


def _verdict(entry: Entry) -> dict[str, Any]:
    return {"id": entry.id, "ok": False, "mime": format_of(entry.path).mime, "problem": None, "facts": {}}


def _judged(root: Path, entries: list[Entry], limits: Limits) -> Iterator[dict[str, Any]]:
    """Yield the verdicts of one child: on all files, or up to the one that ended it."""
    child = _JudgeProcess(root, entries, limits)
    try:
        for entry in entries:
            answer = child.answer(time.monotonic() + limits.wall_seconds_per_file)
            if answer is None:
                late = f"could not be checked within {limits.wall_seconds_per_file:g} s"
                yield _verdict(entry) | {"problem": late}
                return
            if answer == _ALONE and entry is not entries[0]:
                return
            try:
                yield _verdict(entry) | _parse_answer(answer)
            except ValueError:
                yield _verdict(entry) | {"problem": child.problem(limits)}
                return
    finally:
        child.end()


class _JudgeProcess:
    """A forked judge and its answers, a line for each file."""

    def __init__(self, root: Path, entries: list[Entry], limits: Limits) -> None:
        self._reading, writing = os.pipe()
        self._received = b""
        self._has_died = False
        self._status: int | None = None
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._reading)
            _run_judge(writing, root, entries, limits)
        os.close(writing)
        self._poll = select.poll()
        self._poll.register(self._reading, select.POLLIN | select.POLLHUP)

    def answer(self, deadline: float) -> bytes | None:
        """Return the next line, cut where the child stopped; None if the deadline comes first."""
        while b"\n" not in self._received and len(self._received) <= _ANSWER_BYTES_MAX:
            left_ms = (deadline - time.monotonic()) * 1000
            if left_ms <= 0 or not self._poll.poll(left_ms):
                return None
            chunk = os.read(self._reading, _ANSWER_BYTES_MAX)
            if not chunk:
                self._has_died = True
                break
            self._received += chunk
        line, _, self._received = self._received.partition(b"\n")
        return line

    def problem(self, limits: Limits) -> str:
        """End it, if it has not ended; returns why it did not answer as it should."""
        status = self.end()
        return _problem_of_death(status, limits) if self._has_died else _CRASHED

    def end(self) -> int:
        """End it, if it has not ended; returns its wait status."""
        if self._status is None:
            os.close(self._reading)
            # Harmless to a child that is dead already.
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    kill(self._pid, signal.SIGKILL)
            _, self._status = os.waitpid(self._pid, 0)
        return self._status


def _run_judge(writing: int, root: Path, entries: list[Entry], limits: Limits) -> NoReturn:
    """Confine this child, judge, answer, and end it without any exit handler."""
    try:
        _detach(writing)
        _confine(limits)
        for number, entry in enumerate(entries):
            signal.setitimer(signal.ITIMER_PROF, limits.seconds_per_file)
            _write_answer(writing, _answer(root, entry, limits, is_alone=number == 0))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent's copy of the stack must not run on
        os._exit(1)
    os._exit(0)


def _answer(root: Path, entry: Entry, limits: Limits, *, is_alone: bool) -> bytes:
    try:
        return json.dumps(judge(root, entry, limits)).encode()
    except MemoryError:
        # Perhaps those before it took the memory: it gets a child of its own.
        return json.dumps({"ok": False, "problem": _OUT_OF_MEMORY, "facts": {}}).encode() if is_alone else _ALONE


def _write_answer(writing: int, answer: bytes) -> None:
    answer += b"\n"
    while answer:
        answer = answer[os.write(writing, answer) :]


def _detach(writing: int) -> None:
    """Close all descriptors of the inspector, its socket too."""
    os.setpgid(0, 0)
    os.closerange(3, writing)
    os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        # C libraries print their warnings; on stdout they would be taken for verdicts.
        os.dup2(nowhere, standard)


def _confine(limits: Limits) -> None:
    """Bound the memory of this process, let it write no file, and have it killed before others for memory."""
    with contextlib.suppress(OSError):
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(score, _FIRST_TO_BE_KILLED)
        os.close(score)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_DATA, memory_for_judge(limits.memory_bytes_max))


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _parse_answer(answer: bytes) -> dict[str, Any]:
    """Return the child's answer if it has the shape of one.

    Raises:
        ValueError: It has not: the child died, or a hostile file made it talk.
    """
    verdict = json.loads(answer)
    if not isinstance(verdict, dict) or set(verdict) != {"ok", "problem", "facts"}:
        raise ValueError("not a verdict")
    problem = verdict["problem"]
    if verdict["ok"] is not (problem is None) or not _are_facts(verdict["facts"]):
        raise ValueError("not a verdict")
    if problem is not None:
        verdict["problem"] = one_line(str(problem), PROBLEM_CHARS_MAX)
    return verdict


def _are_facts(facts: Any) -> bool:
    """Return whether these are whole numbers, texts, and lists of texts: nothing that could not be passed on."""
    if not isinstance(facts, dict):
        return False
    values = [each for value in facts.values() for each in (value if isinstance(value, list) else [value])]
    return all(isinstance(each, str | int) for each in values)


def _problem_of_death(status: int, limits: Limits) -> str:
    """Return why a child ended without an answer, from its wait status."""
    if not os.WIFSIGNALED(status):
        return _CRASHED
    number = os.WTERMSIG(status)
    if number == signal.SIGKILL:
        return _OUT_OF_MEMORY
    if number == signal.SIGPROF:
        return f"could not be checked within {limits.seconds_per_file:g} s of processor time"
    return f"{_CRASHED} ({signal.Signals(number).name})"
