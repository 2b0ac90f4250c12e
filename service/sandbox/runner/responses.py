"""What a runner answers, read strictly: one that a program took over knows the nonce and may send anything.

A runner of ours never sends what is refused here. Whatever passes is safe to keep and to show: numbers that every
store takes, one printable line for a sentence, no more rows than were asked for.
"""

import json
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from proofbox.contracts.paths import PATH_BYTES_MAX, FilePath, Namespace, UnsafePathError
from proofbox.service.sandbox.port import (
    Collected,
    CollectedFile,
    FileState,
    Inspection,
    OutputPiece,
    OutputSpec,
    PlaceName,
    ProcessOutcome,
    Room,
    StreamName,
)
from proofbox.service.sandbox.runner.file_frames import Received
from proofbox.service.sandbox.workspace import ArchiveBounds, CollectedWorkspace

_ATTACHMENT_PREFIX = "../attachments/"
_REL_CHARS_MAX = 16_384  # a path of 4,096 bytes, each of them an escape
_SENTENCE_CHARS_MAX = 1_000
_OUTPUT_BYTES_MAX = 2 * 1024 * 1024  # beginning and end of both streams
_PIECES_MAX = 32_100  # those of both, and more where a long one is in parts
_ROOMS_MAX = 3
_STREAMS: dict[int, StreamName] = {1: "stdout", 2: "stderr"}
_REMOVED_MAX = 2_000
_LIST = Field(strict=False, max_length=200)  # JSON has no tuples
_SHOWN = Field(strict=False, max_length=20)
_VALUE_CHARS_MAX = 9_000


def _is_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a sentence is one printable line")
    return text


def _is_of_bytes(text: str) -> str:
    text.encode("latin-1")  # a character is a byte; UnicodeEncodeError is a ValueError
    return text


# What JSON, SQLite and JavaScript hold without loss.
Count = Annotated[int, Field(ge=0, le=2**53)]
Line = Annotated[str, Field(max_length=_SENTENCE_CHARS_MAX), AfterValidator(_is_line)]
Text = Annotated[str, Field(max_length=_OUTPUT_BYTES_MAX), AfterValidator(_is_of_bytes)]
Path = Annotated[str, Field(max_length=PATH_BYTES_MAX)]

# JSON has lists in place of tuples.
_Room = Annotated[tuple[PlaceName, Count, bool], Field(strict=False)]
_Piece = Annotated[tuple[Literal[1, 2], Count, Text], Field(strict=False)]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def read(cls, payload: bytes) -> Self:
        """The answer in a frame's payload.

        Raises:
            ValueError: it is none.
            RecursionError: it is JSON without end.
        """
        # Not pydantic's own parser: names that are no UTF-8 come with half surrogates, which it refuses.
        return cls.model_validate(json.loads(payload))


class Printed(_Answer):
    """A part of the output of the program."""

    output: Annotated[list[_Piece], Field(max_length=_PIECES_MAX)]

    def add_to(self, pieces: list[OutputPiece]) -> None:
        """Adds it to the parts before.

        Raises:
            ValueError: together they are more than a runner keeps.
        """
        pieces += (OutputPiece(_STREAMS[name], text.encode("latin-1"), out) for name, out, text in self.output)
        if len(pieces) > _PIECES_MAX or sum(len(piece.data) for piece in pieces) > _OUTPUT_BYTES_MAX:
            raise ValueError("more output than a runner keeps")


class Exit(Printed):
    """How the program ended, and the last part of its output; the attributes are those of `ProcessOutcome`."""

    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    signal: Annotated[int, Field(ge=1, le=64)] | None = None
    timed_out: bool = False
    output_exceeded: bool = False
    left_running: Annotated[tuple[Line, ...], _SHOWN] = ()
    oom_kills: Count = 0
    pids_hits: Count = 0
    rooms: Annotated[list[_Room], Field(max_length=_ROOMS_MAX)] = []
    stdout_bytes: Count = 0
    stderr_bytes: Count = 0
    cpu_ms: Annotated[float, Field(ge=0, le=2**53)] = 0.0
    memory_peak_bytes: Count | None = None
    shown: Annotated[tuple[Line, ...], _SHOWN] = ()
    shown_notes: Annotated[tuple[Line, ...], _SHOWN] = ()
    last_value: Annotated[str, Field(max_length=_VALUE_CHARS_MAX)] | None = None

    def outcome(self, printed: list[OutputPiece]) -> ProcessOutcome:
        """The same as the port has it, with the parts of the output that came before.

        Raises:
            ValueError: the output is more than a runner keeps.
        """
        self.add_to(printed)
        fields = dict(self)
        fields["rooms"] = tuple(Room(*room) for room in self.rooms)
        fields["output"] = tuple(printed)
        return ProcessOutcome(**fields)


