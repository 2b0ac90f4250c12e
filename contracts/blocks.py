"""Timeline blocks: the shape an agent's timeline takes as it is."""

import json
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from proofbox.contracts.logical_paths import SkillPath, SourcesPath, parse
from proofbox.contracts.paths import UnsafePathError

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


class GivenBlock(Block):
    """A block that a loop sends: only ``type`` is required.

    A field that is null or left out gets its default; a field that no block has is ignored.
    """

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True)

    author: str = ""
    """Who wrote it; left out: ``user`` for types that begin with ``user.``, ``react`` for all others."""
    turn_id: str = ""
    """The turn it belongs to; left out: the turn of ``path``."""
    ts: str = ""
    """When it was written: UTC, RFC 3339, ``Z``; left out: when it is added to the timeline."""
    mime: str = ""
    """The media type of ``text`` or ``base64``; left out: ``application/json`` for a text that is a JSON object,
    ``text/markdown`` for another, ``application/octet-stream`` for base64."""
    path: str = ""
    """Its logical path; empty if it has none."""

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, value: Any) -> Any:
        if isinstance(value, Block):
            value = value.__dict__
        if not isinstance(value, dict):
            return value
        fields = {name: each for name, each in value.items() if each is not None}
        kind, path = fields.get("type"), fields.get("path")
        if not fields.get("author"):
            fields["author"] = "user" if isinstance(kind, str) and kind.startswith("user.") else "react"
        if not fields.get("turn_id"):
            fields["turn_id"] = _turn_of(path) if isinstance(path, str) else ""
        if not fields.get("mime"):
            fields["mime"] = _mime_of(fields.get("text"), has_base64="base64" in fields)
        return fields


def _turn_of(path: str) -> str:
    """The turn of a logical path; empty if it has none."""
    try:
        parsed = parse(path)
    except UnsafePathError:
        return ""
    return "" if isinstance(parsed, SourcesPath | SkillPath) else parsed.turn_id


def _mime_of(text: Any, *, has_base64: bool) -> str:
    """The media type of a block that gives none."""
    if has_base64:
        return "application/octet-stream"
    if isinstance(text, str) and text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return "text/markdown"
        return "application/json"
    return "text/markdown"


class Digest(BaseModel):
    """The safe digest of an artifact: the values of its meta block. It never holds a hosting field."""

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
    """The contract's description of the file."""
    sources_used: list[int] | None = None
    """The ids of the sources that it cites."""
    tokens: int | None = None
    """Its length in tokens, where counted."""
    write_warning: str | None = None
    """What is odd about it, such as ``file_unusually_small``."""
    error: str | None = None
    """What went wrong while it was written or hosted."""
    sid: int | None = None
    """Its id in the sources pool, for ``[[S:n]]``; only files that are hosted have one."""
    encoding: str | None = None
    """That of a text that is not UTF-8, such as ``utf-16`` or ``cp1252``; its content block is decoded."""
