"""JSON text as the gateway stores, sends and measures it."""

import json
from typing import Any


def compact_json(value: Any) -> str:
    """Return JSON text without blanks, with the characters of other scripts as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
