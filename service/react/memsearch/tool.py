"""``react.memsearch``: find earlier passages of a conversation by meaning."""

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX, Block
from proofbox.contracts.react_tools import MemsearchParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.identity import ConversationKey
from proofbox.service.react.memsearch.embedding_port import Embedder
from proofbox.service.react.memsearch.extract import NewPassage, extract_passages, find_target
from proofbox.service.react.memsearch.port import Passage, PassageStore
from proofbox.service.timeline.port import PlacedBlock, TimelineStore
from proofbox.service.timeline.truncation import json_bytes, truncate_evenly

_BLOCKS_AT_ONCE = 200
_CHARS_AT_ONCE = 60_000
_TEXTS_AT_ONCE = 32
_EMBEDDED_AT_ONCE = 256
"""So many vectors are stored at a time: a search that is cancelled loses no more than these."""
_NEWNESS_SHARE = 0.2
"""How much of a score newness decides; the rest is meaning alone."""
_COSINE_MIN = 0.15
"""Texts that are not nearer than this do not match the query."""
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found, with its score."""

    passage: Passage | NewPassage
    score: float


class MemorySearchTool:
    """Searches the messages and attachments of a conversation.

    Args:
        timelines: the event logs.
        passages: their passages that have vectors.
        files: the texts of attachments.
        embedder: makes the vectors.
        half_life_days: after how many days newness counts half as much.
    """

    def __init__(
        self,
        timelines: TimelineStore,
        passages: PassageStore,
        files: ConversationFiles,
        embedder: Embedder,
        *,
        half_life_days: float,
    ) -> None:
        self._timelines = timelines
        self._passages = passages
        self._files = files
        self._embedder = embedder
        self._half_life_days = half_life_days
        self._embedding = asyncio.Lock()

    async def run(self, call: ReactCall[MemsearchParams]) -> ToolCallResponse:
        """Answers one call; nothing found is an answer too.

        Raises:
            StoreFailedError, StoreFullError: a store failed.
        """
        params = call.params
        since_ts = _text(datetime.now(UTC) - timedelta(days=params.days))
        [query] = await self._embed([params.query])
        if call.request.timeline is None:
            await self._catch_up(call.scope)
            hits = await self._stored_hits(call, query, since_ts)
        else:
            hits = await self._handed_hits(call, query, since_ts, call.request.timeline)
        content = _content(hits)
        blocks = [*call.opening_blocks(), call.write.result_json(content)]
        return call.build_response(blocks, report=_report(hits), text=_text_of(content), ret=content)

    async def _catch_up(self, scope: ConversationKey) -> None:
        """Stores the passages of blocks since the last search; another call may do the same at the same time.

        They have no vectors yet: a search makes those of its own targets, which may be few of them.
        """
        while True:
            since = await self._passages.through(scope)
            blocks = await self._timelines.after(scope, since, _BLOCKS_AT_ONCE, binaries=False)
            if not blocks:
                return
            new_passages, through = await self._extract(scope, blocks)
            new = [
                Passage(row.position, row.turn_id, row.target, row.ts, row.path, row.text, b"")
                for row in new_passages
            ]
            await self._passages.add(scope, new, since=since, through=through)

    async def _vectors(
        self, scope: ConversationKey, targets: Sequence[str], since_ts: str
    ) -> list[tuple[int, str, bytes]]:
        """Id, time and vector of the passages of some targets; missing vectors are made and stored first."""
        known = await self._passages.vectors(scope, targets, since_ts)
        missing = [number for number, _, vector in known if not vector]
        made: dict[int, bytes] = {}
        for at in range(0, len(missing), _EMBEDDED_AT_ONCE):
            picked = await self._passages.pick(scope, missing[at : at + _EMBEDDED_AT_ONCE])
            vectors = await self._embed([passage.text for passage in picked.values()])
            some = dict(zip(picked, vectors, strict=True))
            await self._passages.set_vectors(scope, some)
            made |= some
        every = ((number, ts, vector or made.get(number, b"")) for number, ts, vector in known)
        return [row for row in every if row[2]]

    async def _embed(self, texts: Sequence[str]) -> list[bytes]:
        """The vectors of some texts. One call at a time, a few texts each: a long one holds up nobody for long."""
        vectors: list[bytes] = []
        for at in range(0, len(texts), _TEXTS_AT_ONCE):
            async with self._embedding:
                vectors += await asyncio.to_thread(self._embedder.embed, texts[at : at + _TEXTS_AT_ONCE])
        return vectors

    async def _extract(self, scope: ConversationKey, blocks: Sequence[PlacedBlock]) -> tuple[list[NewPassage], int]:
        """The passages of some blocks, and up to which position: long texts are taken a few at a time."""
        found: list[NewPassage] = []
        chars = 0
        files = self._files.of_call(scope)
        for placed in blocks:
            rows = await extract_passages(placed, files)
            found += rows
            chars += sum(len(row.text) for row in rows)
            if chars > _CHARS_AT_ONCE:
                return found, placed.position
        return found, blocks[-1].position

    async def _stored_hits(self, call: ReactCall[MemsearchParams], query: bytes, since_ts: str) -> list[Hit]:
        targets = list(dict.fromkeys(call.params.targets))
        known = await self._vectors(call.scope, targets, since_ts)
        ranked = await asyncio.to_thread(self._rank, query, known)
        hits: dict[int, Hit] = {}
        # The best passages of one long text may fill the first of the list: one hit for each block is wanted.
        for at in range(0, len(ranked), _BLOCKS_AT_ONCE):
            part = ranked[at : at + _BLOCKS_AT_ONCE]
            found = await self._passages.pick(call.scope, [number for _, number in part])
            for score, number in part:
                passage = found.get(number)
                if passage is not None and _counts(passage, call):
                    hits.setdefault(passage.position, Hit(passage, score))
                if len(hits) == call.params.top_k:
                    return list(hits.values())
        return list(hits.values())

    async def _handed_hits(
        self, call: ReactCall[MemsearchParams], query: bytes, since_ts: str, timeline: Sequence[Block]
    ) -> list[Hit]:
        """Hits among the blocks that came with the call; none of them is stored."""
        passages: list[NewPassage] = []
        files = self._files.of_call(call.scope, timeline)
        for position, block in enumerate(timeline, start=1):
            if find_target(block) in call.params.targets:
                passages += await extract_passages(PlacedBlock(position, block, len(block.base64 or "")), files)
        passages = [row for row in passages if row.ts >= since_ts and _counts(row, call)]
        vectors = await self._embed([row.text for row in passages])
        known = [(index, row.ts, vector) for index, (row, vector) in enumerate(zip(passages, vectors, strict=True))]
        hits: dict[int, Hit] = {}
        for score, index in await asyncio.to_thread(self._rank, query, known):
            hits.setdefault(passages[index].position, Hit(passages[index], score))
        return list(hits.values())[: call.params.top_k]

    def _rank(self, query: bytes, known: Sequence[tuple[int, str, bytes]]) -> list[tuple[float, int]]:
        """Score and id of what has to do with the query, the best first; among equals the newest first."""
        cosines = self._embedder.similarities(query, [vector for _, _, vector in known])
        now = datetime.now(UTC).timestamp()
        scored = [
            (self._score(cosine, ts, now), number)
            for (number, ts, _), cosine in zip(known, cosines, strict=True)
            if cosine >= _COSINE_MIN
        ]
        return heapq.nlargest(len(scored), scored)

    def _score(self, cosine: float, ts: str, now: float) -> float:
        age_days = max(0.0, now - datetime.fromisoformat(ts).timestamp()) / _DAY_S
        newness: float = 0.5 ** (age_days / self._half_life_days)
        return cosine * (1 - _NEWNESS_SHARE + _NEWNESS_SHARE * newness)


def _counts(passage: Passage | NewPassage, call: ReactCall[MemsearchParams]) -> bool:
    """Whether a passage may be an answer: words of the current turn are in view, its prompt is the question."""
    return passage.target == "attachment" or passage.turn_id != call.turn_id


def _text(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _content(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """The result block: 20,480 bytes at most, shared among the texts."""
    rows = [
        {
            "turn_id": hit.passage.turn_id,
            "text": "",
            "score": round(hit.score, 3),
            "ts": hit.passage.ts,
            "path": hit.passage.path,
            "target": hit.passage.target,
        }
        for hit in hits
    ]
    texts = truncate_evenly([hit.passage.text for hit in hits], max(0, TEXT_BYTES_MAX - json_bytes(rows)))
    for row, text in zip(rows, texts, strict=True):
        row["text"] = text
    return rows


def _text_of(rows: Sequence[dict[str, Any]]) -> str:
    """The hits with their texts, for a model."""
    if not rows:
        return "Nothing was found."
    found = [f"[{row['path']} ({row['score']:.2f}, {row['ts'][:10]})]\n{row['text']}" for row in rows]
    return "\n\n".join([f"Found: {len(rows)}; react.read shows the whole of a path.", *found])


def _report(hits: Sequence[Hit]) -> str:
    if not hits:
        return "Nothing was found."
    return "\n".join(["Found:", *(f"- {hit.passage.path} ({hit.score:.2f})" for hit in hits)])
