"""The timeline: added blocks, pages that are read, and the sources of a conversation."""

from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from proofbox.contracts.blocks import Block, GivenBlock
from proofbox.contracts.logical_paths import parse
from proofbox.contracts.paths import FilePath, UnsafePathError, is_turn_id
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.contracts.wire_model import WireModel

APPEND_BLOCKS_MAX = 1_000
PAGE_BLOCKS_MAX = 1_000
_TURN_ID_FORM = "a turn id is turn_ and then any of A-Z a-z 0-9 _ . -"
CORE_TYPES = frozenset(
    {
        "turn.header",
        "user.prompt",
        "user.attachment.meta",
        "user.attachment",
        "assistant.completion",
        "agent.log.header",
        "react.plan",
        "react.plan.ack",
        "react.tool.call",
        "react.tool.code",
        "react.tool.result",
        "react.notice",
        "react.notes",
        "react.note",
        "react.completion",
        "conv.range.summary",
        "stage.gate",
        "stage.coordinator",
        "stage.feedback",
        "stage.clarification",
        "stage.clarification.resolved",
    }
)


def canonical_path(text: str) -> str:
    """The one spelling of a logical path.

    Raises:
        UnsafePathError: it has no form of a logical path.
    """
    path = parse(text)
    return path.logical if isinstance(path, FilePath) else str(path)


class AppendedBlock(GivenBlock):
    """A block of a loop on its way into the stored timeline."""

    @field_validator("type")
    @classmethod
    def _known_type(cls, kind: str) -> str:
        if kind not in CORE_TYPES:
            raise ValueError(f"'{kind[:60]}' is none of {', '.join(sorted(CORE_TYPES))}")
        return kind

    @field_validator("turn_id")
    @classmethod
    def _sound_turn_id(cls, turn_id: str) -> str:
        if not is_turn_id(turn_id):
            missing = "" if turn_id else "it is missing, and the path names no turn; "
            raise ValueError(missing + _TURN_ID_FORM)
        return turn_id

    @field_validator("path")
    @classmethod
    def _canonical_path(cls, path: str) -> str:
        try:
            return canonical_path(path) if path else path
        except UnsafePathError as exc:
            raise ValueError(f"{exc}; leave the path out for a block that has none") from exc

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if self.text is not None and self.base64 is not None:
            raise ValueError("a block has text or base64, not both")
        if self.type == "conv.range.summary":
            _check_summary(self)
        return self


class TimelineAppend(WireModel):
    """Blocks of a loop that are added to a conversation's timeline: prompts, completions, plans, summaries."""

    blocks: Annotated[list[AppendedBlock], Field(min_length=1, max_length=APPEND_BLOCKS_MAX)]
    """In their order, the oldest first; all of them are added, or none."""
    if_last: Annotated[int, Field(ge=0)] | None = None
    """Add them only while this is the position of the last block: a repeated request then adds nothing twice."""


def _check_summary(block: Block) -> None:
    if not block.path.startswith("su:"):
        raise _wrong(("path",), "a summary's path is su:<turn_id>.conv.range.summary", block.path)
    covered = block.meta.get("covered_turn_ids")
    where = ("meta", "covered_turn_ids")
    if not isinstance(covered, list) or not covered:
        raise _wrong(where, "a summary lists the turns that it stands for", covered)
    for place, turn_id in enumerate(covered):
        if not isinstance(turn_id, str) or not is_turn_id(turn_id):
            raise _wrong((*where, place), _TURN_ID_FORM, turn_id)
    if not (block.text or "").strip():
        raise _wrong(("text",), "a summary says what it stands for", block.text)


def _wrong(where: tuple[str | int, ...], message: str, value: Any) -> ValidationError:
    """The error of one field of a block, which pydantic puts below the block's own place."""
    error = PydanticCustomError("value_error", "{message}", {"message": message})
    return ValidationError.from_exception_data("block", [{"type": error, "loc": where, "input": value}])


class TimelineAppended(WireModel):
    """Where the timeline ends now."""

    last: int
    """The position of its last block; the first has 1."""


class TimelinePage(WireModel):
    """A stretch of a timeline, the oldest block first."""

    blocks: list[Block]
    """The blocks after the position that was asked for."""
    last: int
    """The position of the last of them: what the next request gives as ``after``."""
    more: bool
    """Whether there are blocks after it."""


class Sources(WireModel):
    """The sources pool of a conversation."""

    sources: list[SourceRow]
    """Its rows, by ascending sid."""


class TimelineEntry(WireModel):
    """One block beside the text that a model reads of it."""

    position: int
    """Its position; the first block has 1."""
    block: Block
    """The block, without base64; with ``meta.hidden`` where it is hidden."""
    base64_chars: int
    """How long the base64 is that it has; 0 if it has none."""
    text: str
    """What the model reads at this place; empty where it reads nothing."""
    tokens: int
    """How many tokens that text has."""


class AlignedTimeline(WireModel):
    """A stretch of a timeline: blocks and what a model reads of them, side by side, the oldest first.

    The texts of all entries, one behind the other, are the rendered timeline.
    """

    entries: list[TimelineEntry]
    """The blocks after the position that was asked for."""
    last: int
    """The position of the last of them: what the next request gives as ``after``."""
    more: bool
    """Whether there are blocks after it."""
    pre_tail: int
    """The pre-tail cache point: the position up to which a prompt cache stays valid longest; 0 for none yet."""
    tail: int
    """The tail cache point; 0 for none yet."""
