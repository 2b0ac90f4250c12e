"""``react.memsearch``: find earlier passages of a conversation by their meaning and their words."""

import asyncio
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from proofbox.contracts.blocks import TEXT_BYTES_MAX, Block
from proofbox.contracts.react_tools import MemsearchParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.identity import ConversationKey
from proofbox.service.react.memsearch.embedding_port import Embedder
from proofbox.service.react.memsearch.extract import NewPassage, extract_passages, find_target
from proofbox.service.react.memsearch.port import Candidate, Passage, PassageStore
from proofbox.service.react.memsearch.vectors import PassageVectors
from proofbox.service.react.memsearch.words import plain, word_scores
from proofbox.service.timeline.port import PlacedBlock, TimelineStore
from proofbox.service.timeline.truncation import json_bytes, truncate_evenly

_BLOCKS_AT_ONCE = 200
_CHARS_AT_ONCE = 60_000
_NEWNESS_SHARE = 0.2
"""How much of a score newness decides; the rest is meaning and words."""
_WORDS_MIN = 0.5
"""A text with half of the words of a query, by their weight, matches it."""
_NEAREST_SHARE = 0.75
"""Texts that are much farther from a query than the nearest one are not worth a place."""
_SURE_BEYOND_CHANCE = 0.09
"""Questions that no passage answers reach hardly more than this above what unrelated texts reach."""
_NOTHING = "Nothing was found that has to do with the query."
_UNSURE = "Nothing was found that surely has to do with the query; the nearest:"
_DAYS_MAX = 36_500
"""As far back as there is anything; more days than these are the same."""
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found.

    Attributes:
        passage: the passage.
        score: of 0 to 1.
        is_sure: it is nearer to the query than texts that have nothing to do with one, or has its words.
    """

    passage: Passage | NewPassage
    score: float
    is_sure: bool


@dataclass(frozen=True, slots=True)
class Found:
    """Hits, and how many passages could be searched by their words alone until their vectors are renewed."""

    hits: list[Hit]
    by_words: int = 0

    @property
    def title(self) -> str | None:
        """What a model has to know of the hits; None if that is nothing."""
        if not self.hits:
            return _NOTHING
        return None if any(hit.is_sure for hit in self.hits) else _UNSURE


class _Ranked(NamedTuple):
    """A candidate that has to do with the query: the better, the greater."""

    score: float
    number: int
    is_sure: bool


class MemorySearchTool:
    """Searches the messages and attachments of a conversation.

    Args:
        timelines: the event logs.
        passages: their passages.
        files: the texts of attachments.
        embedder: makes the vectors; None: passages are found by their words alone.
        half_life_days: after how many days newness counts half as much.

    Attributes:
        vectors: keeps the vectors of passages; None without an embedder.
    """

    def __init__(
        self,
        timelines: TimelineStore,
        passages: PassageStore,
        files: ConversationFiles,
        embedder: Embedder | None,
        *,
        half_life_days: float,
    ) -> None:
        self._timelines = timelines
        self._passages = passages
        self._files = files
        self._embedder = embedder
        self._half_life_days = half_life_days
        self.vectors = None if embedder is None else PassageVectors(passages, embedder)

    async def run(self, call: ReactCall[MemsearchParams]) -> ToolCallResponse:
        """Answers one call; nothing found is an answer too.

        Raises:
            StoreFailedError, StoreFullError: a store failed.
        """
        since_ts = _text(datetime.now(UTC) - timedelta(days=min(call.params.days, _DAYS_MAX)))
        if call.request.timeline is None:
            await self._catch_up(call.scope)
            found = await self._stored_hits(call, since_ts)
        else:
            found = await self._handed_hits(call, since_ts, call.request.timeline)
        content = _content(found.hits)
        blocks = [*call.opening_blocks(), call.write.result_json(content)]
        text = _text_of(content, found)
        return call.build_response(blocks, report=_report(found), text=text, ret=content)

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

    async def _stored_hits(self, call: ReactCall[MemsearchParams], since_ts: str) -> Found:
        targets = list(dict.fromkeys(call.params.targets))
        model = "" if self._embedder is None else self._embedder.model
        candidates = await self._passages.candidates(call.scope, targets, since_ts, model)
        if self.vectors is not None:
            candidates = await self.vectors.completed(call.scope, candidates)
        candidates = [row for row in candidates if _counts(row, call)]
        ranked = await self._ranked(call.params.query, candidates)
        hits: dict[int, Hit] = {}
        # The best passages of one long text may fill the first of the list: one hit for each block is wanted.
        for at in range(0, len(ranked), _BLOCKS_AT_ONCE):
            part = ranked[at : at + _BLOCKS_AT_ONCE]
            found = await self._passages.pick(call.scope, [number for _, number, _ in part])
            for score, number, is_sure in part:
                if number in found:
                    hits.setdefault(found[number].position, Hit(found[number], score, is_sure))
            if len(hits) >= call.params.top_k:
                break
        return Found(list(hits.values())[: call.params.top_k], sum(row.is_outdated for row in candidates))

    async def _handed_hits(
        self, call: ReactCall[MemsearchParams], since_ts: str, timeline: Sequence[Block]
    ) -> Found:
        """Hits among the blocks that came with the call; none of them is stored."""
        passages: list[NewPassage] = []
        files = self._files.of_call(call.scope, timeline)
        for position, block in enumerate(timeline, start=1):
            if find_target(block) in call.params.targets:
                passages += await extract_passages(PlacedBlock(position, block, len(block.base64 or "")), files)
        passages = [row for row in passages if row.ts >= since_ts and _counts(row, call)]
        texts = [row.text for row in passages]
        vectors = [b""] * len(texts) if self.vectors is None else await self.vectors.embed(texts)
        candidates = [
            Candidate(number, row.turn_id, row.target, row.ts, row.text, vector)
            for number, (row, vector) in enumerate(zip(passages, vectors, strict=True))
        ]
        hits: dict[int, Hit] = {}
        for score, number, is_sure in await self._ranked(call.params.query, candidates):
            hits.setdefault(passages[number].position, Hit(passages[number], score, is_sure))
        return Found(list(hits.values())[: call.params.top_k])

    async def _ranked(self, query: str, candidates: Sequence[Candidate]) -> list[_Ranked]:
        """What has to do with the query, the best first; among equals the newest first."""
        vector = b"" if self.vectors is None or not candidates else await self.vectors.embed_query(query)
        return await asyncio.to_thread(self._rank, query, vector, candidates)

    def _rank(self, query: str, vector: bytes, candidates: Sequence[Candidate]) -> list[_Ranked]:
        words = word_scores(query, [plain(row.text) for row in candidates])
        nearness, sure = self._nearness(vector, candidates)
        now = datetime.now(UTC).timestamp()
        scored = [
            _Ranked(self._score(near, worded, row.ts, now), row.number, near >= sure or worded >= _WORDS_MIN)
            for row, near, worded in zip(candidates, nearness, words, strict=True)
            if near or worded >= _WORDS_MIN
        ]
        return heapq.nlargest(len(scored), scored)

    def _nearness(self, vector: bytes, candidates: Sequence[Candidate]) -> tuple[list[float], float]:
        """The cosine of each candidate, 0 for those that are as near to the query as unrelated texts are.

        The second value is the cosine from which on a match is sure.
        """
        if self._embedder is None or not vector:
            return [0.0] * len(candidates), 1.0
        known = [number for number, row in enumerate(candidates) if row.vector]
        cosines = self._embedder.similarities(vector, [candidates[number].vector for number in known])
        chance = self._embedder.similarity_by_chance(vector, len(known))
        least = max(chance, _NEAREST_SHARE * max(cosines, default=0.0))
        nearness = [0.0] * len(candidates)
        for number, cosine in zip(known, cosines, strict=True):
            nearness[number] = cosine if cosine > least else 0.0
        return nearness, chance + _SURE_BEYOND_CHANCE

    def _score(self, near: float, worded: float, ts: str, now: float) -> float:
        """Of 0 to 1: what nearness leaves open, words fill up to the half; a few that all texts have, hardly."""
        matches = 1 - (1 - near) * (1 - worded**2 / 2)
        age_days = max(0.0, now - datetime.fromisoformat(ts).timestamp()) / _DAY_S
        newness: float = 0.5 ** (age_days / self._half_life_days)
        return matches * (1 - _NEWNESS_SHARE + _NEWNESS_SHARE * newness)


def _counts(passage: Candidate | NewPassage, call: ReactCall[MemsearchParams]) -> bool:
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


def _text_of(rows: Sequence[dict[str, Any]], found: Found) -> str:
    """The hits with their texts, for a model."""
    texts = [f"[{row['path']} ({row['score']:.2f}, {row['ts'][:10]})]\n{row['text']}" for row in rows]
    head = found.title or f"Found: {len(rows)}; react.read shows the whole of a path."
    return "\n\n".join([head, *texts, *_by_words(found)])


def _report(found: Found) -> str:
    lines = [f"- {hit.passage.path} ({hit.score:.2f})" for hit in found.hits]
    return "\n".join([found.title or "Found:", *lines, *_by_words(found)])


def _by_words(found: Found) -> list[str]:
    if not found.by_words:
        return []
    return [f"{found.by_words} passages were searched by words alone: their vectors are being renewed."]
