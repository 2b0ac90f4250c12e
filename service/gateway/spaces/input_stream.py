"""The arguments of one call, as far as a model has written them."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from proofbox.service.gateway.posting import text_message_id
from proofbox.service.gateway.spaces.records import Json
from proofbox.service.identity import Principal

PARTIAL_BYTES_MAX = 32 * 1024
"""Up to how many bytes arguments that are being written are read; longer ones are text alone until the call."""


@dataclass(frozen=True, slots=True)
class StartedStream:
    """A record whose arguments are being written.

    Attributes:
        space: the row of its space.
        message_id: the record.
        event: the id of its ``tool-call.start``.
        message: the record as it was posted.
    """

    space: int
    message_id: str
    event: int
    message: Json


@dataclass(slots=True)
class InputStream:
    """The arguments of one call, as far as they are written.

    Attributes:
        run_id: its run.
        tool_call_id: the call.
        started: its record; None: no space shows it, and nothing is kept.
        text: the JSON text so far.
        size_bytes: its bytes as UTF-8.
        final: the parameters of the call, once this process runs it.
        is_made: whether the call was made, as far as this process knows.
        last_s: when the last part came, on the monotonic clock.
        checked_for: whose calls its run was last seen to take: the principal and its lease.
        checked_s: when that was.
        is_open: whether its first part was taken.
        shows_input: whether the record shows the arguments; otherwise no text is kept.
        text_space: the row of the space that shows the text of a message; None: it is none, or no space shows it.
        moves_run: whether it is of the tool that changes the active space of its run.
        lock: held while a part is added.
    """

    run_id: str
    tool_call_id: str
    started: StartedStream | None = None
    text: str = ""
    size_bytes: int = 0
    final: Json | None = None
    is_made: bool = False
    last_s: float = 0.0
    checked_for: tuple[Principal, int] | None = None
    checked_s: float = float("-inf")
    is_open: bool = False
    shows_input: bool = True
    text_space: int | None = None
    moves_run: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _read: tuple[int, Any] = (0, None)

    @property
    def space(self) -> int | None:
        """The row of the space that shows it; None if none does, and nothing is kept."""
        return self.text_space if self.started is None else self.started.space

    @property
    def text_id(self) -> str | None:
        """The id that the message gets whose text a space shows; None without such a space."""
        if self.text_space is None:
            return None
        return text_message_id(self.run_id, self.tool_call_id, self.text_space)

    @property
    def message_text(self) -> str:
        """What can be read of the text of a message; it only grows."""
        if self._read[0] != len(self.text):
            self._read = len(self.text), read_partial(self.text)
        value = self._read[1]
        text = value.get("text") if isinstance(value, dict) else None
        return text if isinstance(text, str) else ""

    @property
    def partial(self) -> Any:
        """What can be read of the text; None if that is nothing, or the text has over 32 KiB.

        It is read once for all followers.
        """
        if self.size_bytes > PARTIAL_BYTES_MAX:
            return None
        if self._read[0] != len(self.text):
            self._read = len(self.text), read_partial(self.text)
        return self._read[1]


def read_partial(text: str) -> Any:
    """Return what can be read of JSON text that is not complete; None if that is nothing."""
    try:
        return from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return None
