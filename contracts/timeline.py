"""The timeline's doors: what is added, what is read, and the sources of a conversation."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contracts.blocks import Block
from contracts.logical import parse
from contracts.paths import FilePath, UnsafePathError, is_turn_id
from contracts.tool_calls import SourceRow

APPEND_BLOCKS_MAX = 1_000
PAGE_BLOCKS_MAX = 1_000
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


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class TimelineAppend(_Wire):
    """Blocks of a loop that are added to a conversation's timeline: prompts, completions, plans, summaries."""

    blocks: Annotated[list[Block], Field(min_length=1, max_length=APPEND_BLOCKS_MAX)]
    """In their order, the oldest first; all of them are added, or none."""
    if_last: Annotated[int, Field(ge=0)] | None = None
    """Add them only while this is the position of the last block: a repeated request then adds nothing twice."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        for index, block in enumerate(self.blocks):
            if block.type not in CORE_TYPES:
                raise ValueError(
                    f"blocks[{index}].type: '{block.type[:60]}' is none of {', '.join(sorted(CORE_TYPES))}"
                )
            if not is_turn_id(block.turn_id):
                raise ValueError(f"blocks[{index}].turn_id: a turn id is turn_ and then any of A-Z a-z 0-9 _ . -")
            if block.text is not None and block.base64 is not None:
                raise ValueError(f"blocks[{index}]: a block has text or base64, not both")
            if block.path:
                try:
                    block.path = canonical_path(block.path)
                except UnsafePathError as exc:
                    raise ValueError(f"blocks[{index}].path: {exc}") from exc
            if block.type == "conv.range.summary":
                _check_summary(index, block)
        return self


def _check_summary(index: int, block: Block) -> None:
    if not block.path.startswith("su:"):
        raise ValueError(f"blocks[{index}].path: a summary's path is su:<turn_id>.conv.range.summary")
    covered = block.meta.get("covered_turn_ids")
    if not isinstance(covered, list) or not covered:
        raise ValueError(f"blocks[{index}].meta.covered_turn_ids: a summary lists the turns that it stands for")
    for place, turn_id in enumerate(covered):
        if not isinstance(turn_id, str) or not is_turn_id(turn_id):
            raise ValueError(
                f"blocks[{index}].meta.covered_turn_ids[{place}]: a turn id is turn_ and then any of "
                "A-Z a-z 0-9 _ . -"
            )
    if not (block.text or "").strip():
        raise ValueError(f"blocks[{index}].text: a summary says what it stands for")


class TimelineAppended(_Wire):
    """Where the timeline ends now."""

    last: int
    """The position of its last block; the first has 1."""


class TimelinePage(_Wire):
    """A stretch of a timeline, the oldest block first."""

    blocks: list[Block]
    """The blocks after the position that was asked for."""
    last: int
    """The position of the last of them: what the next request gives as ``after``."""
    more: bool
    """Whether there are blocks after it."""


class Sources(_Wire):
    """The sources pool of a conversation."""

    sources: list[SourceRow]
    """Its rows, by ascending sid."""
