"""What a model sees of a timeline: not what ``react.hide`` hid, not what a summary of earlier turns stands for.

Nothing stored changes by either. The block that hides (the result of ``react.hide``) and the block that sums up
(``conv.range.summary``) lie over the blocks before them:

- a hiding lies over the blocks of one logical path, and those whose digest describes it, from ``meta.hides_from``
  on up to itself. A later block of that path is visible again.
- a summary lies over all blocks before it of the turns in ``meta.covered_turn_ids``. It is shown where the first of
  them stood, until a later summary covers all of those turns.
- a block whose own ``meta.hidden`` is true is hidden.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proofbox.contracts.blocks import Block
from proofbox.service.timeline.port import PlacedBlock, TurnSpan, canonicalize, described_path, hidden_path
from proofbox.service.timeline.view import TimelineView

SUMMARY = "conv.range.summary"


@dataclass(frozen=True, slots=True)
class Hiding:
    """What one call of ``react.hide`` hid.

    Attributes:
        position: of the block that hides; everything that it hides lies before it.
        path: the logical path that it hides.
        since: the first position that it hides.
        replacement: the text in its place.
        is_deletion: the file behind the path was deleted: ``react.read`` brings nothing back.
        replaces: it hides nothing; blocks before it were taken away, of a refused call that came again.
    """

    position: int
    path: str
    since: int
    replacement: str
    is_deletion: bool = False
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of earlier turns.

    Attributes:
        placed: its block.
        turns: those of its turns that began before it.
        place: the position where it is shown.
    """

    placed: PlacedBlock
    turns: frozenset[str]
    place: int


class Visibility:
    """Which blocks of a timeline a model sees; see the module.

    Args:
        hidings: the blocks that hide others, in order.
        summaries: the blocks that sum up turns, in order.
        turns: where each turn begins and ends; not needed without summaries.
    """

    def __init__(
        self, hidings: Iterable[PlacedBlock], summaries: Iterable[PlacedBlock], turns: Iterable[TurnSpan]
    ) -> None:
        self.hidings = [_hiding(placed) for placed in hidings]
        self.spans = list(turns)
        began = {span.turn_id: span.first for span in self.spans}
        all_summaries = [_summary(placed, began) for placed in summaries]
        self.summary_positions = frozenset(summary.placed.position for summary in all_summaries)
        self.covered_through: dict[str, int] = {}
        """Turns that a summary covers, and up to which position."""
        for summary in all_summaries:
            self.covered_through.update(dict.fromkeys(summary.turns, summary.placed.position))
        self.summaries = sorted(
            (summary for summary in all_summaries if not self._is_replaced(summary)),
            key=lambda summary: (summary.place, summary.placed.position),
        )
        """The summaries that are shown, in the order of their places."""
        self._hidings_of: dict[str, list[Hiding]] = defaultdict(list)
        for hiding in self.hidings:
            self._hidings_of[hiding.path].append(hiding)

    def is_covered(self, placed: PlacedBlock) -> bool:
        """Whether a summary stands for the block."""
        return placed.position <= self.covered_through.get(placed.block.turn_id, 0)

    def hiding(self, placed: PlacedBlock) -> Hiding | None:
        """What hides the block; None if nothing does, or if it came hidden."""
        if not self._hidings_of or comes_hidden(placed.block):
            return None
        paths = {canonicalize(placed.block.path), described_path(placed.block)}
        found = [
            self._first_over(placed.position, self._hidings_of[path]) for path in paths if path in self._hidings_of
        ]
        return min((hiding for hiding in found if hiding), key=lambda hiding: hiding.position, default=None)

    def is_hidden(self, placed: PlacedBlock) -> bool:
        """Whether the block came hidden, or a hiding lies over it."""
        return comes_hidden(placed.block) or self.hiding(placed) is not None

    def shows(self, placed: PlacedBlock) -> bool:
        """Whether a model sees the block where the rendered view stands now."""
        if self.is_hidden(placed):
            return False
        if placed.block.type == SUMMARY:
            return any(summary.placed.position == placed.position for summary in self.summaries)
        return not self.is_covered(placed)

    def place(self, placed: PlacedBlock) -> int:
        """Where the block is shown: a summary stands in the place of its turns, any other block in its own."""
        found = (summary.place for summary in self.summaries if summary.placed.position == placed.position)
        return next(found, placed.position)

    def _is_replaced(self, summary: Summary) -> bool:
        position = summary.placed.position
        return bool(summary.turns) and all(self.covered_through[turn] > position for turn in summary.turns)

    @staticmethod
    def _first_over(position: int, hidings: Sequence[Hiding]) -> Hiding | None:
        start = bisect_right(hidings, position, key=lambda hiding: hiding.position)
        return next((hiding for hiding in hidings[start:] if hiding.since <= position), None)


async def compute_visibility(memory: TimelineView, last: int | None = None) -> Visibility:
    """What a model sees of a conversation; as its timeline was when it ended at ``last``, if that is given.

    Raises:
        StoreFailedError: the store failed.
    """
    end = await memory.last() if last is None else last
    hidings = [placed for placed in await memory.hidings(0) if placed.position <= end]
    summaries = [placed for placed in await memory.summaries() if placed.position <= end]
    turns = await memory.turns() if summaries else []
    return Visibility(
        hidings,
        summaries,
        (TurnSpan(span.turn_id, span.first, min(span.last, end)) for span in turns if span.first <= end),
    )


def comes_hidden(block: Block) -> bool:
    """Whether a block is marked as hidden: a loop added it so."""
    return block.meta.get("hidden") is True


def _hiding(placed: PlacedBlock) -> Hiding:
    meta = placed.block.meta
    since = meta.get("hides_from")
    return Hiding(
        placed.position,
        canonicalize(hidden_path(placed.block) or ""),
        since if isinstance(since, int) else 1,
        str(meta.get("replacement_text", "")),
        meta.get("deletes") is True,
        meta.get("replaces") is True and placed.block.type == "react.notice",
    )


def _summary(placed: PlacedBlock, began: dict[str, int]) -> Summary:
    named = placed.block.meta.get("covered_turn_ids")
    turn_ids = [turn_id for turn_id in named if isinstance(turn_id, str)] if isinstance(named, list) else []
    turns = frozenset(turn_id for turn_id in turn_ids if began.get(turn_id, placed.position) < placed.position)
    return Summary(placed, turns, min((began[turn_id] for turn_id in turns), default=placed.position))
