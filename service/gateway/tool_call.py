"""A call of a run's tool, and how its response is built; each execution type has a module that runs it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from proofbox.contracts.blocks import TEXT_BYTES_MAX, Block
from proofbox.contracts.codes import NoticeCode
from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.configuration import ExecutionType, ToolConfiguration, Visibility
from proofbox.contracts.gateway.wire import ConfigurationModel
from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ArtifactResult, EnvelopeError, Timings, ToolCallResponse
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.port import Effect
from proofbox.service.calls.suspension import CallResponse, CallRun, RunOutcome, WaitOutcome
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.mcp.pinned_tool import McpBinding
from proofbox.service.gateway.posting import Posting, RecordedCall, ShownTool
from proofbox.service.gateway.runs_port import StoredRun
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.timeline.block_writer import (
    BlockWriter,
    Notice,
    bounded_params,
    embedded_text,
    now_text,
    with_notices,
)
from proofbox.service.visible_text import visible_text

E = TypeVar("E", bound=ConfigurationModel)
ToolSource = Literal["configured", "built_in", "mcp", "own"]
_REPORT_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class RunTool:
    """A tool of a run, as it is pinned to it.

    Attributes:
        tool_id: its id in blocks, audit lines and the catalogue.
        name: its name for the model.
        source: where it comes from.
        description: what it does, for the model.
        input_schema: the JSON Schema of its input.
        execution_type: where it runs.
        visibility: what of a call the active space shows.
        configuration: as it was configured; None for a built-in and a tool of our own that is not listed.
        own_tool_id: the tool of this service that it runs; None for others.
        takes_code: whether a call carries ``code``.
        mcp: the server's tool that it is; None for others.
    """

    tool_id: str
    name: str
    source: ToolSource
    description: str
    input_schema: dict[str, Any]
    execution_type: ExecutionType
    visibility: Visibility
    configuration: ToolConfiguration | None = None
    own_tool_id: str | None = None
    takes_code: bool = False
    mcp: McpBinding | None = None

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to approve its calls."""
        if self.mcp is not None:
            return self.mcp.needs_approval
        return self.configuration is not None and self.configuration.requires_approval

    @property
    def shown(self) -> ShownTool:
        """What the record of a call in a space shows of it."""
        configuration = self.configuration
        if configuration is None:
            return ShownTool(self.name, self.tool_id, self.execution_type, self.visibility, self.name)
        display = configuration.effective_display
        return ShownTool(
            self.name,
            self.tool_id,
            self.execution_type,
            self.visibility,
            display.custom_ui or self.name,
            shows_input=display.show_input,
            shows_output=display.show_output,
            result_schema=configuration.result_schema,
        )


