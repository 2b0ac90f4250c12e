"""Where a prompt cache may end: two points of a timeline that move forward only."""

from dataclasses import dataclass

from proofbox.contracts.blocks import Block
from proofbox.service.timeline.view import TimelineView

_READ_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """Where the cache points lie, and what ``react.hide`` may still change.

    Attributes:
        min_rounds: how many rounds there are before there is a pre-tail point.
        offset_rounds: how many rounds lie after the pre-tail point.
        editable_tail_tokens: how many tokens of text may stand after a block that is hidden.
    """

    min_rounds: int
    offset_rounds: int
    editable_tail_tokens: int


@dataclass(frozen=True, slots=True)
class CachePoints:
    """Positions of a timeline up to which a prompt cache may hold its text; 0 if there is none yet.

    Attributes:
        pre_tail: no hiding ever changes the text up to here.
        tail: the last block that the loop or the service produced.
    """

    pre_tail: int
    tail: int


async def cache_points(memory: TimelineView, policy: CachePolicy, last: int) -> CachePoints:
    """The cache points of a timeline that ends at ``last``.

    A round is an unbroken run of blocks of one tool call, or one block outside calls. Only the end of the timeline
    is read, backwards.

    Raises:
        StoreFailedError: the store failed.
    """
    wanted = max(policy.min_rounds, policy.offset_rounds + 1)
    ends: list[int] = []  # of the rounds, the last one first
    tail = 0
    call_id: str | None = None
    position = last
    while len(ends) < wanted or not tail:
        page = await memory.before(position, _READ_AT_ONCE)
        if not page:  # positions may begin above 1: a refused call that came again leaves a gap
            break
        for placed in page:
            if call_id is None or placed.block.call_id != call_id:
                ends.append(placed.position)
            call_id = placed.block.call_id
            tail = tail or (placed.position if _is_produced(placed.block) else 0)
            position = placed.position - 1
    return CachePoints(ends[policy.offset_rounds] if len(ends) >= wanted else 0, tail)


def _is_produced(block: Block) -> bool:
    return not block.type.startswith("user.") and block.type != "turn.header"
