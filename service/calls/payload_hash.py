"""Which requests are the same call: a hash that does not depend on how a client writes its JSON."""

import hashlib
from typing import Any

from contracts.tool_call_request import ToolCallRequest

_EXACT_BELOW = 2**53  # every whole number below it is the same in JSON's integers and in floats


def payload_sha256(request: ToolCallRequest) -> str:
    """SHA-256, in hex, of what a request asks for.

    The same for requests that differ in the order of the keys of an object, in a field that is absent or has its
    default, in an empty timeline or none, or in ``1`` and ``1.0``. The order of lists counts. Fields at their
    default are left out: a release with one field more has the same hash for the requests of the one before.
    """
    timeline = [block.model_copy(update={"meta": _ordered(block.meta)}) for block in request.timeline or ()]
    same = request.model_copy(update={"params": _ordered(request.params), "timeline": timeline or None})
    return hashlib.sha256(same.model_dump_json(exclude_defaults=True).encode()).hexdigest()


def _ordered(value: Any) -> Any:
    """A JSON value with the keys of its objects in order, and whole numbers as integers."""
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_BELOW:
        return int(value)
    return value
