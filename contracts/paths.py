"""Paths of the protocol as types that cannot be wrong: parse them once, pass the type on.

A *physical* path is relative to OUT_DIR (``turn_1/files/report.pdf``); a *logical* path names the same thing
on a timeline (``fi:turn_1.files/report.pdf``). `relative_path` is the one rule for every part that a caller
names.
"""

import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

SEGMENT_BYTES_MAX = 255  # NAME_MAX of every file system we write to
PATH_BYTES_MAX = 1_024

_TURN_ID = re.compile(r"turn_[A-Za-z0-9_.-]+")
# Unicode categories Cc and Cs, and the separators that end a line of a report as a line feed does.
_REFUSED_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# No dot: it ends the turn id in tc:<turn>.<call>.result, and turn ids may hold dots.
_CALL_ID = re.compile(r"[A-Za-z0-9_:-]{1,128}")


class UnsafePathError(ValueError):
    """A path that the protocol refuses; ``code`` is ``unsafe_path``."""

    code = "unsafe_path"


def _refused_character(text: str) -> str | None:
    if found := _REFUSED_CHARACTER.search(text):
        return f"holds the control character U+{ord(found[0]):04X}"
    return "holds a backslash" if "\\" in text else None


def relative_path(text: str) -> str:
    """Returns ``text`` as a safe relative path: NFC, ``/`` between segments.

    A leading ``./`` is dropped; everything else that is unusual is refused, not repaired.

    Raises:
        UnsafePathError: absolute, ``..`` or empty segments, control characters, backslashes, a segment over
            255 bytes or a path over 1,024 bytes; the message has the reason.
    """
    path = unicodedata.normalize("NFC", text)
    while path.startswith("./"):
        path = path[2:]
    reason = _refused_character(path)
    if reason is None and path.startswith("/"):
        reason = "is absolute"
    if reason is None:
        reason = _refused_segment(path.split("/"))
    if reason is None and len(path.encode()) > PATH_BYTES_MAX:
        reason = f"is {len(path.encode())} bytes long, {PATH_BYTES_MAX} are allowed"
    if reason is not None:
        shown = text[:80].encode("unicode_escape").decode()
        raise UnsafePathError(f"the path '{shown}' {reason}; give a path relative to files/")
    return path


def _refused_segment(segments: list[str]) -> str | None:
    for segment in segments:
        if segment in {"", ".", ".."}:
            return f"has the segment '{segment}'"
        if len(segment.encode()) > SEGMENT_BYTES_MAX:
            return f"has a segment of {len(segment.encode())} bytes, {SEGMENT_BYTES_MAX} are allowed"
    return None


def is_turn_id(text: str) -> bool:
    """Whether ``text`` may name a turn: ``turn_`` and then any of ``A-Z a-z 0-9 _ . -``."""
    return len(text) <= SEGMENT_BYTES_MAX and _TURN_ID.fullmatch(text) is not None


def is_call_id(text: str) -> bool:
    """Whether ``text`` may name a tool call: 1 to 128 of ``A-Z a-z 0-9 _ : -``."""
    return _CALL_ID.fullmatch(text) is not None


class Namespace(StrEnum):
    """The two folders of a turn that hold files."""

    FILES = "files"
    ATTACHMENTS = "attachments"


_LOGICAL_MARKS = {Namespace.FILES: ".files/", Namespace.ATTACHMENTS: ".user.attachments/"}


