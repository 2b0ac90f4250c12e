"""The judgement of one file, in whatever process: open it, ask its family, hold it against the contract."""

from __future__ import annotations

import importlib
import os
import stat
from pathlib import Path
from types import ModuleType
from typing import Any

from checks import hold_to_contract, refuse_what_cannot_be_checked
from formats import Format, extension_of, format_of
from model import PROBLEM_CHARS_MAX, Limits, Problem, Subject, Unmet, one_line
from request import Entry


def import_family(file_format: Format) -> ModuleType:
    """Import the module that opens a format, and with it the format's library.

    Raises:
        ImportError: The library is not installed here.
    """
    return importlib.import_module(f"families.{file_format.family}")


def judge(root: Path, entry: Entry, limits: Limits) -> dict[str, Any]:
    """Return ``{ok, problem, facts}`` for one file; ``facts.opened`` where it opens and a check does not hold.

    Raises:
        MemoryError: The file needs more memory than a judge may have.
    """
    facts: dict[str, Any] = {}
    try:
        _judge(root, entry, limits, facts)
    except Problem as problem:
        if isinstance(problem, Unmet):
            facts["opened"] = True
        return {"ok": False, "problem": one_line(str(problem), PROBLEM_CHARS_MAX), "facts": facts}
    return {"ok": True, "problem": None, "facts": facts}


def _judge(root: Path, entry: Entry, limits: Limits, facts: dict[str, Any]) -> None:
    extension, file_format = extension_of(entry.path), format_of(entry.path)
    # O_NOFOLLOW and O_NONBLOCK: the caller vouches for a regular file, this makes sure at no cost.
    try:
        descriptor = os.open(root / entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Problem(f"could not be opened: {_reason(error)}") from error
    except ValueError as error:
        raise Problem("could not be opened: no file has a NUL in its name") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise Problem("could not be opened: it is not a regular file")
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor has no path
        subject = Subject(
            file, status.st_size, extension, file_format, entry.checks, limits, facts, path=entry.path
        )
        _open_with_its_library(subject)
        refuse_what_cannot_be_checked(subject)
        hold_to_contract(subject)


def _open_with_its_library(subject: Subject) -> None:
    """Let the format's own library open the file.

    Raises:
        Problem: The file is not what it promises; whatever a library throws at a hostile file is one as well.
        MemoryError: As in ``judge``.
    """
    try:
        import_family(subject.format).inspect(subject)
    except (Problem, MemoryError):
        raise
    except RecursionError as error:
        raise Problem(f"could not be opened as {subject.format.name}: it is nested too deep") from error
    except Exception as error:
        raise Problem(f"could not be opened as {subject.format.name}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Return the one line of a foreign exception that has a content."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
