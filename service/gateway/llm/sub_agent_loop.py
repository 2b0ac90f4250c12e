"""The loop of a sub-agent: a model is asked, its tools run, it is asked again; every bound of it is here."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.llm.chat import ChatReply, TokenUsage, ToolRequest, result_message
from proofbox.service.gateway.llm.inner_calls import InnerResult
from proofbox.service.timeline.token_counter import TokenCounter, count_tokens

STEPS_DEFAULT = 5
CALLS_MAX = 20
TOKENS_MAX = 50_000
UNREADABLE_MAX = 3
Finish = Literal["stop", "length", "max_steps", "max_calls", "max_tokens", "timeout"]
"""Why a loop ended: the model's text is whole, the endpoint cut it, or a limit was reached."""


class SubAgentFailedError(Exception):
    """A sub-agent's model gives no usable answer; the text is one sentence for the caller's model."""


class ChatModel(Protocol):
    """A model of an endpoint."""

    async def ask(self, messages: Sequence[dict[str, Any]], step: int) -> ChatReply:
        """Its reply to a conversation.

        Raises:
            SubAgentFailedError: there is none.
        """


class CallRunner(Protocol):
    """Runs the calls of a sub-agent's tools; `InnerCalls` is one."""

    def knows(self, name: str) -> bool:
        """Whether there is a tool of that name."""

    async def run(self, name: str, params: dict[str, Any], call_id: str) -> InnerResult:
        """Runs one call of a tool that it knows."""


class CallIds(Protocol):
    """Makes the ids of calls."""

    def __call__(self, step: int, number: int) -> str:
        """The id of the call of a number, from 1, in a step, from 1."""


@dataclass(frozen=True, slots=True)
class LoopParts:
    """What a loop runs with.

    Attributes:
        model: its model.
        calls: runs its tools.
        call_id: makes the ids of its calls.
        tokens: counts tokens where the endpoint does not.
        steps_max: how often the model is asked.
        tools_text: the JSON text of its tools, which counts as part of each prompt.
    """

    model: ChatModel
    calls: CallRunner
    call_id: CallIds
    tokens: TokenCounter
    steps_max: int
    tools_text: str = ""


@dataclass(slots=True)
class SubAgentLoop:
    """The loop of one call. What it has reached can be read at any time, also after it was stopped.

    Attributes:
        messages: the conversation.
        text: the newest text of the model; empty if it wrote none.
        steps: the calls of its tools: ``tool``, ``ok``, ``ms``.
        usage: the tokens of all replies.
    """

    _parts: LoopParts
    messages: list[dict[str, Any]]
    text: str = ""
    steps: list[dict[str, Any]] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    _unreadable: int = 0

    async def run(self) -> Finish:
        """Runs it to its end, and returns why it ended. Calls that no step follows are not run.

        Raises:
            SubAgentFailedError: the model gives no usable answer.
            ServiceError: the service is at fault.
        """
        for step in range(1, self._parts.steps_max + 1):
            prompt = await self._count(self._parts.tools_text, *map(compact_json, self.messages))
            if self.usage.total + prompt > TOKENS_MAX:
                return "max_tokens"
            reply = await self._parts.model.ask(self.messages, step)
            self.usage.add(reply.usage or TokenUsage(prompt, await self._count(compact_json(reply.message))))
            self.text = reply.text if reply.text.strip() else self.text
            if not reply.requests:
                return _end_of(reply)
            if step == self._parts.steps_max:
                return "max_steps"
            if self.usage.total >= TOKENS_MAX:
                return "max_tokens"
            self.messages.append(reply.message)
            for number, request in enumerate(reply.requests, 1):
                if len(self.steps) == CALLS_MAX:
                    return "max_calls"
                self.messages.append(result_message(request, await self._call(request, step, number)))
        return "max_steps"

    async def _call(self, request: ToolRequest, step: int, number: int) -> str:
        """Runs a call, and returns what the model reads of it."""
        calls, began = self._parts.calls, time.monotonic()
        params = request.params
        if params is None or not calls.knows(request.name):
            self._unreadable += 1
            self.steps.append({"tool": request.name, "ok": False, "ms": 0.0})
            if self._unreadable == UNREADABLE_MAX:
                raise SubAgentFailedError(
                    f"the model wrote {UNREADABLE_MAX} calls in a row that cannot be read: arguments that are no "
                    "JSON object, or tools that it does not have"
                )
            reason = "there is no tool of this name" if params is not None else "the arguments are no JSON object"
            return compact_json({"error": {"code": "unreadable_call", "message": f"{reason}; nothing was run"}})
        self._unreadable = 0
        result = await calls.run(request.name, params, self._parts.call_id(step, number))
        took_ms = round((time.monotonic() - began) * 1000, 3)
        self.steps.append({"tool": request.name, "ok": result.ok, "ms": took_ms})
        return result.text

    async def _count(self, *texts: str) -> int:
        tokens = self._parts.tokens
        return await asyncio.to_thread(lambda: sum(count_tokens(tokens, text) for text in texts))


def _end_of(reply: ChatReply) -> Finish:
    """Why a loop ends with a reply that asks for no tool.

    Raises:
        SubAgentFailedError: it has no text, although it was not cut.
    """
    if reply.is_cut:
        return "length"
    if reply.is_withheld:
        raise SubAgentFailedError("the endpoint withheld the answer for its content")
    if not reply.text.strip():
        raise SubAgentFailedError("the model answered with neither a text nor a call of a tool")
    return "stop"