@dataclass(frozen=True, slots=True)
class Effected:
    """A request that left the service for a call, as its audit line lists it: no secret, no path.

    Attributes:
        host: where it went.
        method: its method.
        status: the status of the response; None if there was none.
        attempt: 1, 2, 3.
        size_bytes: of the response's body.
        ms: how long it took.
    """

    host: str
    method: str
    status: int | None
    attempt: int
    size_bytes: int
    ms: float

    def to_json(self) -> dict[str, Any]:
        """Returns it as a JSON object, for the record of a wait."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Effected":
        """Returns what `to_json` stored."""
        return cls(**value)


@dataclass(slots=True)
class GatewayCall:
    """One call of a tool of a run.

    Attributes:
        scope: its conversation.
        request: the request, under the tool's own id.
        run: its run, as it was when the call was accepted.
        tool: the tool.
        posting: where its record is; bound when the call was accepted.
        effects: the requests that left the service for it, in order.
        answered_by: who answered its last wait; for its record and audit line.
        was_approved: whether a person approved it.
        on_answer: more that is stored with its answer, once it has run.
        input_file: the file that has the whole input, if a space shows the call and its record cannot have it.
        inner: of a tool of this service: the call of it, prepared when this one was checked.
        began: when it came, on the performance counter.
        began_ts: the same for its blocks.
    """

    scope: ConversationKey
    request: ToolCallRequest
    run: StoredRun
    tool: RunTool
    posting: Posting
    effects: list[Effected] = field(default_factory=list)
    answered_by: str | None = None
    was_approved: bool = False
    on_answer: list[Effect] = field(default_factory=list)
    input_file: FilePath | None = None
    inner: PreparedCall | None = None
    began: float = field(default_factory=time.perf_counter)
    began_ts: str = field(default_factory=now_text)

    @property
    def recorded(self) -> RecordedCall:
        """The call as its record in a space shows it."""
        path = None if self.input_file is None else self.input_file.logical
        return RecordedCall(self.run.run_id, self.tool_call_id, self.tool.shown, self.whole_input, path)

    @property
    def principal(self) -> Principal:
        """On whose behalf."""
        return self.scope.principal

    @property
    def input(self) -> dict[str, Any]:
        """The parameters."""
        return self.request.params

    @property
    def whole_input(self) -> dict[str, Any]:
        """The parameters as the model wrote them, with the program of a tool that takes one."""
        return self.input if self.request.code is None else {**self.input, "code": self.request.code}

    @property
    def tool_call_id(self) -> str:
        """Its id."""
        return self.request.tool_call_id

    @property
    def turn_id(self) -> str:
        """Its turn; a call of a run always has one."""
        return self.request.turn_id or ""

    def execution_as(self, kind: type[E]) -> E:
        """The tool's ``execution``, which is of a kind."""
        configuration = self.tool.configuration
        if configuration is None or not isinstance(configuration.execution, kind):
            raise AssertionError(f"{self.tool.name} does not run as {kind.__name__}")
        return configuration.execution

    @property
    def write(self) -> BlockWriter:
        """Writes its blocks."""
        return BlockWriter(self.turn_id, self.tool_call_id, self.tool.tool_id, self.began_ts)

    @property
    def result_path(self) -> FilePath:
        """The file of a result that is too large for a block."""
        return FilePath.from_physical(f"{self.turn_id}/files/{self.tool_call_id}.result.json")

    @property
    def input_path(self) -> FilePath:
        """The file of an input that is too large for a record."""
        return FilePath.from_physical(f"{self.turn_id}/files/{self.tool_call_id}.input.json")

    def succeed(
        self, ret: Any, *, report: str | None = None, artifacts: Sequence[ArtifactResult] = ()
    ) -> ToolCallResponse:
        """Builds the response of a call that succeeded.

        Args:
            ret: the result, any JSON; already redacted.
            report: one line for the model; absent: the beginning of the result.
            artifacts: the files that the call stored. If the result `is_too_large`, `result_path` is one of them.
        """
        text = compact_json(ret)
        blocks = [*self._opening(self._warnings()), self._result(ret, text)]
        shown = self._shown(text)
        return ToolCallResponse(
            ok=True,
            ret=ret,
            report=visible_text(report if report is not None else _shortened(text)),
            text=with_notices(visible_text(shown if report is None else f"{report}\n{shown}"), blocks),
            blocks=blocks,
            artifacts=list(artifacts),
            timings_ms=self._timings(),
        )

    def fail(
        self,
        code: str,
        message: str,
        *,
        ret: Any = None,
        notice: NoticeCode | None = None,
        where: str = "tool",
        **details: Any,
    ) -> ToolCallResponse:
        """Builds the response of a call that failed: HTTP 200, ``ok=false``.

        Args:
            code: the stable code.
            message: one sentence for the model; already redacted.
            ret: what is known of the result; already redacted.
            notice: the code of a notice about it; None: no notice.
            where: which step failed.
            details: more fields of the notice and of the result block.
        """
        message = visible_text(message)
        notices = self._warnings()
        if notice is not None:
            notices.append(Notice(notice, message, {"error": code, **details}))
        payload = {
            "tool_id": self.tool.tool_id,
            "tool_call_id": self.tool_call_id,
            "error": {"code": code, "message": message, **details},
            **({"result": ret} if ret is not None else {}),
            "ts": now_text(),
        }
        blocks = [*self._opening(notices), self._result_of(payload)]
        report = visible_text(f"{self.tool.name} failed: {code} — {message}")
        known = ""
        if ret is not None:
            known = f"\n{visible_text(embedded_text(compact_json(ret).encode(errors='replace'), more=False))}"
        return ToolCallResponse(
            ok=False,
            error=EnvelopeError(code=code, message=message, where=where, managed=True),
            ret=ret,
            report=report,
            text=with_notices(f"{report}{known}", blocks),
            blocks=blocks,
            timings_ms=self._timings(),
        )

    def refuse_input(self, errors: Sequence[Mapping[str, str]]) -> ToolCallResponse:
        """Builds the response of a call whose input does not fit: nothing was run.

        Args:
            errors: what is wrong, each with ``field`` and ``message``.
        """
        listed = "; ".join(f"{error['field']}: {error['message']}" for error in errors)
        return self.fail(
            GatewayCode.INVALID_INPUT,
            f"{listed}. Nothing was run; correct this and call again",
            notice=NoticeCode.INVALID_INPUT,
            where="params",
            errors=[dict(error) for error in errors],
        )

    def interrupt(self, why: Interruption) -> ToolCallResponse:
        """Builds the response of a call that was ended from outside.

        One whose process ended may have had effects, so it is never run again.
        """
        code, message = str(why.code), why.message
        if code == "sandbox_failed":
            code = GatewayCode.TOOL_INTERRUPTED
            message = "the service stopped while the call ran; it may have had effects and is not repeated"
        return self.fail(code, message, notice=NoticeCode.TOOL_RESULT_ERROR, where="run")

    def _opening(self, notices: Sequence[Notice]) -> list[Block]:
        return self.write.opening(bounded_input(self.input), notices, notes=self.request.notes)

    def _warnings(self) -> list[Notice]:
        if self.posting.warning is None:
            return []
        message = "the run has no active space where the result could be shown; it was given to the agent only"
        return [Notice(NoticeCode.NO_ACTIVE_SPACE, message, {})]

    def _result(self, ret: Any, text: str) -> Block:
        # Below a key of its own: a result with the fields of a digest is not one.
        if not is_too_large(text):
            return self.write.result_json({"ok": True, "result": ret})
        meta = {"result_path": self.result_path.logical, "size_bytes": len(text.encode())}
        return self.write.result_text("text/plain", self._shown(text), meta)

    def _shown(self, text: str) -> str:
        """The JSON text of a result, or its beginning and where the whole is."""
        if not is_too_large(text):
            return text
        shown = embedded_text(text.encode(errors="replace"), more=False)
        return f"{shown}\n[the whole result: {self.result_path.logical}]"

    def _result_of(self, payload: dict[str, Any]) -> Block:
        if len(compact_json(payload)) > TEXT_BYTES_MAX:
            payload = {name: value for name, value in payload.items() if name != "result"}
        return self.write.result_json(payload)

    def _timings(self) -> Timings:
        return Timings(total=round((time.perf_counter() - self.began) * 1000, 3))


