"""What is known of a call beyond its answer: what it ran with and which versions it made; follows its task."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field

from contracts.tool_call_request import SourceRow
from contracts.tool_call_response import SandboxInfo
from service.artifacts.port import StoredArtifact
from service.sandbox.limits import CallLimits


@dataclass(frozen=True, slots=True)
class UsedInput:
    """A file that was put into OUT_DIR.

    Attributes:
        path: where, relative to OUT_DIR.
        asked: what the call said.
        source: where the bytes came from, as the rehost ledger says it.
        sha256: their SHA-256, in hex.
        size_bytes: how many.
        version: which version of the artifact store it is; None if it is none.
    """

    path: str
    asked: str
    source: str
    sha256: str
    size_bytes: int
    version: int | None


@dataclass(frozen=True, slots=True)
class UsedReference:
    """A text that a parameter named by its path.

    Attributes:
        param: the parameter, such as ``content``, or ``code``.
        path: the logical path.
        sha256: the SHA-256 of the text, in hex.
        size_bytes: its size as UTF-8.
        version: which version of the artifact store it is; None if it is not one.
    """

    param: str
    path: str
    sha256: str
    size_bytes: int
    version: int | None


@dataclass(slots=True)
class CallRecord:
    """What a call has used and made so far.

    Attributes:
        limits: what its program may use; None if it runs none.
        inputs: the files that were put in.
        missing: what it names that could not be had.
        cited: the rows of the sources pool that it cites.
        sandbox: where it ran, also if it did not end.
        stored: the versions that it made.
        references: the texts that its parameters named by their paths.
    """

    limits: CallLimits | None = None
    inputs: list[UsedInput] = field(default_factory=list)
    missing: Sequence[str] = ()
    cited: Sequence[SourceRow] = ()
    sandbox: SandboxInfo | None = None
    stored: list[StoredArtifact] = field(default_factory=list)
    references: list[UsedReference] = field(default_factory=list)


_record: ContextVar[CallRecord | None] = ContextVar("call_record", default=None)


def call_record() -> CallRecord:
    """The record of the call that the running task tells; one that nobody reads if it tells none."""
    return _record.get() or CallRecord()


class Recording:
    """A context manager that lets the stories inside its block write into a record."""

    __slots__ = ("_before", "_record")

    def __init__(self, record: CallRecord) -> None:
        self._record = record

    def __enter__(self) -> None:
        self._before = _record.get()
        _record.set(self._record)

    def __exit__(self, *_exc: object) -> None:
        _record.set(self._before)


def recording(record: CallRecord) -> Recording:
    """Lets the stories inside a ``with`` block write into a record."""
    return Recording(record)
