"""Text of any kind that has no structure to check: decodes, without NUL; blank if all of it is white space."""

from __future__ import annotations

from model import Problem, Subject
from parsing.text_stream import HOW_TO_NAME_ANOTHER, encoding_of, text_chunks


def inspect(subject: Subject) -> None:
    """Decode the whole file."""
    blank = True
    is_named = "encoding" in subject.checks
    for chunk in text_chunks(subject, encoding_of(subject), "" if is_named else HOW_TO_NAME_ANOTHER):
        # Every chunk is decoded, also after the first letter: the promise is that all of it is text.
        blank = blank and not chunk.lstrip("\ufeff").strip()
    if blank and subject.must_not_be_blank():
        raise Problem("is blank: it holds nothing but white space")
