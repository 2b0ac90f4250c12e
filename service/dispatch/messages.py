"""The messages between processes about one call; what is lost of them is found in the database."""

import json
from collections.abc import Sequence
from typing import Any, cast

from proofbox.contracts.events import EventName
from proofbox.service.calls.events import CallEvent

INLINE_BYTES_MAX = 256 * 1024
"""A larger answer is read from the database."""
_REPLAYED_BYTES_MAX = 512 * 1024
LOOK = b'{"look":true}'
"""Something about a call has changed in the database."""


def encode_event(event: CallEvent) -> bytes:
    """An event as a message; one that is too large goes without its data."""
    body = _dump(event)
    return body if len(body) <= INLINE_BYTES_MAX else _dump(CallEvent(event.id, event.name, ""))


def decode_event(body: bytes) -> CallEvent | None:
    """The event of a message; None for the request to look into the database."""
    found = json.loads(body)
    return None if "look" in found else _event(found)


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
    return [_event(found) for found in json.loads(body)]


def _dump(event: CallEvent) -> bytes:
    return json.dumps({"id": event.id, "name": event.name, "data": event.data}).encode()


def _event(found: dict[str, Any]) -> CallEvent:
    return CallEvent(int(found["id"]), cast("EventName", found["name"]), str(found["data"]))
