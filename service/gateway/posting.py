"""The record of a call in a space: where it is posted, what it shows, and how it ends."""

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.messages import ToolState
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.port import Effect, EffectRefusedError

RESULT_FILE_SUFFIX = ".result.json"
"""What the name of a file of a whole result ends with."""
OPEN_STATES: frozenset[str] = frozenset({"streaming", "running", "waiting"})
_ID_BYTES = 12


def new_message_id() -> str:
    """Return a new id of a message."""
    return f"msg_{secrets.token_hex(_ID_BYTES)}"


def text_message_id(run_id: str, tool_call_id: str, space: int) -> str:
    """Return the id of the text that a call sends to a space (its row).

    It is known while the text is written, and the same in each process: in the one that shows it as it is written,
    and in the one that sends it.
    """
    named = "\0".join((run_id, tool_call_id, str(space)))
    return f"msg_{hashlib.sha256(named.encode()).hexdigest()[: 2 * _ID_BYTES]}"


@dataclass(frozen=True, slots=True)
class ShownTool:
    """The parts of a tool's definition that decide what a space sees of its calls.

    Attributes:
        name: the name for the model.
        tool_id: its id in blocks and in the catalogue.
        execution_type: ``gateway``, ``external``, ``space`` or ``internal``.
        visibility: ``visible``, ``hidden`` or ``result-only``.
        custom_ui: the name of the component that shows it.
        shows_input: whether a record has the input (``display.showInput``).
        shows_output: whether a record has the output (``display.showOutput``).
        result_schema: the schema of an answer from outside; None: any JSON.
    """

    name: str
    tool_id: str
    execution_type: str
    visibility: str
    custom_ui: str
    shows_input: bool = True
    shows_output: bool = True
    result_schema: dict[str, Any] | None = None

    @property
    def is_hidden(self) -> bool:
        """Whether a space sees nothing of its calls."""
        return self.visibility == "hidden"

    @property
    def is_shown_from_start(self) -> bool:
        """Whether a record appears at the start of a call, not at its end only."""
        return self.visibility == "visible"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call of a run, for its record.

    Attributes:
        run_id: its run.
        tool_call_id: its id; also the ``stream_id`` of its events.
        tool: the tool, as it is pinned to the run.
        input: the parameters.
        artifact_path: the logical path of an internal artifact that has the whole input, for an input of more than
            256 KiB; None: no such artifact.
    """

    run_id: str
    tool_call_id: str
    tool: ShownTool
    input: dict[str, Any]
    artifact_path: str | None = None


@dataclass(frozen=True, slots=True)
class Posting:
    """The place of a call's record, bound when the call is accepted; a later `enter_space` does not move it.

    It is small and serialisable (`to_json`), so a wait stores it and the end of the call has it after a restart.

    Attributes:
        space_id: the space; None: nothing is posted.
        message_id: the id of the record. A ``result-only`` call has one from the start, although the record appears
            at its end. None without a space, and for a hidden tool that has no approval card.
        warning: ``no_active_space`` if the tool is not hidden and the run has no space that its agent is in;
            the answer has it as a warning. None otherwise.
    """

    space_id: str | None = None
    message_id: str | None = None
    warning: str | None = None

    @property
    def posted(self) -> dict[str, str] | None:
        """The field ``posted`` of the response of a call; None if nothing is posted."""
        if self.space_id is None or self.message_id is None:
            return None
        return {"space_id": self.space_id, "message_id": self.message_id}

    def to_json(self) -> dict[str, Any]:
        """Return it as a JSON object, for the record of a wait."""
        return {"space_id": self.space_id, "message_id": self.message_id, "warning": self.warning}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Posting":
        """Return the posting that `to_json` stored."""
        return cls(value.get("space_id"), value.get("message_id"), value.get("warning"))


@dataclass(frozen=True, slots=True)
class WaitCard:
    """What a record shows while its call waits for a person.

    Attributes:
        wait_id: the wait.
        expires: until when an answer is taken: UTC, RFC 3339, ``Z``.
        custom_ui: ``approval`` or ``elicitation`` in place of the tool's own component; None: the tool's own.
        result_schema: the schema of the answer; None: the tool's own.
    """

    wait_id: str
    expires: str
    custom_ui: str | None = None
    result_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RecordError:
    """Why a call failed, as its record shows it.

    Attributes:
        code: the stable code.
        message: one sentence.
    """

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RecordEnding:
    """How a call ended, as its record shows it; `ending_of` makes one of a response.

    Attributes:
        state: ``done``, ``failed``, ``denied``, ``expired`` or ``cancelled``.
        output: the result, any JSON; ignored unless ``done``.
        error: why it failed; None for ``done``.
        answered_by: the entity that answered a wait of it.
        was_approved: whether a person approved it: the record of a hidden tool then shows this alone.
        artifact_path: the artifact that has the whole output, if that is too large for a record.
    """

    state: ToolState
    output: Any = None
    error: RecordError | None = None
    answered_by: str | None = None
    was_approved: bool = False
    artifact_path: str | None = None


@dataclass(frozen=True, slots=True)
class StartRecord(Effect):
    """Post the record of a call that starts; see `storage.gateway.call_records.start_record`.

    Attributes:
        call: the call.
        posting: the place, as `bind` returned it; None: it is bound in this transaction.
    """

    call: RecordedCall
    posting: Posting | None = None


@dataclass(frozen=True, slots=True)
class SuspendRecord(Effect):
    """Show in the record of a call that it waits for a person.

    Attributes:
        call: the call.
        posting: its place.
        card: what the record shows.
    """

    call: RecordedCall
    posting: Posting
    card: WaitCard


@dataclass(frozen=True, slots=True)
class ResumeRecord(Effect):
    """Show in the record of a call that it runs again after a wait, such as an approval.

    Attributes:
        run_id: its run.
        tool_call_id: the call.
        answered_by: the entity that answered.
        shows_input: whether the record has the input while the call runs.
    """

    run_id: str
    tool_call_id: str
    answered_by: str | None = None
    shows_input: bool = True


@dataclass(frozen=True, slots=True)
class EndRecord(Effect):
    """End the record of a call, or post the one that appears at the end.

    Attributes:
        run_id: its run.
        tool_call_id: the call.
        ending: how it ended.
        call: the call; None: unknown, such as after a crash: then only a record that exists is ended.
        posting: its place; None: the record that exists of this call, if there is one.
        left_warned: whether the answer that is stored with it has the warning ``left_space``. If the agent has left
            the space and this is false, `LeftSpaceError` is raised and nothing is stored: build the answer again
            with that warning, and set it.
    """

    run_id: str
    tool_call_id: str
    ending: RecordEnding
    call: RecordedCall | None = None
    posting: Posting | None = None
    left_warned: bool = False


NO_ACTIVE_SPACE = "no_active_space"
LEFT_SPACE = "left_space"
_NOT_SHOWN = "(file not shown)"
# Characters of a path that stands in a report without quotes; a known name may have others.
_PLAIN = r"[\w./\\~@%+#$&!-]"
_URL = r"https?://\S+"
_FOLDERS = r"(?:fi:)?(?:[\w.~-]*[/\\])*"
_QUOTED = "|".join(rf"(?<={mark}){_FOLDERS}(?:[\w-]+\.)?files/[^{mark}\n]+(?={mark})" for mark in "'\"`")
_IN_FILES = re.compile(r"(?:^|[/.])files/", re.IGNORECASE)
_OF_WORKSPACE = re.compile(r"(?:/workspace/|\./)+")
_LEFT = "the agent left the space, or the space was archived, while the call ran"


class LeftSpaceError(EffectRefusedError):
    """The agent left the space of a record, and the answer does not have the warning ``left_space`` yet.

    Never sent to a client: whoever stores the answer adds the warning and stores it again.
    """

    def __init__(self) -> None:
        super().__init__(LEFT_SPACE, _LEFT)


class NoActiveSpaceError(EffectRefusedError):
    """A call has nobody who could answer it: it ends with ``no_active_space``."""

    def __init__(self) -> None:
        message = "the run has no active space where somebody could answer; call enter_space first"
        super().__init__(NO_ACTIVE_SPACE, message)


def left_ending() -> RecordEnding:
    """Return how the record of a call ends whose agent has left the space."""
    return RecordEnding("failed", error=RecordError(LEFT_SPACE, _LEFT))


def ending_of(
    response: ToolCallResponse, *, is_own_tool: bool = False, answered_by: str | None = None
) -> RecordEnding:
    """Return how a record shows the response of a call that ran.

    Args:
        response: the response.
        is_own_tool: whether a tool of this service ran (variant *own tool*): its output is its report and files.
        answered_by: the entity that answered a wait of the call.
    """
    if is_own_tool:
        state: ToolState = "done" if response.ok else "failed"
        output = own_tool_output(response)
        error = None if output["error"] is None else RecordError(**output["error"])
        return RecordEnding(state, output, error, answered_by)
    if response.ok:
        return RecordEnding("done", response.ret, None, answered_by, artifact_path=_result_path(response))
    code = response.error.code if response.error is not None else "failed"
    message = response.error.message if response.error is not None else response.report
    states: dict[str, ToolState] = {
        "denied": "denied",
        "wait_expired": "expired",
        "user_cancelled": "cancelled",
        "cancelled": "cancelled",
    }
    return RecordEnding(states.get(code, "failed"), None, RecordError(code, message), answered_by)


def _result_path(response: ToolCallResponse) -> str | None:
    """The artifact that has the whole result, if that was too large for a block."""
    paths = (artifact.logical_path for artifact in response.artifacts if artifact.visibility == "internal")
    return next((path for path in paths if path.endswith(RESULT_FILE_SUFFIX)), None)


def own_tool_output(response: ToolCallResponse) -> dict[str, Any]:
    """Return what a record shows of a tool of this service: its report and external files, never internal ones."""
    error = response.error
    without_internal = _InternalPaths(response)
    return {
        "ok": response.ok,
        "error": None if error is None else {"code": error.code, "message": without_internal.remove(error.message)},
        "report": without_internal.remove(response.report),
        "artifacts": [
            {
                "artifact_path": artifact.logical_path,
                "mime": artifact.mime,
                "size_bytes": artifact.size_bytes,
                "sha256": artifact.sha256,
                "verdict": artifact.verdict,
            }
            for artifact in response.artifacts
            if artifact.visibility == "external"
        ],
    }


class _InternalPaths:
    """Removes from a text what names files that are not external files of a response."""

    def __init__(self, response: ToolCallResponse) -> None:
        self._shown: set[str] = set()
        self._internal: set[str] = set()
        for artifact in response.artifacts:
            # A program and a hint name a file without its turn.
            name = artifact.physical_path.partition("/files/")[2]
            paths = {artifact.logical_path, artifact.physical_path, *([name, f"files/{name}"] if name else [])}
            if artifact.visibility == "external":
                self._shown |= paths
            else:
                # A name that may be a word is left.
                self._internal |= {path for path in paths if "." in path or "/" in path}
        self._depth = max((path.count("/") + 1 for path in self._internal), default=0)
        plain = re.compile(rf"{_PLAIN}+")
        others = sorted((name for name in self._shown | self._internal if not plain.fullmatch(name)), key=len)
        listed = "|".join(re.escape(name) for name in reversed(others))
        known = rf"(?<![\w.~/\\-]){_FOLDERS}(?:{listed})(?![\w-]|\.\w)|" if listed else ""
        self._mentions = re.compile(rf"{_URL}|{known}{_QUOTED}|(?:fi:)?{_PLAIN}+")

    def remove(self, text: str) -> str:
        """The text with a note in place of each of the names."""
        return self._mentions.sub(self._replace, text)

    def _replace(self, mention: re.Match[str]) -> str:
        written = mention[0]
        path = written.rstrip(".!")
        if written.startswith(("http://", "https://")) or not self._is_internal(path.replace("\\", "/")):
            return written
        return _NOT_SHOWN + written[len(path) :]

    def _is_internal(self, path: str) -> bool:
        if _OF_WORKSPACE.sub("", path, count=1) in self._shown:
            return False
        if _IN_FILES.search(path):
            return True
        parts = path.split("/")[-self._depth - 1 :]
        return any("/".join(parts[at:]) in self._internal for at in range(len(parts)))
