"""Reads a timeline as a model sees it: hidden groups as one line, summaries in the place of their turns.

The cost follows what is shown: of turns for which a summary stands only the digests and plans are read.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from proofbox.contracts.blocks import Block
from proofbox.service.timeline.block_text import (
    PLAN,
    RenderedView,
    deleted_line,
    hidden_line,
    is_open_plan,
    own_line,
)
from proofbox.service.timeline.port import PlacedBlock, described_path
from proofbox.service.timeline.view import TimelineView
from proofbox.service.timeline.visibility import SUMMARY, Hiding, Visibility, comes_hidden, compute_visibility

_READ_AT_ONCE = 500
_OF_PATH_MAX = 10_000  # blocks of one path that are read to find those that a hiding hides


@dataclass(frozen=True, slots=True)
class ReadText:
    """The text of a stretch of a timeline.

    Attributes:
        text: what a model reads.
        last: where the timeline ended when it was read.
        revision: the position of the block that last changed earlier text; 0 if none ever did.
    """

    text: str
    last: int
    revision: int


async def read_text(memory: TimelineView, after: int) -> ReadText:
    """The text of all blocks after a position.

    Raises:
        StoreFailedError: the store failed.
    """
    last = await memory.last()
    visibility = await compute_visibility(memory, last)
    covered = await _list_covered(memory, visibility, after)
    reading = await _begun(memory, visibility, after, covered)
    pages = _pages(memory, visibility, covered, after, last)
    parts = [await asyncio.to_thread(reading.text, page) async for page in pages]
    parts.append(reading.end(last))
    return ReadText("".join(parts), last, await revision(memory, visibility))


@dataclass(frozen=True, slots=True)
class ReadParts:
    """What a model reads of consecutive blocks.

    Attributes:
        blocks: the blocks, marked with ``meta.hidden`` where they are hidden.
        texts: the text at the place of each.
    """

    blocks: list[Block]
    texts: list[str]


async def read_parts(memory: TimelineView, page: Sequence[PlacedBlock], *, is_end: bool) -> ReadParts:
    """The text of each of some consecutive blocks; all texts of a timeline together are its rendered text.

    Args:
        memory: the timeline.
        page: the blocks.
        is_end: whether the timeline ends after them: a summary may stand there.

    Raises:
        StoreFailedError: the store failed.
    """
    if not page:
        return ReadParts([], [])
    visibility = await compute_visibility(memory)
    after = page[0].position - 1
    reading = await _begun(memory, visibility, after, await _list_covered(memory, visibility, after))
    texts = await asyncio.to_thread(lambda: [reading.text((placed,)) for placed in page])
    if is_end:
        texts[-1] += reading.end(page[-1].position)
    return ReadParts(await with_visibility(memory, visibility, page), texts)


async def revision(memory: TimelineView, visibility: Visibility) -> int:
    """The position of the hiding or summary that last changed what stood before it; 0 if none did.

    Raises:
        StoreFailedError: the store failed.
    """
    newest_summary = max(visibility.covered_through.values(), default=0)
    for hiding in reversed(visibility.hidings):
        if hiding.position < newest_summary:
            break
        if hiding.replaces or await _hidden_by(memory, visibility, hiding):
            return hiding.position
    return newest_summary


async def with_visibility(memory: TimelineView, visibility: Visibility, page: Sequence[PlacedBlock]) -> list[Block]:
    """Consecutive blocks with ``meta.hidden`` where they are hidden, the first of each group with the replacement.

    Raises:
        StoreFailedError: the store failed.
    """
    if not page or not visibility.hidings:
        return [placed.block for placed in page]
    groups = _Groups(await _begun_groups(memory, visibility, page[0].position - 1))
    # Digests are parsed for it.
    hidings = await asyncio.to_thread(lambda: [visibility.hiding(placed) for placed in page])
    return [_mark_block(placed.block, hiding, groups) for placed, hiding in zip(page, hidings, strict=True)]


def _mark_block(block: Block, hiding: Hiding | None, groups: "_Groups") -> Block:
    if hiding is None:
        return block
    replacement = {"replacement_text": hiding.replacement} if groups.begins(hiding) else {}
    return block.model_copy(update={"meta": {**block.meta, "hidden": True, **replacement}})


class _Groups:
    """The groups of hidden blocks; the first block of each shows its line."""

    def __init__(self, begun: set[Hiding]) -> None:
        self._begun = begun

    def begins(self, hiding: Hiding) -> bool:
        """Whether the block at hand is the first one that a hiding hides."""
        is_first = hiding not in self._begun
        self._begun.add(hiding)
        return is_first


class _Reading:
    """Turns the blocks after a position into text, page after page."""

    def __init__(
        self, visibility: Visibility, groups: _Groups, view: RenderedView, after: int, staying: frozenset[int]
    ) -> None:
        self._visibility = visibility
        self._staying = staying
        self._groups = groups
        self._view = view
        self._at = after
        self._summaries = deque(summary for summary in visibility.summaries if summary.place > after)

    def text(self, page: Sequence[PlacedBlock]) -> str:
        """The text of blocks, and of the summaries that stand before or among them."""
        parts: list[str] = []
        for placed in page:
            if placed.position != self._at + 1:
                self._view.skip_covered()
            self._at = placed.position
            parts += [self.end(placed.position), self.part(placed)]
        return "".join(parts)

    def part(self, placed: PlacedBlock) -> str:
        """The text of one block."""
        if placed.block.type == SUMMARY:
            return self._view.pass_summary()
        if self._visibility.is_covered(placed):
            return self._view.covered(placed, stays=placed.position in self._staying)
        hiding = self._visibility.hiding(placed)
        return self._view.part(placed) if hiding is None else self._view.hidden(placed, self._line(hiding))

    def end(self, through: int) -> str:
        """The text of the summaries up to a place that were not shown yet."""
        parts = []
        while self._summaries and self._summaries[0].place <= through:
            parts.append(self._summary(self._summaries.popleft().placed))
        return "".join(parts)

    def _summary(self, placed: PlacedBlock) -> str:
        if comes_hidden(placed.block):
            return self._view.hidden_summary(own_line(placed.block))
        hiding = self._visibility.hiding(placed)
        return self._view.summary(placed) if hiding is None else self._view.hidden_summary(self._line(hiding))

    def _line(self, hiding: Hiding) -> str | None:
        if not self._groups.begins(hiding):
            return None
        if hiding.is_deletion:
            return deleted_line(hiding.replacement)
        return hidden_line(hiding.replacement, hiding.path)


async def _begun(
    memory: TimelineView, visibility: Visibility, after: int, covered: Sequence[PlacedBlock]
) -> _Reading:
    """A reading that goes on after a position as if all before it had been read; ``covered`` as `_list_covered`."""
    groups = _Groups(await _begun_groups(memory, visibility, after, shown=True))
    view = RenderedView(turns=True, begins=after == 0)
    reading = _Reading(visibility, groups, view, after, await _list_staying(memory, visibility, covered))
    position = after
    while position in visibility.summary_positions:
        position -= 1
    for placed in await memory.group_before(position) if position else []:
        reading.part(placed)
    if position != after:
        view.pass_summary()
    return reading


async def _begun_groups(
    memory: TimelineView, visibility: Visibility, after: int, *, shown: bool = False
) -> set[Hiding]:
    """The hidings whose first block lies at or before a position; with ``shown`` its place in the text counts."""
    begun = set()
    for hiding in visibility.hidings:
        if not hiding.since <= after < hiding.position:
            continue
        found = await _hidden_by(memory, visibility, hiding, shown=shown)
        if any((visibility.place(placed) if shown else placed.position) <= after for placed in found):
            begun.add(hiding)
    return begun


async def _hidden_by(
    memory: TimelineView, visibility: Visibility, hiding: Hiding, *, shown: bool = True
) -> list[PlacedBlock]:
    """What a hiding hides; with ``shown`` only what no summary stands for."""
    found = await memory.of_path(hiding.path, _OF_PATH_MAX, binaries=False)
    hidden = await asyncio.to_thread(lambda: [placed for placed in found if visibility.hiding(placed) == hiding])
    return [placed for placed in hidden if not shown or _is_in_place(visibility, placed)]


def _is_in_place(visibility: Visibility, placed: PlacedBlock) -> bool:
    if placed.block.type == SUMMARY:
        return any(summary.placed.position == placed.position for summary in visibility.summaries)
    return not visibility.is_covered(placed)


async def _pages(
    memory: TimelineView, visibility: Visibility, covered: Sequence[PlacedBlock], after: int, last: int
) -> AsyncIterator[Sequence[PlacedBlock]]:
    """The blocks after a position that have something to show, in order: whole stretches, and digests between."""
    waiting = deque(covered)
    for start, end in _stretches(visibility, after, last):
        between = []
        while waiting and waiting[0].position <= end:
            placed = waiting.popleft()
            if placed.position < start:
                between.append(placed)
        yield between
        position = start - 1
        while position < end:
            page = await memory.after(position, min(_READ_AT_ONCE, end - position))
            if not page:
                return
            yield page
            position = page[-1].position
    yield tuple(waiting)


async def _list_staying(
    memory: TimelineView, visibility: Visibility, covered: Sequence[PlacedBlock]
) -> frozenset[int]:
    """The positions of covered blocks that are shown: the newest digest of each artifact, and the open plan.

    It depends on what stands before the newest summary alone, so the text changes with a summary only.
    """
    if not covered:
        return frozenset()
    newest_summary = max(visibility.covered_through.values())
    newest = {described_path(placed.block): placed for placed in covered if placed.block.type != PLAN}
    deleted = {
        (hiding.path, hiding.position)
        for hiding in visibility.hidings
        if hiding.is_deletion and hiding.position <= newest_summary
    }
    gone = {path for path, position in deleted if path in newest and newest[path].position < position}
    staying = {placed.position for path, placed in newest.items() if path not in gone}
    plan = next((placed for placed in reversed(covered) if placed.block.type == PLAN), None)
    if plan is not None and is_open_plan(plan.block) and not visibility.is_hidden(plan):
        turns = [
            span.turn_id for span in visibility.spans if span.first <= newest_summary and plan.position < span.last
        ]
        later = await memory.digests_of(turns)
        if not any(
            found.block.type == PLAN and plan.position < found.position <= newest_summary for found in later
        ):
            staying.add(plan.position)
    return frozenset(staying)


async def _list_covered(memory: TimelineView, visibility: Visibility, after: int) -> list[PlacedBlock]:
    """The digests and plans after a position for which a summary stands, in order."""
    turns = [
        span.turn_id
        for span in visibility.spans
        if visibility.covered_through.get(span.turn_id, 0) > after < span.last
    ]
    found = await memory.digests_of(turns) if turns else []
    return [placed for placed in found if placed.position > after and visibility.is_covered(placed)]


def _stretches(visibility: Visibility, after: int, last: int) -> list[tuple[int, int]]:
    """The stretches after a position that hold blocks for which no summary stands, first and last position each."""
    if not visibility.covered_through:
        return [(after + 1, last)]
    stretches: list[tuple[int, int]] = []
    for span in visibility.spans:
        start = max(span.first, visibility.covered_through.get(span.turn_id, 0) + 1, after + 1)
        if start <= span.last:
            stretches.append((start, span.last))
    merged: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if merged and start <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
