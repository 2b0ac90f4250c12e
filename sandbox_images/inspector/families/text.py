"""Text of any kind that has no structure to check: UTF-8 without NUL; blank if all of it is white space."""

from __future__ import annotations

from verdict import Problem, Subject

from families.text_stream import text_chunks


def inspect(subject: Subject) -> None:
    """Decode the whole file."""
    blank = True
    for chunk in text_chunks(subject):
        # Every chunk is decoded, also after the first letter: the promise is that all of it is text.
        blank = blank and not chunk.lstrip("\ufeff").strip()
    if blank and subject.must_not_be_blank():
        raise Problem("is blank: it holds nothing but white space")