class Failed(_Answer):
    """Why files could not be put in."""

    reason: Line


class Inspected(_Answer):
    """The inspector's verdict on a file."""

    ok: bool
    mime: Line
    problem: Line | None
    facts: dict[str, Any]

    @model_validator(mode="after")
    def _one_word(self) -> Self:
        if self.ok is not (self.problem is None):
            raise ValueError("a file is well, or it has a problem")
        return self

    def inspection(self) -> Inspection:
        """The same in the form of the port."""
        return Inspection(self.ok, self.mime, self.problem, self.facts)


class Row(_Answer):
    """One file that was examined.

    Attributes:
        promise: the index of the promise that it is for; None if nobody promised it.
        rel: its path below ``files/``, or ``../attachments/<name>``; may hold half surrogates.
        state: what lies there.
        size: its bytes.
        inspection: the inspector's verdict; None if it was not opened.
        keep: its bytes follow, or are those of an earlier file.
        same_as: the number of that earlier file.
    """

    promise: Count | None
    rel: Any
    state: Annotated[FileState, Field(strict=False)]
    size: Count
    inspection: Inspected | None
    keep: bool
    same_as: Count | None = None

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if not isinstance(self.rel, str) or len(self.rel) > _REL_CHARS_MAX:
            raise ValueError("no path")
        # Of a good file the bytes come too: what is reported as produced is there. Those of one that fails a check
        # come where OUT_DIR's size has room for them.
        is_good = self.promise is None or (self.size > 0 and (self.inspection is None or self.inspection.ok))
        if self.keep if self.state is not FileState.FILE else is_good and not self.keep:
            raise ValueError("regular files are kept, good ones always")
        return self

    def path(self, wanted: OutputSpec) -> FilePath | None:
        """Where it is in the turn; None if its name is one that the protocol refuses.

        Raises:
            ValueError: it is not what its promise names.
        """
        if self.promise is not None and self.promise >= len(wanted.files):
            raise ValueError("there is no such promise")
        try:
            path = _file_path(wanted.turn_id, self.rel)
        except UnsafePathError:
            return None
        promised = None if self.promise is None else wanted.files[self.promise]
        if promised is not None and not promised.is_glob and path.rel != promised.rel:
            raise ValueError("the file of a promise has the promised name")
        return path

    def collected(self, path: FilePath) -> CollectedFile:
        """The same in the form of the port, without its bytes."""
        inspection = None if self.inspection is None else self.inspection.inspection()
        return CollectedFile(path, self.promise, self.state, self.size, inspection=inspection)


class WorkspaceFacts(_Answer):
    """What of the workspace is no stored file; unless it is too large or did not change, its archive follows."""

    entries: Count
    size: Count
    is_too_large: bool
    left_out: Count
    is_same: bool

    def require_bounds(self, bounds: ArchiveBounds) -> None:
        """Raises ValueError if it is larger than asked for."""
        if not self.is_too_large and (self.entries > bounds.entries_max or self.size > bounds.bytes_max):
            raise ValueError("a workspace is within its bounds")

    def collected(self, archive: Received | None) -> CollectedWorkspace:
        """The same in the form of the port, with its archive if that came."""
        collected = CollectedWorkspace(self.entries, self.size, self.left_out, is_too_large=self.is_too_large)
        return collected if archive is None else replace(collected, source=archive.source, sha256=archive.sha256)


class Summary(_Answer):
    """What was seen altogether; the attributes are those of `Collected`."""

    extras_total: Count
    files_exceeded: bool
    depth_exceeded: bool
    removed: Annotated[tuple[Path, ...], Field(strict=False, max_length=_REMOVED_MAX)] = ()
    in_other_turns: Annotated[tuple[Line, ...], _LIST] = ()
    left_in_tmp: Annotated[tuple[Line, ...], _LIST] = ()
    taken_in: Annotated[tuple[Annotated[tuple[Count, Line], Field(strict=False)], ...], _LIST] = ()

    def collected(self, **rest: Any) -> Collected:
        """The same in the form of the port, with the files."""
        return Collected(**rest, **dict(self))


def rows_max(wanted: OutputSpec) -> int:
    """How many rows answer a request: one for a name, one for each match of a pattern, and the unpromised."""
    return sum(max(1, file.matches_max) for file in wanted.files) + wanted.extras_max


def _file_path(turn_id: str, rel: str) -> FilePath:
    if rel.startswith(_ATTACHMENT_PREFIX):
        return FilePath(turn_id, Namespace.ATTACHMENTS, rel.removeprefix(_ATTACHMENT_PREFIX))
    return FilePath(turn_id, Namespace.FILES, rel)
