"""Values as TOML text; the standard library only reads TOML."""

import json
import re
from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(value: Any) -> str:
    """The text of a value of JSON, on one line.

    Raises:
        ValueError: TOML has no such value: None.
    """
    if value is None:
        raise ValueError("TOML has no null")
    if isinstance(value, dict):
        pairs = ", ".join(f"{_key(name)} = {to_toml(inner)}" for name, inner in value.items() if inner is not None)
        return f"{{ {pairs} }}" if pairs else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(to_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE_KEY.fullmatch(name) else json.dumps(name)
