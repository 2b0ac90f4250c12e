"""The state of programs that wait for tools: files of a conversation, so that it outlives the process.

The conversation ``librechat-state:<execution>`` of the user has in its turn ``turn_history`` the request, the
calls of each round and their results. The results are inputs of the next run.
"""

import asyncio
import contextlib
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_request import Asset
from proofbox.service.artifacts.port import ArtifactStore, NewArtifact, StoredArtifact
from proofbox.service.conversations.service import Conversations
from proofbox.service.errors import ServiceError, UnknownConversationError
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.ids import STATE_S_MAX, is_id, new_id, state_of
from proofbox.service.facades.librechat.requests import ToolResult
from proofbox.service.facades.librechat.wrapping import HISTORY_TURN
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal

REQUEST_BYTES_MAX = 10_000_000
RESULT_BYTES_MAX = 5_000_000
RESULTS_BYTES_MAX = 40_000_000
BODY_BYTES_MAX = RESULTS_BYTES_MAX + REQUEST_BYTES_MAX
"""The bytes of a request: all results, with room for another spelling of JSON."""
CALLS_MAX = 200
_NAME = re.compile(r"(request|calls|results)-(\d{1,4})\.json")
_TOKEN = re.compile(r"([A-Za-z0-9_-]{21})\.(\d{1,4})")


def parse_token(token: str) -> tuple[str, int]:
    """Return the execution and the round that a continuation token names.

    Raises:
        RefusedError: it has another form.
    """
    found = _TOKEN.fullmatch(token)
    if found is None:
        raise RefusedError("Invalid continuation token")
    return found[1], int(found[2])


@dataclass(frozen=True, slots=True)
class ReplayState:
    """What is stored of an execution.

    Attributes:
        execution: its id.
        scope: the conversation with its files.
        request: the request that started it.
        stored: its files by kind and round.
    """

    execution: str
    scope: ConversationKey
    request: dict[str, Any]
    stored: dict[tuple[str, int], StoredArtifact] = field(default_factory=dict)

    @property
    def rounds(self) -> int:
        """The number of the last round whose calls were given to the client; 0: none."""
        return max((number for kind, number in self.stored if kind == "calls"), default=0)

    @property
    def results_bytes(self) -> int:
        """The bytes of all results."""
        return sum(each.size_bytes for (kind, _), each in self.stored.items() if kind == "results")

    def token(self) -> str:
        """Return the token that names the last round."""
        return f"{self.execution}.{self.rounds}"

    def history(self) -> list[Asset]:
        """Return the results as inputs of the next run."""
        return [
            Asset(physical_path=each.path.physical, uri=each.hosted_uri)
            for (kind, _), each in sorted(self.stored.items(), key=lambda item: item[0])
            if kind == "results"
        ]


