"""Files and standard input as options name them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from proofbox.cli.shared.exit_codes import CommandError, usage_error

STDIN = "-"


@dataclass(slots=True)
class StandardInput:
    """Standard input of the command, which one option can use."""

    user: str | None = None

    def take(self, option: str) -> BinaryIO:
        """The stream, for one option.

        Raises:
            CommandError: another option uses it.
        """
        if self.user is not None:
            raise usage_error(f"standard input is used by {self.user} already", field=option)
        self.user = option
        return sys.stdin.buffer


def read_text(name: str, option: str, stdin: StandardInput) -> str:
    """The text of a file, or of standard input for ``-``.

    Raises:
        CommandError: it cannot be read, or is not UTF-8.
    """
    content = stdin.take(option).read() if name == STDIN else read_bytes(Path(name), option)
    try:
        return content.decode("utf-8-sig") if isinstance(content, bytes) else content
    except UnicodeDecodeError as exc:
        raise usage_error(f"{name}: not UTF-8 text (byte {exc.start})", field=option) from exc


def read_bytes(path: Path, option: str) -> bytes:
    """The content of a file.

    Raises:
        CommandError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as exc:
        raise file_error(path, exc, option) from exc


def parse_inputs(values: Sequence[str], stdin: StandardInput, option: str = "--in") -> dict[str, Any]:
    """The files of an option: a path, ``NAME=PATH``, or ``NAME=-``; each by the name that the program reads.

    Raises:
        CommandError: a file does not exist, or a name occurs twice.
    """
    files: dict[str, Any] = {}
    for value in values:
        name, source = _input(value, stdin, option)
        if name in files:
            raise usage_error(f"two files have the name '{name}'", field=option, hint="rename one: other-name=PATH")
        files[name] = source
    return files


def _input(value: str, stdin: StandardInput, option: str) -> tuple[str, Path | bytes]:
    path = Path(value)
    if value != STDIN and (path.exists() or "=" not in value):
        return path.name, _checked(path, option)
    name, _, source = value.rpartition("=") if value != STDIN else ("", "", STDIN)
    if not name or "/" in name or name in {".", ".."}:
        raise usage_error(f"'{value}' names no file", field=option, hint="write NAME=PATH, or NAME=- for stdin")
    if source == STDIN:
        return name, stdin.take(option).read()  # bytes: a retried upload reads it again
    return name, _checked(Path(source), option)


def _checked(path: Path, option: str) -> Path:
    try:
        with path.open("rb"):
            return path
    except OSError as exc:
        raise file_error(path, exc, option) from exc


def file_error(path: Path | str, exc: OSError, option: str | None = None) -> CommandError:
    """The error of a file of the user that cannot be used, in plain words."""
    reasons = {
        FileNotFoundError: "no such file",
        IsADirectoryError: "this is a folder, not a file",
        PermissionError: "permission denied",
        NotADirectoryError: "a part of the path is not a folder",
    }
    reason = reasons.get(type(exc), exc.strerror or str(exc))
    error = usage_error(f"{path}: {reason}")
    error.field = option if option and not option.startswith("CODE") else None
    error.code = "file_not_usable"
    return error
