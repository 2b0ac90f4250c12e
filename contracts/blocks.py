"""Timeline blocks: the shape an agent's timeline takes as it is."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

TEXT_BYTES_MAX = 20_480
"""How much of a text file its content block carries, in bytes, cut at a character boundary."""
TRUNCATED_SUFFIX = "\n...[truncated]"


def _is_none(value: str | None) -> bool:
    return value is None


class Block(BaseModel):
    """One block of a timeline; fields that do not apply are left out of the JSON."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    type: str
    """What the block is, such as ``react.tool.call`` or ``react.tool.result``."""
    author: str
    """Who wrote it: ``react`` for the agent's loop, ``proofbox`` for this service."""
    turn_id: str
    """The turn it belongs to."""
    ts: str
    """When it was written: UTC, RFC 3339, ``Z``."""
    mime: str
    """The media type of ``text`` or ``base64``."""
    path: str
    """Its logical path."""
    text: str | None = Field(default=None, exclude_if=_is_none)
    """The content of a text block."""
    base64: str | None = Field(default=None, exclude_if=_is_none)
    """The content of a PDF or an image."""
    call_id: str | None = Field(default=None, exclude_if=_is_none)
    """The tool call that it belongs to."""
    meta: dict[str, Any] = {}
    """What ties it to its call and its artifact; hosting fields live here and are never shown to a model."""


class Digest(BaseModel):
    """The safe digest of an artifact: what its meta block says. It never holds a hosting field."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    artifact_path: str
    """The logical path of the file."""
    physical_path: str
    """Its path relative to OUT_DIR."""
    mime: str
    """Its media type."""
    kind: Literal["file", "display"] = "file"
    """How it is shown."""
    visibility: Literal["external", "internal"]
    """Whether it is hosted for the user."""
    channel: str | None = None
    """Where a display artifact is shown."""
    tool_call_id: str
    """The call that made it."""
    tool_id: str
    """The tool that made it."""
    edited: bool | None = None
    """True if an earlier version of the same logical path exists in the conversation."""
    ts: str
    """When it was made: UTC, RFC 3339, ``Z``."""
    size_bytes: int
    """Its size."""
    sha256: str
    """Its SHA-256, in hex."""
    description: str | None = None
    """What the contract says that it is."""
    sources_used: list[int] | None = None
    """The ids of the sources that it cites."""
    tokens: int | None = None
    """Its length in tokens, where counted."""
    write_warning: str | None = None
    """What is odd about it, such as ``file_unusually_small``."""
    error: str | None = None
    """What went wrong while it was written or hosted."""
