"""What an inspector says of files, believed if it has the shape of a verdict: a file may have taken it over."""

from __future__ import annotations

import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINE_BYTES_MAX = 4 * 65_536  # of a judge's answer, which travels with its characters as escapes
_PROBLEM_CHARS_MAX = 300


def by_id(files: list[dict[str, Any]], lines: list[bytes]) -> dict[int, dict[str, Any]]:
    """The first verdict on each file that was asked for, by its id."""
    asked = {file["id"] for file in files}
    verdicts: dict[int, dict[str, Any]] = {}
    for line in lines:
        said = _object(line) if len(line) <= LINE_BYTES_MAX else {}
        number, mime = said.pop("id", None), said.pop("mime", None)
        if isinstance(number, int) and number in asked and isinstance(mime, str) and _is_verdict(said):
            verdicts.setdefault(number, {**_shown(said), "mime": mime})
    return verdicts


def _object(line: bytes) -> dict[str, Any]:
    """The JSON object on a line; an empty one if there is none."""
    try:
        said = frames.read_json(line)
    except (ValueError, RecursionError, StopIteration):
        return {}
    return said if isinstance(said, dict) else {}


def _is_verdict(said: dict[str, Any]) -> bool:
    if set(said) != {"ok", "problem", "facts"} or not isinstance(said["problem"], str | None):
        return False
    return said["ok"] is (said["problem"] is None) and _are_facts(said["facts"])


def _are_facts(facts: Any) -> bool:
    """Whole numbers, texts, and lists of texts: nothing that could not be passed on."""
    if not isinstance(facts, dict):
        return False
    values = [each for value in facts.values() for each in (value if isinstance(value, list) else [value])]
    return all(isinstance(each, str | int) for each in values)


def _shown(said: dict[str, Any]) -> dict[str, Any]:
    """The same with a problem that is one printable line."""
    if said["problem"] is None:
        return said
    shown = (character if character.isprintable() else " " for character in said["problem"])
    return {**said, "problem": "".join(shown)[:_PROBLEM_CHARS_MAX]}