class ReplayStates:
    """Stores and finds the state of executions; an execution is used by one request at a time.

    Args:
        artifacts: the store of its files.
        conversations: deletes it when its program has ended.
        clock: the time, in seconds since 1970.
    """

    def __init__(
        self, artifacts: ArtifactStore, conversations: Conversations, clock: Callable[[], float] = time.time
    ) -> None:
        self._artifacts = artifacts
        self._conversations = conversations
        self._clock = clock
        self._in_use: set[str] = set()

    async def start(self, user: Principal, request: dict[str, Any]) -> ReplayState:
        """Store the request of a new execution.

        Raises:
            RefusedError: it is too large.
            StoreFailedError, StoreFullError: the store failed.
        """
        content = await asyncio.to_thread(_dumped, request)
        if len(content) > REQUEST_BYTES_MAX:
            raise RefusedError(
                f"Request too large: {len(content)} bytes (limit {REQUEST_BYTES_MAX}); reduce code, tools or files",
                status=413,
            )
        execution = new_id()
        state = ReplayState(execution, ConversationKey(user, state_of(execution)), request)
        await self._save(state, "request", 0, content)
        return state

    async def find(self, user: Principal, execution: str) -> ReplayState:
        """Return the state of an execution.

        Raises:
            RefusedError: the user has none of that id, it has ended or is too old.
            StoreFailedError: the store failed.
        """
        scope = ConversationKey(user, state_of(execution))
        found = await self._artifacts.of_turn(scope, HISTORY_TURN) if is_id(execution) else []
        stored: dict[tuple[str, int], StoredArtifact] = {}
        for each in found:
            name = _NAME.fullmatch(each.path.rel)
            if name is not None and not each.removed:
                stored[name[1], int(name[2])] = each
        if ("request", 0) not in stored or self._age_s(stored) > STATE_S_MAX:
            raise RefusedError("Execution not found or expired", status=404)
        [content] = await self._artifacts.contents(scope, [stored["request", 0]])
        request = await asyncio.to_thread(json.loads, content)
        return ReplayState(execution, scope, request, stored)

    async def save_calls(self, state: ReplayState, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Store the calls of a new round, and return them with their ids.

        Raises:
            RefusedError: there are too many.
            StoreFailedError, StoreFullError: the store failed.
        """
        number = state.rounds + 1
        known = await self._count_calls(state)
        if known + len(calls) > CALLS_MAX:
            await self.end(state)
            raise RefusedError(
                f"Too many tool calls (limit {CALLS_MAX}); break the work into several programs", status=413
            )
        numbered = [
            {"id": f"call_{known + index:03}", "name": call["name"], "input": call["input"]}
            for index, call in enumerate(calls, 1)
        ]
        await self._save(state, "calls", number, await asyncio.to_thread(_dumped, numbered))
        return numbered

    async def calls_of(self, state: ReplayState, number: int) -> list[dict[str, Any]]:
        """Return the calls of a round; none if it has none.

        Raises:
            StoreFailedError: the store failed.
        """
        stored = state.stored.get(("calls", number))
        if stored is None:
            return []
        [content] = await self._artifacts.contents(state.scope, [stored])
        calls: list[dict[str, Any]] = await asyncio.to_thread(json.loads, content)
        return calls

    async def save_results(self, state: ReplayState, number: int, results: list[ToolResult]) -> None:
        """Store the results of a round.

        Raises:
            RefusedError: one is missing, twice there, of no call of the round, or too large.
            StoreFailedError, StoreFullError: the store failed.
        """
        calls = {call["id"]: call for call in await self.calls_of(state, number)}
        given = {result.call_id: result for result in results}
        if len(given) != len(results):
            raise RefusedError("tool_results: a call_id stands there twice; give one result for each call")
        if wrong := next((call_id for call_id in given if call_id not in calls), None):
            raise RefusedError(f"tool_results: call_id {wrong!r} is not one of the calls that wait for a result")
        if missing := next((call_id for call_id in calls if call_id not in given), None):
            raise RefusedError(f"tool_results: the result of {missing!r} is missing; give one for each call")
        entries = [_entry(call, given[call_id]) for call_id, call in calls.items()]
        dumped = await asyncio.to_thread(lambda: [_dumped(entry) for entry in entries])
        content = b"[" + b",".join(dumped) + b"]"
        if max(map(len, dumped)) > RESULT_BYTES_MAX or state.results_bytes + len(content) > RESULTS_BYTES_MAX:
            await self.end(state)
            raise RefusedError(
                f"Replay state grew too large: a result may have {RESULT_BYTES_MAX} bytes, all together "
                f"{RESULTS_BYTES_MAX}; break the work into several programs",
                status=413,
            )
        await self._save(state, "results", number, content)

    async def end(self, state: ReplayState) -> None:
        """Delete the state: its tokens are not known any more.

        Raises:
            StoreFailedError: the store failed.
        """
        with contextlib.suppress(UnknownConversationError):  # its user deleted it
            await self._conversations.delete(state.scope)

    async def discard(self, state: ReplayState) -> None:
        """Delete the state as `end`, or leave it to the retention sweeper if the store fails."""
        with contextlib.suppress(ServiceError):
            await self.end(state)

    @contextmanager
    def in_use(self, execution: str) -> Iterator[None]:
        """Keep other requests from an execution.

        Raises:
            RefusedError: another request uses it.
        """
        if execution in self._in_use:
            raise RefusedError(
                "Another continuation is already in flight for this execution; retry shortly", status=409
            )
        self._in_use.add(execution)
        try:
            yield
        finally:
            self._in_use.discard(execution)

    async def _count_calls(self, state: ReplayState) -> int:
        return sum([len(await self.calls_of(state, number)) for number in range(1, state.rounds + 1)])

    def _age_s(self, stored: dict[tuple[str, int], StoredArtifact]) -> float:
        newest = max(each.created for each in stored.values())
        return self._clock() - datetime.fromisoformat(newest).timestamp()

    async def _save(self, state: ReplayState, kind: str, number: int, content: bytes) -> None:
        path = FilePath(HISTORY_TURN, Namespace.FILES, f"{kind}-{number}.json")
        artifact = NewArtifact(
            path=path,
            source=FileContent(content),
            size_bytes=len(content),
            sha256=(await asyncio.to_thread(hashlib.sha256, content)).hexdigest(),
            mime="application/json",
            visibility="external" if kind == "results" else "internal",  # external files can be inputs
            description="",
            tool_call_id=None,
        )
        [state.stored[kind, number]] = await self._artifacts.save(state.scope, [artifact])


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def _entry(call: dict[str, Any], result: ToolResult) -> dict[str, Any]:
    return {
        "name": call["name"],
        "input": call["input"],
        "result": result.result,
        "is_error": bool(result.is_error),
        "error_message": result.error_message,
    }
