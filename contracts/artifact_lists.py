"""The list of a conversation's files."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

PAGE_ARTIFACTS_MAX = 1_000


class ListedArtifact(BaseModel):
    """The latest version of one file."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    logical_path: str
    """Its path on the timeline."""
    physical_path: str
    """Its path relative to OUT_DIR."""
    turn_id: str
    """The turn it belongs to."""
    version: int
    """1 for the first; the earlier ones can be read too."""
    mime: str
    """Its media type."""
    size_bytes: int
    """Its size."""
    sha256: str
    """Its SHA-256, in hex."""
    visibility: Literal["external", "internal"]
    """Whether it is hosted for the user."""
    description: str
    """What it is; may be empty."""
    created: str
    """When this version was stored: UTC, RFC 3339, ``Z``."""


class ArtifactPage(BaseModel):
    """A stretch of the list of a conversation's files, in the order in which their latest versions were stored."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    artifacts: list[ListedArtifact]
    """The files."""
    last: int
    """The number of the last of them: what the next request gives as ``after``."""
    more: bool
    """Whether there are files after it."""
