"""The messages between processes about one call; what is lost of them is found in the database."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from proofbox.contracts.events import EventName
from proofbox.service.calls.events import CallEvent
from proofbox.service.errors import OurError

INLINE_BYTES_MAX = 256 * 1024
"""A larger answer is read from the database."""
_REPLAYED_BYTES_MAX = 512 * 1024
LOOK = b'{"look":true}'
"""Something about a call has changed in the database."""
VERSION = 1
"""The version of the messages of the queue. A release that adds fields keeps it; one whose messages an older worker
must not take raises it."""


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A message of the queue.

    Attributes:
        number: the call.
        version: the version of the message; fields that this release does not know are ignored.
    """

    number: int
    version: int

    @property
    def is_known(self) -> bool:
        """Whether this release knows what to do with it."""
        return self.version <= VERSION


class UnreadableMessageError(OurError):
    """A message of the queue names no call: no process of this service sent it."""

    where = "dispatch"


def queued_fields(number: int) -> Mapping[str, object]:
    """The fields of the message that queues a call."""
    return {"v": VERSION, "call": number}


def decode_queued(subject: str, body: bytes) -> QueuedMessage:
    """The message of the queue with a subject; one without a version is of the first release.

    Raises:
        UnreadableMessageError: it names no call.
    """
    with suppress(ValueError, KeyError, AttributeError, RecursionError):
        number, found = int(subject.rpartition(".")[2]), json.loads(body)
        version = found.get("v", 1)
        if found["call"] == number and isinstance(version, int):
            return QueuedMessage(number, version)
    raise UnreadableMessageError(f"the message {subject[:80]!r} of the queue names no call")


def encode_event(event: CallEvent) -> bytes:
    """An event as a message; one that is too large goes without its data."""
    body = _dump(event)
    return body if len(body) <= INLINE_BYTES_MAX else _dump(CallEvent(event.id, event.name, ""))


def decode_event(body: bytes) -> CallEvent | None:
    """The event of a message; None for the request to look into the database, and for what cannot be read."""
    try:
        found = json.loads(body)
        return None if "look" in found else _event(found)
    except (ValueError, KeyError, TypeError):
        return None


def encode_replay(events: Sequence[CallEvent]) -> bytes:
    """The first of some events as one message."""
    texts, size = list[str](), 0
    for event in events:
        text = encode_event(event).decode()
        size += len(text)
        if texts and size > _REPLAYED_BYTES_MAX:
            break
        texts.append(text)
    return f"[{','.join(texts)}]".encode()


def decode_replay(body: bytes) -> list[CallEvent]:
    """The events of such a message."""
    try:
        return [_event(found) for found in json.loads(body)]
    except (ValueError, KeyError, TypeError):
        return []  # of another release: the database has the end of the call


def _dump(event: CallEvent) -> bytes:
    return json.dumps({"id": event.id, "name": event.name, "data": event.data}).encode()


def _event(found: dict[str, Any]) -> CallEvent:
    return CallEvent(int(found["id"]), cast("EventName", found["name"]), str(found["data"]))
