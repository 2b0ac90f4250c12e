"""OpenDocument texts, spreadsheets and presentations: their content must be there, and be XML."""

from __future__ import annotations

from model import Problem, Subject
from parsing.typed_package import open_typed_package, parsed_part

_BODY = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}body"
_DRAWING = "{urn:oasis:names:tc:opendocument:xmlns:drawing:1.0}"


def inspect(subject: Subject) -> None:
    """Parse the content; blank if its body has neither text nor a drawing."""
    with open_typed_package(subject) as archive:
        body = parsed_part(archive, "content.xml").find(_BODY)
    if body is None:
        raise Problem(f"is not {subject.format.name}: its content has no body")
    has_text = any(text.strip() for text in body.itertext())
    has_drawing = next(body.iter(f"{_DRAWING}image", f"{_DRAWING}object", f"{_DRAWING}custom-shape"), None)
    if subject.must_not_be_blank() and not has_text and has_drawing is None:
        raise Problem("is blank: its body has neither text nor a picture")
