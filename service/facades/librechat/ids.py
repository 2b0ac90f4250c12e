"""Ids of sessions and files, and the conversations and paths that they stand for."""

import base64
import hashlib
import re
import secrets

from proofbox.contracts.paths import FilePath
from proofbox.service.facades.librechat.errors import RefusedError

RUN_TURN = "turn_1"
"""The turn of a run; its files are what the program left."""
UPLOADS_TURN = "turn_uploads"
READ_ONLY_TURN = "turn_uploads.read_only"
"""The turns of uploaded files; those of the second are never given back as output."""
STATE_PREFIX = "librechat-state:"
"""With what the ids of conversations begin that have the state of a program with tools."""
STATE_S_MAX = 3_600.0
"""How long such a program may wait for results."""
STATE_SWEPT_S = STATE_S_MAX + 600.0
"""After what time without use its state is swept: later, for the last results may be in use."""
_LENGTH = 21
_ID = re.compile(rf"[A-Za-z0-9_-]{{{_LENGTH}}}")
_RANDOM_BYTES = 16


def new_id() -> str:
    """Return a random id, in the form of nanoid: 126 random bits."""
    return secrets.token_urlsafe(_RANDOM_BYTES)[:_LENGTH]


def is_id(text: str) -> bool:
    """Whether a text has the form of an id."""
    return _ID.fullmatch(text) is not None


def require_id(field: str, text: str) -> str:
    """Return an id.

    Raises:
        RefusedError: the text has another form.
    """
    if not is_id(text):
        raise RefusedError(f"{field}: not an id; it has {_LENGTH} characters of A-Z a-z 0-9 _ -")
    return text


def conversation_of(session: str) -> str:
    """Return the conversation of a session."""
    return f"librechat:{session}"


def state_of(execution: str) -> str:
    """Return the conversation with the state of an execution."""
    return f"{STATE_PREFIX}{execution}"


def file_id(session: str, path: FilePath) -> str:
    """Return the id of a file: it follows from session and path, so that no store has to remember it."""
    digest = hashlib.sha256(f"{session}\0{path.physical}".encode()).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii")[:_LENGTH]
