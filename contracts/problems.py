"""Errors of the service and of the caller's program: RFC 9457 problem documents."""

from pydantic import BaseModel, ConfigDict, Field

from proofbox.contracts.codes import ProblemCode


class FieldError(BaseModel):
    """One field of a request that was refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    field: str
    """Where: ``limits.wall_s``, ``assets[0].base64``."""
    code: str
    """What kind of mistake it is."""
    message: str
    """What is wrong, and what is allowed."""


class Problem(BaseModel):
    """An ``application/problem+json`` body (RFC 9457)."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    type: str = "about:blank"
    """``about:blank``: ``code`` identifies the problem."""
    title: str
    """The HTTP status in words."""
    status: int
    """The HTTP status."""
    detail: str
    """One sentence: which field or limit, and what to do."""
    code: ProblemCode
    """The stable code."""
    request_id: str
    """Names the request in the service's log."""
    retryable: bool
    """Whether the same request may succeed later."""
    where: str
    """The part of the service that refused or failed."""
    errors: list[FieldError] | None = Field(default=None, exclude_if=lambda errors: errors is None)
    """The refused fields of an invalid request; left out of the JSON of other problems."""
