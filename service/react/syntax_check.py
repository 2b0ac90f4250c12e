"""Check the syntax of a text by its extension: it is parsed, never run."""

import ast
import csv
import io
import json
import time
import tomllib
import xml.parsers.expat
from collections.abc import Callable
from pathlib import PurePosixPath

CHECKED_CHARS_MAX = 1024 * 1024
"""A longer text is not parsed."""
_SHOWN_CHARS = 200
_TOML_CHARS_MAX = 128 * 1024
_TOML_LINE_CHARS_MAX = 4_096
_YAML_S_MAX = 1.0


class _EntityError(ValueError):
    """A document type that defines entities."""


def find_syntax_problem(name: str, text: str) -> str | None:
    """The syntax error of a text; None if it has none or its format is not checked.

    Blocking: a few milliseconds for most texts, a second at most.
    """
    parse = _PARSERS.get(PurePosixPath(name).suffix.lower())
    if parse is None or len(text) > CHECKED_CHARS_MAX:
        return None
    try:
        parse(text)
    # The parsers answer what is nested too deep by these two; none of them goes on to the end of the stack.
    except (RecursionError, MemoryError):
        return "is nested too deep"
    except (ValueError, SyntaxError, xml.parsers.expat.ExpatError, csv.Error) as exc:
        return f"does not parse: {_describe(exc)}"[:_SHOWN_CHARS]
    return None


def _describe(exc: Exception) -> str:
    if isinstance(exc, SyntaxError):
        return f"{exc.msg} (line {exc.lineno})"
    return " ".join(str(exc).split())


def _json_lines(text: str) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            if line.strip():
                json.loads(line)
        except ValueError as exc:
            raise ValueError(f"line {number}: {exc}") from exc


def _yaml(text: str) -> None:
    import yaml  # noqa: PLC0415 - 1.5 MB that a service in which nobody writes YAML is spared

    # Of the same package in C, ten times as fast; not every platform's wheel has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    # Events, not objects: no tag is obeyed and no alias followed. What is nested deep takes the square of its size:
    # a text that is not through in time is not checked further.
    ends = time.monotonic() + _YAML_S_MAX
    try:
        for _ in yaml.parse(text, Loader=loader):
            if time.monotonic() > ends:
                return
    except yaml.YAMLError as exc:
        raise ValueError(str(exc)) from exc


def _toml(text: str) -> None:
    # A key of many parts takes the square of their number.
    if len(text) <= _TOML_CHARS_MAX and max(map(len, text.split("\n"))) <= _TOML_LINE_CHARS_MAX:
        tomllib.loads(text)


def _xml(text: str) -> None:
    parser = xml.parsers.expat.ParserCreate(encoding="utf-8")

    def refuse(*_: object) -> None:
        raise _EntityError("it defines entities, which are not read")

    parser.EntityDeclHandler = refuse
    parser.Parse(text.encode(), True)  # noqa: FBT003 - it takes no keywords


def _csv(text: str) -> None:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    width = None
    for row in rows:
        if not row:
            continue
        width = width or len(row)
        if len(row) != width:
            raise ValueError(f"line {rows.line_num}: {len(row)} fields, the header has {width}")


_PARSERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".geojson": json.loads,
    ".ipynb": json.loads,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".xml": _xml,
    ".svg": _xml,
    ".csv": _csv,
    ".py": ast.parse,
    ".toml": _toml,
}
