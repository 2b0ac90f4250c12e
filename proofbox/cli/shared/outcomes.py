"""What a call came to: its exit code, its files on disk, and what is printed of it."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from proofbox.cli.shared.exit_codes import CommandError, ExitCode
from proofbox.cli.shared.inputs import file_error
from proofbox.cli.shared.terminal import Terminal
from proofbox.contracts.codes import ContractCode, RuntimeCode, VerdictCode

if TYPE_CHECKING:
    from proofbox.client import Client, Download
    from proofbox.contracts.tool_call_response import ArtifactResult, EnvelopeError, ToolCallResponse

_EXIT_CODES: dict[str, ExitCode] = {
    RuntimeCode.TIMEOUT: ExitCode.TIMEOUT,
    RuntimeCode.CANCELLED: ExitCode.INTERRUPTED,
    RuntimeCode.EXECUTION_FAILED: ExitCode.CONTRACT_UNMET,
    RuntimeCode.SANDBOX_FAILED: ExitCode.ERROR,
    **dict.fromkeys(VerdictCode, ExitCode.CONTRACT_UNMET),
    **dict.fromkeys(ContractCode, ExitCode.REFUSED),
}
_PROGRAM_FAILURES: frozenset[str] = frozenset(RuntimeCode) - set(_EXIT_CODES)
_HEADING_COLUMNS = 78
_HINTS = {
    ExitCode.CONTRACT_UNMET: "the report names each file and what is wrong with it",
    ExitCode.TIMEOUT: "allow more with --timeout",
    ExitCode.PROGRAM_FAILED: "the report has the last lines of the program",
}


@dataclass(frozen=True, slots=True)
class CallNames:
    """The ids of a call."""

    call_id: str
    conversation: str
    turn: str


@dataclass(slots=True)
class Outcome:
    """An answer and where its files were saved.

    Attributes:
        names: the ids of the call.
        response: the answer.
        saved: the saved files by their logical paths.
    """

    names: CallNames
    response: "ToolCallResponse"
    saved: dict[str, Path] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command."""
        return exit_code_of(self.response.error)

    def as_json(self) -> dict[str, Any]:
        """The outcome as ``--json`` prints it; ``error`` has the form of every error of the command line."""
        response = self.response
        value: dict[str, Any] = {
            "ok": response.ok,
            "call_id": self.names.call_id,
            "conversation": self.names.conversation,
            "turn": self.names.turn,
            "report": response.report,
            "text": response.text,
            "stdout": response.output.stdout,
            "stderr": response.output.stderr,
            "output_truncated": response.output.truncated,
            "exit_code": response.usage.exit_code,
            "files": [self._file(artifact) for artifact in response.artifacts],
            "ret": response.ret,
            "timings_ms": vars(response.timings_ms),
        }
        return value | (as_command_error(response.error).as_json() if response.error is not None else {})

    def _file(self, artifact: "ArtifactResult") -> dict[str, Any]:
        saved = self.saved.get(artifact.logical_path)
        return {
            "path": artifact.logical_path,
            "verdict": str(artifact.verdict),
            "message": artifact.message,
            "size_bytes": artifact.size_bytes,
            "media_type": artifact.mime,
            "sha256": artifact.sha256,
            "saved_as": None if saved is None else str(saved),
        }

    def print(self, terminal: Terminal, *, is_stored: bool = True, is_report_result: bool = False) -> None:
        """Print the report and the saved files to stderr; stdout has the program's output.

        Args:
            terminal: where to print.
            is_stored: whether the call can be asked for later, by its ids.
            is_report_result: whether the report is the result of the command, and belongs to stdout.
        """
        if terminal.is_json:
            terminal.print_json(self.as_json())
            return
        response = self.response
        word = "ok" if response.ok else "failed"
        heading = f"── {word} in {response.timings_ms.total / 1000:.2f} s ".ljust(_HEADING_COLUMNS, "─")
        terminal.note(heading, "green" if response.ok else "red")
        if is_report_result:
            terminal.print(response.text)
        elif text := _shown_part(response.text):
            terminal.note(text)
        for saved in self.saved.values():
            terminal.note(f"saved {saved} ({saved.stat().st_size:,} bytes)")
        if is_stored:
            terminal.note(f"call {self.names.call_id}, conversation {self.names.conversation}", "dim")
        if response.error is not None and terminal.is_quiet:
            terminal.print_error(as_command_error(response.error).as_text())


