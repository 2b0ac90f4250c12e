"""Tools of MCP servers: each call is one connection to its server; a server that asks for input makes it wait."""

import asyncio
import time
from dataclasses import dataclass, replace
from functools import partial

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, CallRun, RunOutcome, WaitOutcome
from proofbox.service.gateway.agents.service import project_name
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.mcp.elicitation import Questions, ask_person, questions_of, take_answer
from proofbox.service.gateway.mcp.pinned_tool import McpBinding
from proofbox.service.gateway.mcp.port import (
    AskedInput,
    McpClient,
    McpFailedError,
    ReachedServer,
    ServerAnswer,
    ToolRequest,
)
from proofbox.service.gateway.mcp.reaching import reach_server
from proofbox.service.gateway.mcp.results import read_answer, shown_reason
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.result_files import ResultFiles, data_of, new_file
from proofbox.service.gateway.schema_walk import all_schemas
from proofbox.service.gateway.tool_call import Effected, GatewayCall, ToolExecution
from proofbox.service.gateway.waits.policy import WaitPolicy, fail_expired, restore

_HEADER_KEYWORD = "x-mcp-header"
_EFFECTS_MAX = 100  # requests of all rounds, after which there is no next round; each is in the audit line


@dataclass(frozen=True, slots=True)
class McpParts:
    """What calls of servers' tools need.

    Attributes:
        client: asks servers.
        files: stores pictures, sounds and files of results.
        environment: the operator's secrets.
        admission: how many requests are made at the same time.
        bytes_max: the largest result as JSON.
        queue_s: how long a call may wait for its turn.
    """

    client: McpClient
    files: ResultFiles
    environment: Environment
    admission: Admission
    bytes_max: int
    queue_s: float


class McpTool(ToolExecution):
    """Runs the calls of servers' tools; see `ToolExecution`.

    Args:
        parts: what they need.
        policy: the operator's limits of waits.
    """

    def __init__(self, parts: McpParts, policy: WaitPolicy) -> None:
        self._parts = parts
        self._policy = policy

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """Calls the tool; a server that asks for input makes the call wait, or gets a refusal."""
        return await self._run_from(call, None, observer)

    async def resume(self, call: GatewayCall, outcome: WaitOutcome) -> CallResponse | CallRun:
        """Takes the answer to a form: the next form is asked, or the tool is called again with all answers."""
        restore(call, outcome)
        call.was_approved = bool(outcome.spec.get("was_approved"))
        if outcome.how == "error":
            return call.fail(GatewayCode.USER_ERROR, str(outcome.value))
        if outcome.how == "cancelled":
            return call.fail(GatewayCode.USER_CANCELLED, "the person who was asked gave no answer on purpose")
        if outcome.how == "expired":
            return fail_expired(call, "nobody gave the server the input that it asked for in time")
        return partial(self._run_from, call, take_answer(outcome.spec, outcome.value))

    async def _run_from(self, call: GatewayCall, questions: Questions | None, observer: CallObserver) -> RunOutcome:
        if questions is not None and questions.open_key is not None:
            return ask_person(call, questions, self._policy)
        binding = _binding(call)
        if not binding.is_allowed:
            return call.fail(GatewayCode.MCP_TOOL_ERROR, "allowedTools of the configuration does not have the tool")
        redactor = Redactor()
        try:
            project = project_name(call.principal)
            reached, redactor = reach_server(binding.server, self._parts.environment, project)
            deadline = time.monotonic() + self._parts.queue_s
            with await self._parts.admission.enter(deadline, observer.on_queued, observer.owner):
                observer.on_running()
                answered = await self._ask(call, reached, redactor, questions)
            if isinstance(answered, Questions):
                return ask_person(call, answered, self._policy)
            return await self._respond(call, answered, redactor)
        except McpFailedError as exc:
            return call.fail(exc.code, await asyncio.to_thread(shown_reason, exc.message, redactor))

    async def _ask(
        self, call: GatewayCall, reached: ReachedServer, redactor: Redactor, questions: Questions | None
    ) -> ServerAnswer | Questions:
        """The answer of the server; or what a person has to be asked.

        Raises:
            McpFailedError: there is none.
        """
        binding = _binding(call)
        is_declined = binding.server.elicitation == "decline"

        def on_effect(effect: Effected) -> None:
            call.effects.append(replace(effect, host=redactor.redact_text(effect.host)))

        # Also for all rounds together: nobody is asked between them.
        ends = time.monotonic() + reached.timeout_s
        left = reached
        while True:
            request = ToolRequest(
                binding.tool.remote_name,
                call.input,
                None if questions is None else questions.answers,
                is_listed_first=_has_header_parameters(binding),
            )
            answer = await self._parts.client.call_tool(left, request, on_effect)
            if not isinstance(answer, AskedInput):
                return answer
            rounds = 1 if questions is None else questions.rounds + 1
            check = partial(questions_of, answer, redactor, rounds, is_declined=is_declined)
            questions = await asyncio.to_thread(check)
            if questions.open_key is not None:
                return questions
            left_s = round(ends - time.monotonic(), 3)
            if left_s <= 0 or len(call.effects) >= _EFFECTS_MAX:
                why = f"within {reached.timeout_s:g} s" if left_s <= 0 else f"to {_EFFECTS_MAX} requests"
                message = f"the server went on asking for input and gave no result {why}; it may have had effects"
                raise McpFailedError(GatewayCode.MCP_UNAVAILABLE, message)
            left = replace(reached, timeout_s=left_s)

    async def _respond(self, call: GatewayCall, answer: ServerAnswer, redactor: Redactor) -> CallResponse:
        tool = _binding(call).tool
        result = await asyncio.to_thread(read_answer, answer, tool, redactor, self._parts.bytes_max)
        files = [
            await new_file(call, file.content, file.mime, number=number)
            for number, file in enumerate(result.files, 1)
        ]
        return await self._parts.files.succeed(call, result.as_ret([data_of(file) for file in files]), files=files)


def _binding(call: GatewayCall) -> McpBinding:
    if call.tool.mcp is None:
        raise AssertionError(f"{call.tool.name} is not of an MCP server")
    return call.tool.mcp


def _has_header_parameters(binding: McpBinding) -> bool:
    """Whether some parameters of a tool become headers, which the SDK knows from the list of tools only."""
    schemas = (each for _, each in all_schemas(binding.tool.input_schema))
    return any(isinstance(each, dict) and _HEADER_KEYWORD in each for each in schemas)
