"""A memory search over passages in memory: the real tool and model, without a database."""

from collections.abc import Collection, Sequence

from proofbox.contracts.react_tools import MemsearchParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.observer import CallObserver
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.react.memsearch.embedding_port import Embedder
from proofbox.service.react.memsearch.port import Candidate, Passage
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.timeline.port import PlacedBlock

TS = "2026-11-22T10:00:00.000Z"
_SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "bench")


def candidates(texts: Sequence[str], vectors: Sequence[bytes]) -> list[Candidate]:
    """Passages, each of which is a turn of its own; its number is its place."""
    both = enumerate(zip(texts, vectors, strict=True))
    return [Candidate(number, f"turn_{number}", "user", TS, text, vector) for number, (text, vector) in both]


class InMemory:
    """Passages of one conversation whose timeline has ended, and the search of it.

    Args:
        rows: the passages.
        embedder: makes vectors of queries; None: words alone are compared.
    """

    def __init__(self, rows: Sequence[Candidate], embedder: Embedder | None) -> None:
        self._rows = list(rows)
        memory = MemorySearchTool(self, self, None, embedder, half_life_days=90)  # type: ignore[arg-type]  # what is used
        self._story = DirectTool(MemsearchParams, memory.run)

    async def search(self, query: str, top_k: int = 5) -> list[int]:
        """The numbers of the passages that are found, the best first."""
        return [int(row["turn_id"].removeprefix("turn_")) for row in (await self.ask(query, top_k)).ret]

    async def ask(self, query: str, top_k: int = 5) -> ToolCallResponse:
        """The answer of the tool."""
        request = ToolCallRequest(
            tool_id="react.memsearch",
            tool_call_id="m",
            conversation_id="bench",
            turn_id="turn_now",
            params={"query": query, "targets": ["user"], "top_k": top_k},
        )
        answer = await self._story.prepare(_SCOPE, request).run(CallObserver())
        assert isinstance(answer, ToolCallResponse)
        return answer

    async def through(self, scope: ConversationKey) -> int:
        """All is there."""
        del scope
        return len(self._rows)

    async def after(
        self, scope: ConversationKey, position: int, limit: int, *, binaries: bool
    ) -> list[PlacedBlock]:
        """Nothing was said since."""
        del scope, position, limit, binaries
        return []

    async def candidates(
        self, scope: ConversationKey, targets: Collection[str], since_ts: str, model: str
    ) -> list[Candidate]:
        """All of them."""
        del scope, targets, since_ts, model
        return self._rows

    async def pick(self, scope: ConversationKey, ids: Collection[int]) -> dict[int, Passage]:
        """Passages by their ids."""
        del scope
        rows = ((number, self._rows[number]) for number in ids)
        return {
            number: Passage(number, row.turn_id, row.target, row.ts, f"ar:{row.turn_id}.user.prompt", row.text, b"")
            for number, row in rows
        }
