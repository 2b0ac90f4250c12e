"""The variant ``sub-agent``: a bounded loop with a model of the operator inside one call."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.configuration import SubAgentConfiguration
from proofbox.contracts.gateway.executions import SubAgentExecution
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, RunOutcome, change_response
from proofbox.service.errors import QueueFullError, QueueTimeoutError
from proofbox.service.gateway.catalogue import openai_tool
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.llm.chat import ChatReply, UnreadableReplyError, read_reply
from proofbox.service.gateway.llm.client import LlmClient, LlmFailedError, LlmRequest, Turn
from proofbox.service.gateway.llm.context_tail import ContextTail
from proofbox.service.gateway.llm.endpoints import (
    DEFAULT_ENDPOINT,
    EndpointRefusedError,
    LlmEndpoint,
    LlmEndpoints,
)
from proofbox.service.gateway.llm.inner_calls import InnerCallParts, InnerCalls, inner_call_id
from proofbox.service.gateway.llm.inner_tools import list_inner_tools
from proofbox.service.gateway.llm.sub_agent_loop import (
    STEPS_DEFAULT,
    Finish,
    LoopParts,
    SubAgentFailedError,
    SubAgentLoop,
)
from proofbox.service.gateway.mcp.sources import McpSources
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import Effected, GatewayCall, RunTool, ToolExecution
from proofbox.service.gateway_errors import McpUnavailableError
from proofbox.service.timeline.token_counter import TokenCounter

_PATH = "/chat/completions"
_REPLY_BYTES_MAX = 2 * 1024 * 1024
_ATTEMPTS = 2
_CONTEXT_HEAD = "The end of the conversation so far:"
_TASK_HEAD = "Your task:"
_REACHED: Mapping[Finish, str] = {
    "length": "the endpoint cut the model's answer",
    "max_steps": "the model still called tools in its last step",
    "max_calls": "the model called more tools than it may",
    "max_tokens": "the conversation has more tokens than it may",
    "timeout": "the time of the call was over",
}


@dataclass(frozen=True, slots=True)
class SubAgentParts:
    """What sub-agents need.

    Attributes:
        endpoints: the operator's endpoints.
        client: asks them; a place is held for each request, never while a tool runs.
        calls: runs the calls of their tools.
        own_tools: the tools of the service, as tools of a run.
        mcp: the tools of MCP servers.
        context: reads the ends of conversations.
        tokens: counts tokens.
        files: stores results that are too large for a block.
    """

    endpoints: LlmEndpoints
    client: LlmClient
    calls: InnerCallParts
    own_tools: Mapping[str, RunTool]
    mcp: McpSources
    context: ContextTail
    tokens: TokenCounter
    files: ResultFiles


class SubAgentTool(ToolExecution):
    """Runs the calls of the variant ``sub-agent``."""

    def __init__(self, parts: SubAgentParts) -> None:
        self._parts = parts

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        execution = call.execution_as(SubAgentExecution)
        configuration = execution.agent_config
        wanted = configuration.model or {}
        try:
            endpoint = self._parts.endpoints.find(str(wanted.get("provider", DEFAULT_ENDPOINT)), "chat")
            model = endpoint.choose_model(wanted.get("name"))
        except EndpointRefusedError as exc:
            return call.fail(GatewayCode.ENDPOINT_NOT_CONFIGURED, str(exc))
        timeout_s = execution.timeout / 1000
        ends = asyncio.get_running_loop().time() + timeout_s
        try:
            async with asyncio.timeout_at(ends):
                tools = await list_inner_tools(
                    configuration, self._parts.own_tools, self._parts.mcp, call.principal
                )
        except McpUnavailableError as exc:
            return call.fail(GatewayCode.MCP_UNAVAILABLE, exc.message)
        except TimeoutError:
            return call.fail(GatewayCode.MCP_UNAVAILABLE, "its MCP servers did not list their tools in time")
        functions = [openai_tool(tool) for tool in tools.by_name.values()]
        chat = _Chat(self._parts.client, endpoint, model, functions, _turn_of(call, observer), timeout_s)
        calls = InnerCalls(self._parts.calls, call, observer, tools)
        loop = SubAgentLoop(
            LoopParts(
                chat,
                calls,
                partial(inner_call_id, call.tool_call_id),
                self._parts.tokens,
                int((configuration.loop or {}).get("maxSteps", STEPS_DEFAULT)),
                compact_json(functions) if functions else "",
            ),
            [],
        )
        try:
            async with asyncio.timeout_at(ends) as scope:
                context = await self._parts.context.read(call) if execution.include_context else ""
                loop.messages += _opening(configuration, call.input, context)
                finish = await loop.run()
        except TimeoutError:
            if not scope.expired():
                raise
            finish = "timeout"
        except SubAgentFailedError as exc:
            return _complete(call.fail(GatewayCode.SUB_AGENT_FAILED, str(exc), ret=_left(loop)), calls)
        if not loop.text:
            message = f"{_REACHED[finish]}, and it has written no text; give it a smaller task, or more room"
            return _complete(call.fail(GatewayCode.SUB_AGENT_LIMIT, message, ret=_left(loop)), calls)
        ret = {"text": loop.text, "finish": finish, **_left(loop)}
        return _complete(await self._parts.files.succeed(call, ret), calls)


@dataclass(frozen=True, slots=True)
class _Chat:
    """The `ChatModel` of one loop."""

    client: LlmClient
    endpoint: LlmEndpoint
    model: str
    functions: Sequence[dict[str, Any]]
    turn: Turn
    timeout_s: float

    async def ask(self, messages: Sequence[dict[str, Any]], step: int) -> ChatReply:
        body: dict[str, Any] = {"model": self.model, "messages": list(messages)}
        if self.functions:
            body["tools"] = list(self.functions)
        request = LlmRequest(_PATH, body, _REPLY_BYTES_MAX, self.timeout_s, _ATTEMPTS)
        # Those who follow the call learn of the queue before it began.
        turn = self.turn if step == 1 else replace(self.turn, on_queued=_ignore)
        try:
            response = await self.client.send(self.endpoint, request, turn)
            return await asyncio.to_thread(read_reply, response, self.endpoint.redactor)
        except LlmFailedError as exc:
            raise SubAgentFailedError(str(exc)) from exc
        except UnreadableReplyError as exc:
            name = self.endpoint.name
            raise SubAgentFailedError(f"the answer of the endpoint {name!r} is unusable: {exc}") from exc
        except (QueueFullError, QueueTimeoutError) as exc:
            if step == 1:
                raise
            raise SubAgentFailedError(f"there was no place for the next request: {exc.message}") from exc


def _turn_of(call: GatewayCall, observer: CallObserver) -> Turn:
    on_effect: Callable[[Effected], None] = call.effects.append
    return Turn(observer.owner, observer.on_queued, observer.on_running, on_effect)


def _ignore(_position: int) -> None:
    pass


def _opening(configuration: SubAgentConfiguration, params: dict[str, Any], context: str) -> list[dict[str, Any]]:
    """The messages that a loop begins with; some servers take no two messages of a user in a row."""
    agent = configuration.agent
    parts = [] if agent is None else [agent.system or "", _text_of(agent.instructions)]
    system = "\n\n".join(part for part in parts if part.strip())
    prompt = params.get("prompt")
    task = prompt if isinstance(prompt, str) and len(params) == 1 else compact_json(params)
    if context.strip():
        task = f"{_CONTEXT_HEAD}\n\n{context.strip()}\n\n{_TASK_HEAD}\n\n{task}"
    opening = [{"role": "system", "content": system}] if system else []
    return [*opening, {"role": "user", "content": task}]


def _text_of(instructions: Any) -> str:
    """Instructions as text: a text as it is, a list of texts as lines, any other value as JSON."""
    if instructions is None or isinstance(instructions, str):
        return instructions or ""
    if isinstance(instructions, list) and all(isinstance(line, str) for line in instructions):
        return "\n".join(instructions)
    return compact_json(instructions)


def _left(loop: SubAgentLoop) -> dict[str, Any]:
    return {"steps": loop.steps, "usage": loop.usage.to_json()}


def _complete(response: CallResponse, calls: InnerCalls) -> CallResponse:
    """The response with the files of the sub-agent's tools, and with what it lacks of them."""

    def complete(response: ToolCallResponse) -> ToolCallResponse:
        artifacts = [*calls.artifacts, *response.artifacts]
        return response.model_copy(update={"artifacts": artifacts, "warnings": list(calls.tools.warnings)})

    return change_response(response, complete)