@dataclass(frozen=True, slots=True, order=True)
class FilePath:
    """One file of one turn; knows its physical and its logical form.

    Attributes:
        turn_id: the turn whose file it is.
        namespace: ``files`` (made by tools) or ``attachments`` (given by the user).
        rel: the safe path below the namespace.
    """

    turn_id: str
    namespace: Namespace
    rel: str

    def __post_init__(self) -> None:
        """Refuses parts that the protocol refuses.

        Raises:
            UnsafePathError: the turn id or the relative path is not allowed.
        """
        if not is_turn_id(self.turn_id):
            raise UnsafePathError(f"{self.turn_id[:80]!a} is no turn id: it starts with turn_ and a name")
        object.__setattr__(self, "rel", relative_path(self.rel))
        # Of the whole path, so that it can be read back in each of its spellings.
        if len(self.physical.encode()) > PATH_BYTES_MAX:
            raise UnsafePathError(
                f"the path {self.rel[:80]!a} is {len(self.physical.encode())} bytes long with its turn, "
                f"{PATH_BYTES_MAX} are allowed; give a shorter name"
            )

    @property
    def physical(self) -> str:
        """The form relative to OUT_DIR: ``turn_1/files/report.pdf``."""
        return f"{self.turn_id}/{self.namespace}/{self.rel}"

    @property
    def logical(self) -> str:
        """The form of timelines: ``fi:turn_1.files/report.pdf``."""
        return f"fi:{self.turn_id}{_LOGICAL_MARKS[self.namespace]}{self.rel}"

    @classmethod
    def from_physical(cls, text: str) -> Self:
        """Parses ``<turn_id>/files/<rel>`` or ``<turn_id>/attachments/<name>``.

        Raises:
            UnsafePathError: it has another form, or a part that is refused.
        """
        turn_id, _, rest = relative_path(text).partition("/")
        namespace, _, rel = rest.partition("/")
        if not is_turn_id(turn_id) or namespace not in set(Namespace):
            raise UnsafePathError(
                f"{text[:80]!a} is no physical path: <turn_id>/files/<path> or <turn_id>/attachments/<name>"
            )
        return cls(turn_id, Namespace(namespace), rel)

    @classmethod
    def from_logical(cls, text: str) -> Self:
        """Parses ``fi:<turn_id>.files/<rel>`` or ``fi:<turn_id>.user.attachments/<name>``.

        Turn ids may hold dots, so the path is split at the first marker, never at the first dot.

        Raises:
            UnsafePathError: it has another form, or a part that is refused.
        """
        found = [(text.index(mark), namespace, mark) for namespace, mark in _LOGICAL_MARKS.items() if mark in text]
        if not text.startswith("fi:") or not found:
            raise UnsafePathError(
                f"{text[:80]!a} is no logical file path: fi:<turn_id>.files/<path> or "
                "fi:<turn_id>.user.attachments/<name>"
            )
        at, namespace, mark = min(found)
        return cls(text[3:at], namespace, text[at + len(mark) :])


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path as a caller wrote it, and the file of the current turn that it now means.

    Attributes:
        file: the file in the current turn's ``files/``.
        original: what the caller wrote.
        foreign: the caller named another turn's namespace or an attachment, so the meaning changed.
        source: the file that the caller named; ``file``, unless ``foreign``.
    """

    file: FilePath
    original: str
    foreign: bool
    source: FilePath


# Where programs of other sandboxes write their results, and what this one names its own folder.
_OUTPUT_PLACES = re.compile(
    r"(?:/mnt/data|/mnt/user-data/outputs|/out|/tmp/home|/tmp|~"
    r"|\$(?:OUT_DIR|OUTPUT_DIR|HOME|TMPDIR)|\$?\{(?:OUT_DIR|OUTPUT_DIR|HOME|TMPDIR)\}|OUT_DIR|OUTPUT_DIR)/+"
)
_SANDBOX = "sandbox:"
_QUOTES = {"`": "`", '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}


def unquoted(text: str) -> str:
    """A path without the backticks or quotes around the whole of it."""
    inner = text[1:-1]
    is_quoted = len(text) > 2 and _QUOTES.get(text[0]) == text[-1]  # noqa: PLR2004 - two quotes
    return inner if is_quoted and text[0] not in inner and text[-1] not in inner else text


def without_output_place(text: str) -> str:
    """A path without the folder of a sandbox in front of it: ``sandbox:/mnt/data/a.csv`` is ``a.csv``.

    ``/mnt/data``, ``/mnt/user-data/outputs``, OUT_DIR, ``/tmp`` and the home folder are such folders, and quotes
    around the path are left out. Any other path comes back unchanged, or absolute, so that `relative_path` refuses
    it.
    """
    path = unquoted(text)
    if path.startswith(_SANDBOX):
        path = _of_sandbox(path.removeprefix(_SANDBOX))
    found = _OUTPUT_PLACES.match(path)
    return path[found.end() if found else 0 :]


def _of_sandbox(path: str) -> str:
    """What stands behind ``sandbox:``: a name, a path of a turn, or an absolute path."""
    rest = path.lstrip("/")
    head, _, below = rest.partition("/")
    is_known = head == Namespace.FILES or (is_turn_id(head) and below.partition("/")[0] in set(Namespace))
    return f"/{rest}" if rest != path and below and not is_known else rest


def in_turn(text: str, turn_id: str) -> NamedPath:
    """Reads a path given by a caller (bare, ``files/…``, physical or logical) as a file of ``turn_id``.

    A path below a folder that `without_output_place` knows is read as if it were relative.

    Raises:
        UnsafePathError: no form of a path, or a part that is refused.
    """
    source = _parse_named(text, turn_id)
    foreign = source.turn_id != turn_id or source.namespace is not Namespace.FILES
    return NamedPath(FilePath(turn_id, Namespace.FILES, source.rel), text, foreign, source)


def _parse_named(text: str, turn_id: str) -> FilePath:
    text = unquoted(text)
    if text.startswith("fi:"):
        return FilePath.from_logical(text)
    path = relative_path(without_output_place(text))
    head, _, rest = path.partition("/")
    if head == Namespace.FILES and rest:
        return FilePath(turn_id, Namespace.FILES, rest)
    if is_turn_id(head) and rest.partition("/")[0] in set(Namespace) and rest.partition("/")[2]:
        return FilePath.from_physical(path)
    return FilePath(turn_id, Namespace.FILES, path)


def code_path(turn_id: str, call_id: str) -> str:
    """The logical path of the code that a call ran."""
    return f"fi:{turn_id}.code.{call_id}"


def output_path(turn_id: str, call_id: str) -> str:
    """The logical path of what the program of a call printed."""
    return f"fi:{turn_id}.output.{call_id}"


def notes_path(turn_id: str, call_id: str) -> str:
    """The logical path of the notes that came with a call."""
    return f"ar:{turn_id}.react.notes.{call_id}"


def call_path(turn_id: str, call_id: str) -> str:
    """The logical path of a call's own block."""
    return f"tc:{turn_id}.{call_id}.call"


def notice_path(turn_id: str, call_id: str) -> str:
    """The logical path of a call's notices."""
    return f"tc:{turn_id}.{call_id}.notice"


def result_path(turn_id: str, call_id: str) -> str:
    """The logical path of a call's report and meta blocks."""
    return f"tc:{turn_id}.{call_id}.result"


def plan_path(turn_id: str, plan_id: str) -> str:
    """The logical path of a plan of a turn."""
    return f"ar:{turn_id}.react.plan.{plan_id}"


def plan_ack_path(turn_id: str, iteration: int) -> str:
    """The logical path of one acknowledgement of the plans of a turn, numbered from 1."""
    return f"ar:{turn_id}.react.plan.ack.{iteration}"
