"""Makes calls of one conversation in-process, against the real service and the real engine."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.paths import FilePath
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import Attachment, ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.app.bootstrap import Service
from proofbox.service.calls.service import Answer, CallEvent, CallTicket
from proofbox.service.identity import ConversationKey

# Promises nothing and brings everything back: for tests that look at what a program did, not at a contract.
ANYTHING: tuple[dict[str, Any], ...] = ({"glob": "**/*", "description": "whatever it writes", "min_count": 0},)

_numbers = itertools.count(1)


@dataclass
class Caller:
    """A conversation of its own. Calling it runs a program and gives its response.

    A contract may be written as a list of file names, as entries, or as anything a model could send.
    """

    service: Service
    conversation: str = field(default_factory=lambda: f"conversation-{next(_numbers)}")
    turn: str = "turn_1"
    last_id: str = ""

    @property
    def scope(self) -> ConversationKey:
        return ConversationKey(self.service.principal, self.conversation)

    async def __call__(self, code: str | None, contract: Any = ANYTHING, **fields: Any) -> ToolCallResponse:
        answer = await (await self.submit(code, contract, **fields)).answer()
        assert not answer.is_problem, answer.body
        assert answer.http_status == 200
        return ToolCallResponse.model_validate_json(answer.body)

    async def tool(self, tool_id: str, params: dict[str, Any]) -> ToolCallResponse:
        """Calls a tool that takes no code."""
        return await self.of({**self.body(None), "tool_id": tool_id, "params": params})

    async def problem(self, code: str | None, contract: Any = ANYTHING, **fields: Any) -> Problem:
        """The problem that a call is answered with after it was accepted."""
        answer: Answer = await (await self.submit(code, contract, **fields)).answer()
        assert answer.is_problem, answer.body
        return Problem.model_validate_json(answer.body)

    async def of(self, body: dict[str, Any]) -> ToolCallResponse:
        """Makes a call of this body."""
        ticket = await self.service.calls.submit(
            self.service.principal,
            ToolCallRequest.model_validate(body),
            idempotency_key=None,
            request_id="test",
            detached=False,
        )
        answer = await ticket.answer()
        assert not answer.is_problem, answer.body
        return ToolCallResponse.model_validate_json(answer.body)

    async def submit(self, code: str | None, contract: Any = ANYTHING, **fields: Any) -> CallTicket:
        request = ToolCallRequest.model_validate(self.body(code, contract, **fields))
        return await self.service.calls.submit(
            self.service.principal, request, idempotency_key=None, request_id="test", detached=False
        )

    def body(self, code: str | None, contract: Any = ANYTHING, **fields: Any) -> dict[str, Any]:
        """The JSON of a request; ``fields`` are fields of the request or parameters of the tool."""
        self.last_id = fields.pop("tool_call_id", None) or f"call_{next(_numbers)}"
        params = {name: fields.pop(name) for name in ExecParams.model_fields if name in fields}
        language = fields.pop("language", Language.PYTHON)
        return {
            "tool_id": exec_tool_id(language),
            "tool_call_id": self.last_id,
            "conversation_id": self.conversation,
            "turn_id": fields.pop("turn_id", self.turn),
            "params": params if "explore" in params else {"contract": _entries(contract), **params},
            "code": code,
            **fields,
        }

    async def events(self, call_id: str | None = None) -> list[CallEvent]:
        """All events of a call, waiting for its end; of the last one if no id is given."""
        followed = await self.follow(call_id)
        return [event async for event in followed]

    async def follow(self, call_id: str | None = None) -> AsyncIterator[CallEvent]:
        return await self.service.calls.events(
            self.service.principal, call_id or self.last_id, self.conversation, after=0
        )

    async def output(self, stream: str = "stdout") -> str:
        """What the last call passed on of a stream."""
        return "".join(json.loads(event.data)["text"] for event in await self.events() if event.name == stream)

    async def attach(self, name: str, content: bytes, turn_id: str | None = None) -> Attachment:
        """Uploads an attachment of a turn."""

        async def pieces() -> AsyncIterator[bytes]:
            yield content

        stored = await self.service.attachments.store(self.scope, turn_id or self.turn, name, pieces(), None)
        return stored.attachment

    async def stored(self, physical: str) -> bytes | None:
        """The bytes of the latest version of a path; None if the conversation has none."""
        store = self.service.artifacts
        artifact = await store.latest(self.scope, FilePath.from_physical(physical))
        if artifact is None:
            return None
        async with store.staging() as staging:
            local = await store.fetch(self.scope, artifact, staging)
            return await asyncio.to_thread(local.read_bytes)

    async def text(self, rel: str) -> str:
        """The text of a file of the current turn."""
        content = await self.stored(f"{self.turn}/files/{rel}")
        assert content is not None, f"{rel} is not stored"
        return content.decode()


def _entries(contract: Any) -> Any:
    if isinstance(contract, Sequence) and not isinstance(contract, str):
        return [
            {"filename": entry, "description": f"the file {entry}"} if isinstance(entry, str) else entry
            for entry in contract
        ]
    return contract
