"""What calls give back: the result of a run, its files, the health of a service."""

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Generic, Literal, Self, TypeVar

from proofbox.client.calls import PreparedCall
from proofbox.client.errors import CallFailedError
from proofbox.client.files import Place
from proofbox.contracts.artifact_lists import ListedArtifact
from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.paths import FilePath
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_response import ArtifactResult, EnvelopeError, ToolCallResponse

File = TypeVar("File", bound="FileFacts")


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a service can take a call, and why not."""

    is_ready: bool
    problem: Problem | None = None


@dataclass(frozen=True, kw_only=True)
class FileReference:
    """A file of a conversation that can be read.

    Attributes:
        name: its path below ``files/``, or the name of an attachment.
        path: its logical path.
        conversation: its conversation.
        version: which version; None for the latest, or for the one with the hash.
        sha256: the SHA-256 of its bytes in hex, if it is known.
    """

    name: str
    path: str
    conversation: str
    version: int | None = None
    sha256: str | None = None

    @property
    def place(self) -> Place:
        """What a download reads."""
        return Place(self.conversation, self.path, self.version, self.sha256)


@dataclass(frozen=True, kw_only=True)
class FileFacts(FileReference):
    """A file of a conversation, and what is known of it.

    Attributes:
        size_bytes: its size.
        media_type: its media type.
        turn: its turn.
        visibility: ``external`` if it is hosted for the user.
        description: what it is; may be empty.
        created: when it was stored, RFC 3339; None for a file of a run.
    """

    size_bytes: int
    media_type: str
    turn: str
    visibility: Literal["external", "internal"] = "internal"
    description: str = ""
    created: str | None = None


@dataclass(frozen=True)
class RunResult(Generic[File]):
    """The result of a run; also of one that failed.

    Attributes:
        response: the whole answer.
        files: the files that are right and stored: the promised ones first.
        call_id: the id of the call.
        conversation: its conversation.
        turn: its turn.
    """

    response: ToolCallResponse = field(repr=False)
    files: list[File]
    call_id: str
    conversation: str
    turn: str

    @property
    def ok(self) -> bool:
        """Whether the program ran to its end and every promised file is right."""
        return self.response.ok

    @property
    def report(self) -> str:
        """The report, as the timeline has it."""
        return self.response.report

    @property
    def text(self) -> str:
        """The answer for a model, complete by itself: append it as the tool message."""
        return self.response.text

    @property
    def error(self) -> EnvelopeError | None:
        """What went wrong; None if ``ok``."""
        return self.response.error

    @property
    def stdout(self) -> str:
        """Standard output: the first and the last 32 KiB."""
        return self.response.output.stdout

    @property
    def stderr(self) -> str:
        """Standard error: the first and the last 32 KiB."""
        return self.response.output.stderr

    @property
    def output(self) -> str:
        """Both, in the order in which they were written."""
        return self.response.output.combined

    @property
    def shown(self) -> list[File]:
        """Those of the files in which is what the program showed: figures, pictures, pages."""
        paths = {shown.logical_path for shown in self.response.shown}
        return [file for file in self.files if file.path in paths]

    @property
    def last_value(self) -> str | None:
        """The text of the value of the program's last line; None if that has none."""
        return self.response.last_value

    @property
    def exit_code(self) -> int | None:
        """The exit status; None if a signal ended the program, or nothing ran."""
        return self.response.usage.exit_code

    def file(self, name: str) -> File:
        """The file of that name.

        Raises:
            KeyError: there is none; the message lists the names.
        """
        for file in self.files:
            if file.name == name:
                return file
        names = ", ".join(file.name for file in self.files) or "none"
        raise KeyError(f"no file {name!r}; the call has: {names}")

    def require_ok(self) -> Self:
        """Return the result itself if it is ``ok``.

        Raises:
            CallFailedError: it is not; the message has the report.
        """
        if not self.ok:
            raise CallFailedError(self.response)
        return self


def build_result(
    call: PreparedCall, response: ToolCallResponse, make_file: Callable[[FileFacts], File]
) -> RunResult[File]:
    """Build the result of a run from its answer."""
    files = [
        make_file(_facts_of_result(call.conversation, artifact))
        for artifact in response.artifacts
        if artifact.verdict is VerdictCode.PRODUCED and artifact.sha256 is not None
    ]
    return RunResult(response, files, call.call_id, call.conversation, call.turn)


def _facts_of_result(conversation: str, artifact: ArtifactResult) -> FileFacts:
    path = FilePath.from_logical(artifact.logical_path)
    return FileFacts(
        name=path.rel,
        path=path.logical,
        conversation=conversation,
        sha256=artifact.sha256,
        size_bytes=artifact.size_bytes or 0,
        media_type=artifact.mime,
        turn=path.turn_id,
        visibility=artifact.visibility,
    )


def facts_of_listed(conversation: str, listed: ListedArtifact) -> FileFacts:
    """A row of the list of a conversation's files."""
    return FileFacts(
        name=FilePath.from_logical(listed.logical_path).rel,
        path=listed.logical_path,
        conversation=conversation,
        version=listed.version,
        sha256=listed.sha256,
        size_bytes=listed.size_bytes,
        media_type=listed.mime,
        turn=listed.turn_id,
        visibility=listed.visibility,
        description=listed.description,
        created=listed.created,
    )


@contextmanager
def replacing(target: str | os.PathLike[str], name: str) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a temporary file that becomes the target when all of it is written.

    Args:
        target: the file to write, or an existing folder to put ``name`` into; missing folders are created.
        name: the file's name in that folder.
    """
    path = Path(target)
    if path.is_dir() or os.fspath(target).endswith("/"):
        path /= name.rsplit("/", 1)[-1]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".proofbox-{uuid.uuid4().hex}.part")
    try:
        with temporary.open("xb") as file:
            yield path, file
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