def exit_code_of(error: "EnvelopeError | None") -> ExitCode:
    """The exit code for the error of an answer."""
    if error is None:
        return ExitCode.OK
    if error.code in _PROGRAM_FAILURES:
        return ExitCode.PROGRAM_FAILED
    return _EXIT_CODES.get(error.code, ExitCode.ERROR)


def as_command_error(error: "EnvelopeError") -> CommandError:
    """The error of an answer in the form of the command line."""
    exit_code = exit_code_of(error)
    return CommandError(
        error.message,
        code=error.code,
        exit_code=exit_code,
        hint=_HINTS.get(exit_code, ""),
        retryable=error.code == RuntimeCode.SANDBOX_FAILED,
    )


def produced_files(client: "Client", outcome: Outcome) -> "list[Download]":
    """The files of an answer that are right and stored, in the version of the answer."""
    return [
        replace(client.download(outcome.names.conversation, artifact.logical_path), sha256=artifact.sha256)
        for artifact in outcome.response.artifacts
        if artifact.verdict is VerdictCode.PRODUCED and artifact.sha256 is not None
    ]


def save_files(outcome: Outcome, files: "Iterable[Download]", folder: Path) -> None:
    """Save files of a call below a folder, which is created when there is one.

    Raises:
        CommandError: a file cannot be written, or its name would leave the folder.
        ProofboxError: a file cannot be downloaded.
    """
    for file in files:
        target = folder / safe_name(file.path)
        save_file(file, target)
        outcome.saved[file.path] = target


@contextlib.contextmanager
def output_folder(folder: Path | None, option: str) -> Iterator[None]:
    """Create the folder for the files before the call, which must not run for nothing; remove it if it stays empty.

    Raises:
        CommandError: it cannot be created, or not be written to.
    """
    if folder is None:
        yield
        return
    missing = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError
    except FileExistsError as exc:
        raise file_error(folder, NotADirectoryError(), option) from exc
    except OSError as exc:
        raise file_error(folder, exc, option) from exc
    try:
        yield
    finally:
        for path in missing:
            with contextlib.suppress(OSError):  # it has files now
                path.rmdir()


def save_file(file: "Download", target: Path) -> None:
    """Save one file.

    Raises:
        CommandError: it cannot be written.
        ProofboxError: it cannot be downloaded.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_dir():
            raise IsADirectoryError
        file.save(target)
    except OSError as exc:
        raise _not_writable(target, exc) from exc


def safe_name(logical_path: str) -> Path:
    """Where a file is saved below a folder: its path below ``files/``, or its name.

    Raises:
        CommandError: the service sent a name that would leave the folder.
    """
    _, _, name = logical_path.partition(".files/")
    name = name or logical_path.rpartition("/")[2]
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise CommandError(f"the service named a file '{name}' that cannot be saved", code="unsafe_path")
    return Path(*parts)


def _not_writable(target: Path, exc: OSError) -> CommandError:
    error = file_error(target, exc)
    error.exit_code = ExitCode.ERROR
    error.code = "file_not_written"
    error.hint = "choose another place with --out"
    return error


def _shown_part(text: str) -> str:
    """The text of an answer without the program's output and the word of success, which were printed already."""
    lines = text.partition("\nProgram log (tail):")[0].split("\n")
    return "\n".join(lines[1:] if lines[0] == "OK" else lines)
