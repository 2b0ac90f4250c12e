"""TOML documents, parsed by Python's own library; blank if there is no key."""

from __future__ import annotations

import tomllib

from model import Problem, Subject, one_line
from parsing.text_stream import whole_text

_MESSAGE_CHARS_MAX = 160


def inspect(subject: Subject) -> None:
    """Parse the document."""
    try:
        document = tomllib.loads(whole_text(subject).removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise Problem(f"is not TOML: {one_line(str(error), _MESSAGE_CHARS_MAX)}") from error
    if subject.must_not_be_blank() and not document:
        raise Problem("is blank: it has no key")
