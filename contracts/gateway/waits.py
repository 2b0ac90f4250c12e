"""Waits of calls, and how persons and services answer them."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from proofbox.contracts.gateway.names import EntityId
from proofbox.contracts.wire_model import WireModel

WaitKind = Literal["space", "approval", "external", "reply", "elicitation"]
ANSWER_BYTES_MAX = 256 * 1024


class WaitedFor(WireModel):
    """An entity whose answer a wait needs or accepts."""

    entity_id: str
    """Its id."""
    handle: str | None = None
    """Its handle."""
    responded: bool = False
    """Whether it has answered."""


class Wait(WireModel):
    """What a call waits for."""

    wait_id: str
    """Its id."""
    kind: WaitKind
    """``space``: a person's result; ``approval``: a person's yes; ``external``: a service's result; ``reply``:
    messages; ``elicitation``: the input that an MCP server asked for."""
    expires: str
    """When it ends without an answer: UTC, RFC 3339, ``Z``."""
    space_id: str | None = None
    """The space that shows it."""
    message_id: str | None = None
    """The message that shows it."""
    waiting_for: list[WaitedFor] = []
    """Who may answer, if these are entities of their own."""


class RunWait(Wait):
    """An open wait of a run."""

    tool_call_id: str
    """The call that waits."""
    name: str
    """The tool's name for the model."""


class SubmittedError(WireModel):
    """Why a person or service has no result."""

    message: Annotated[str, Field(min_length=1, max_length=4_096)]
    """One sentence; the agent reads it."""


class ResultSubmission(WireModel):
    """The answer to a wait: exactly one of ``result``, ``error`` and ``cancelled``."""

    result: Any = None
    """The tool's result, at most 256 KiB, possibly null; of an approval ``{"approved": bool, "reason"?: text}``."""
    error: SubmittedError | None = None
    """The call ends with ``user_error``."""
    cancelled: Literal[True] | None = None
    """The call ends with ``user_cancelled``."""
    entity_id: EntityId | None = None
    """Who answers, if the caller may act for others."""

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = self.model_fields_set & {"result", "error", "cancelled"}
        if len(given) != 1 or (given != {"result"} and getattr(self, next(iter(given))) is None):
            raise ValueError("give exactly one of result, error and cancelled")
        return self


class ApprovalResult(WireModel):
    """The result that answers an approval."""

    approved: Annotated[bool, Field(strict=True)]
    """Whether the tool may run."""
    reason: Annotated[str, Field(max_length=4_096)] | None = None
    """Why; the agent reads it."""
