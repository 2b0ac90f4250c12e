"""The contract of a run as options of the command line write it.

``--promise`` takes a name, a pattern, either with checks, or JSON::

    --promise report.pdf
    --promise 'charts/*.png'
    --promise 'my report.csv: min_rows=3, columns=name,price, not_blank'
    --promise '{"filename": "data.json", "json_schema": {"type": "array"}}'
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofbox.cli.shared.exit_codes import CommandError, usage_error

OPTION = "--promise"
_WILDCARDS = frozenset("*?[")
_CHECKS_AFTER_NAME = re.compile(r"(?s)(.+?):\s+((?:[a-z_]+\s*=|not_blank\b).*)")
_CHECK = re.compile(r"(?s)([a-z_]+)(?:\s*=\s*(.*))?")
_NUMBER_PREFIXES = ("min_", "max_")
_WITH_COMMAS = frozenset({"columns", "description"})
_TRUTH = {"": True, "true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TURN = "turn_1"  # only the form of the contract is checked with it


def parse_promises(texts: Sequence[str], description: str) -> list[dict[str, Any]]:
    """The entries of a contract.

    Args:
        texts: the values of ``--promise``.
        description: what an entry without a description gets.

    Raises:
        CommandError: an entry is wrong; the message names it.
    """
    from proofbox.contracts.artifacts import ContractError, parse_contract  # noqa: PLC0415 - takes 0.2 s

    entries = [parse_promise(text, description) for text in texts]
    if not entries:
        return []
    try:
        parse_contract(entries, _TURN)
    except ContractError as exc:
        raise _wrong(re.sub(r"contract\[(\d+)\]", lambda found: _shown(texts, int(found[1])), exc.message)) from exc
    return entries


def parse_promise(text: str, description: str) -> dict[str, Any]:
    """One entry of a contract.

    Raises:
        CommandError: it cannot be read.
    """
    if text.lstrip().startswith("{"):
        return {"description": description, **_json_entry(text)}
    found = _CHECKS_AFTER_NAME.fullmatch(text)
    name, checks = (found[1], _checks(found[2])) if found else (text, {})
    if not name.strip():
        raise _wrong("the name is blank; write the name of a file that the program creates")
    kind = "glob" if _WILDCARDS & set(name) else "filename"
    return {kind: name.strip(), "description": description, **checks}


def _json_entry(text: str) -> dict[str, Any]:
    try:
        entry = json.loads(text)
    except ValueError as exc:
        raise _wrong(f"this is not JSON: {exc}") from exc
    if not isinstance(entry, dict):
        raise _wrong("write one JSON object for each promise")
    return entry


def _checks(text: str) -> dict[str, Any]:
    """The checks behind a name: a comma separates checks, and the elements of a list."""
    from proofbox.contracts.artifacts import ArtifactSpec  # noqa: PLC0415 - takes 0.2 s

    known = set(ArtifactSpec.model_fields) - {"filename", "glob"}
    raw: dict[str, list[str]] = {}
    name = ""
    for piece in text.split(","):
        found = _CHECK.fullmatch(piece.strip())
        if found and found[1] in known and (found[2] is not None or found[1] == "not_blank"):
            name = found[1]
            raw[name] = [found[2] or ""]
        elif name in _WITH_COMMAS:
            raw[name].append(piece)
        else:
            raise _wrong(f"'{piece.strip()}' is not a check; the checks are {', '.join(sorted(known))}")
    return {check: _value(check, pieces) for check, pieces in raw.items()}


def _value(check: str, pieces: list[str]) -> Any:
    text = ",".join(pieces).strip()
    if check.startswith(_NUMBER_PREFIXES):
        if not text.isascii() or not text.isdigit():
            raise _wrong(f"{check} is a whole number (got '{text}')")
        return int(text)
    if check == "columns":
        return [piece.strip() for piece in pieces]
    if check == "not_blank":
        if text.lower() not in _TRUTH:
            raise _wrong(f"not_blank is true or false (got '{text}')")
        return _TRUTH[text.lower()]
    if check == "json_schema":
        return _schema(text)
    return text


def _schema(text: str) -> Any:
    path = Path(text.removeprefix("@"))
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as exc:
        raise _wrong(f"json_schema={text}: {exc.strerror}; give the file of a JSON Schema") from exc
    except ValueError as exc:
        raise _wrong(f"json_schema={text}: not a JSON file: {exc}") from exc


def _shown(texts: Sequence[str], index: int) -> str:
    text = texts[index]
    return text if len(text) <= 60 else text[:59] + "…"  # noqa: PLR2004 - one line of a terminal


def _wrong(message: str) -> CommandError:
    return usage_error(message, field=OPTION)
