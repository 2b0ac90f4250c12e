"""One JSON document, held against the contract's schema; blank if null, empty or white.

It is strict, but for the settings of programs that are known to take comments and trailing commas.
"""

from __future__ import annotations

from model import Problem, Subject
from parsing.json_comments import takes_comments, without_comments
from parsing.json_schema import schema_check
from parsing.strict_json import parse_json
from parsing.text_stream import whole_text


def inspect(subject: Subject) -> None:
    """Parse the document. Zero and false are values: only null, "", [], {} and white strings are blank."""
    text = whole_text(subject)
    value = parse_json(without_comments(text) if takes_comments(subject.path) else text, "it")
    if "json_schema" in subject.checks:
        schema_check(subject.checks["json_schema"])(value, "")
    empty = value is None or (isinstance(value, str | list | dict) and not value)
    if subject.must_not_be_blank() and (empty or (isinstance(value, str) and not value.strip())):
        raise Problem("is blank: its value is empty")
