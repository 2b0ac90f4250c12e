"""The lists of a user's conversations, and of the files of one conversation."""

from pydantic import BaseModel, ConfigDict

PAGE_CONVERSATIONS_MAX = 200
PAGE_FILES_MAX = 1_000


class ListedConversation(BaseModel):
    """One conversation, with what it holds."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    conversation_id: str
    """Its id."""
    created_at: str
    """When it was first used: UTC, RFC 3339, ``Z``."""
    last_used_at: str
    """When a call, an upload or a block was last added, to the minute: UTC, RFC 3339, ``Z``."""
    turns: int
    """How many turns its timeline has."""
    files: int
    """How many files and attachments it has."""
    size_bytes: int
    """The bytes of all their versions."""


class ConversationPage(BaseModel):
    """A page of the list of conversations, the newest first."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    conversations: list[ListedConversation]
    """The conversations."""
    next: str | None
    """What the next request gives as ``after``; null on the last page."""


class ListedFile(BaseModel):
    """The latest version of one file or attachment."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    path: str
    """Its logical path."""
    name: str
    """Its path below ``files/`` or ``attachments/``."""
    size_bytes: int
    """Its size."""
    media_type: str
    """Its media type."""
    sha256: str
    """Its SHA-256, in hex."""
    turn_id: str
    """The turn that it belongs to."""
    created_at: str
    """When this version was stored: UTC, RFC 3339, ``Z``."""


class FilePage(BaseModel):
    """A page of the list of a conversation's files, in the order in which their latest versions were stored."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    files: list[ListedFile]
    """The files."""
    next: str | None
    """What the next request gives as ``after``; null on the last page."""
