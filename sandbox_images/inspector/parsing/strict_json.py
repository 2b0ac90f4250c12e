"""JSON as RFC 8259 has it: no NaN, no Infinity, no byte order mark, and a bound on depth."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from model import Problem, counted, quoted

_DIGITS_PROBLEM = "Exceeds the limit"
"""How Python begins its refusal to read a whole number of more than 4,300 digits."""


def parse_json(text: str, where: str) -> Any:
    """Parse one JSON text.

    Args:
        text: The text.
        where: What is parsed, as the subject of a problem's sentence: ``it`` or ``line 3``.

    Raises:
        Problem: It is not JSON, or nested too deep, or has a number of thousands of digits.
    """
    if text.startswith("\ufeff"):
        raise Problem(f"is not JSON: {where} starts with a byte order mark, which JSON forbids")
    try:
        return json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        place = (
            f"line {error.lineno:,} column {error.colno:,}" if where == "it" else f"{where} column {error.colno:,}"
        )
        raise Problem(f"is not JSON: {error.msg} at {place}{_seen(text)}") from error
    except RecursionError as error:
        raise Problem(f"could not be opened as JSON: {where} is nested too deep") from error
    except ValueError as error:
        if _DIGITS_PROBLEM not in str(error):
            raise
        raise Problem(
            f"could not be opened as JSON: {where} has a number of more than {counted(4300, 'digit')}"
        ) from error


def _refuse(name: str) -> NoReturn:
    raise Problem(f"is not JSON: {name} is no JSON value")


def _seen(text: str) -> str:
    start = text[:60].strip()
    return "" if start[:1] in {"{", "[", '"'} else f" (it starts with {quoted(start[:40])})"
