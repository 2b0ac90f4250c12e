"""The validation of an inspector's answers: a file may have taken the inspector over."""

from __future__ import annotations

import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINE_BYTES_MAX = 4 * 65_536  # of a judge's answer, which travels with its characters as escapes
_PROBLEM_CHARS_MAX = 300


def validate_verdicts(files: list[dict[str, Any]], lines: list[bytes]) -> dict[int, dict[str, Any]]:
    """The first verdict on each file that was asked for, by its id."""
    asked = {file["id"] for file in files}
    verdicts: dict[int, dict[str, Any]] = {}
    for line in lines:
        value = _parse_object(line) if len(line) <= LINE_BYTES_MAX else {}
        number, mime = value.pop("id", None), value.pop("mime", None)
        if isinstance(number, int) and number in asked and isinstance(mime, str) and _is_verdict(value):
            verdicts.setdefault(number, {**_with_printable_problem(value), "mime": mime})
    return verdicts


def _parse_object(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; an empty one if there is none."""
    try:
        value = frames.read_json(line)
    except (ValueError, RecursionError, StopIteration):
        return {}
    return value if isinstance(value, dict) else {}


def _is_verdict(value: dict[str, Any]) -> bool:
    if set(value) != {"ok", "problem", "facts"} or not isinstance(value["problem"], str | None):
        return False
    return value["ok"] is (value["problem"] is None) and _are_facts(value["facts"])


def _are_facts(facts: Any) -> bool:
    """Whole numbers, texts, and lists of texts: nothing that could not be passed on."""
    if not isinstance(facts, dict):
        return False
    values = [each for value in facts.values() for each in (value if isinstance(value, list) else [value])]
    return all(isinstance(each, str | int) for each in values)


def _with_printable_problem(value: dict[str, Any]) -> dict[str, Any]:
    """The same with a problem that is one printable line."""
    if value["problem"] is None:
        return value
    shown = (character if character.isprintable() else " " for character in value["problem"])
    return {**value, "problem": "".join(shown)[:_PROBLEM_CHARS_MAX]}