class ToolExecution:
    """Runs the calls of one variant of ``execution``."""

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """Runs a call; a failure that the model should know is a response.

        Raises:
            ServiceError: the service is at fault.
        """
        raise NotImplementedError

    async def resume(self, call: GatewayCall, outcome: WaitOutcome) -> CallResponse | CallRun:
        """Takes the answer that the call waited for; see `PreparedCall.resume`."""
        raise AssertionError(f"{call.tool.name} never waits for {outcome.kind}")

    def interrupt(self, call: GatewayCall, why: Interruption) -> ToolCallResponse:
        """Builds the response of a call that was ended from outside; see `PreparedCall.interrupt`."""
        return call.interrupt(why)

    async def check(self, call: GatewayCall) -> None:
        """Refuses a request that is wrong beyond its input, before it is accepted.

        Raises:
            CallerError: the caller's program has to change something.
        """

    def admit(self, call: GatewayCall) -> None:
        """Refuses a call for which there is no place, before it is accepted.

        Raises:
            QueueFullError: it has to come later.
        """


def is_too_large(text: str) -> bool:
    """Whether the JSON text of a result is too large for its block."""
    return len(text.encode(errors="replace")) > TEXT_BYTES_MAX


def bounded_input(params: dict[str, Any]) -> dict[str, Any]:
    """The parameters as a call block shows them: long values are cut."""
    shown = bounded_params(params)
    for name, value in shown.items():
        if isinstance(value, list | dict) and is_too_large(text := compact_json(value)):
            shown[name] = embedded_text(text.encode(errors="replace"), more=False)
    return shown


def _shortened(text: str) -> str:
    return text if len(text) <= _REPORT_CHARS_MAX else f"{text[:_REPORT_CHARS_MAX]}…"
