"""RTF documents: the header, and every group closed."""

from __future__ import annotations

import re

from model import Problem, Subject

_HEADER = b"{\\rtf"
_ESCAPES = re.compile(rb"\\[\\{}]")
_BINARY = re.compile(rb"\\bin[0-9]")
_WORDS = re.compile(rb"\\'[0-9a-fA-F]{2}|\\\*|\\[a-zA-Z]+-?[0-9]* ?|[{}\s]")
_PICTURES = (b"\\pict", b"\\object", b"\\shp")
_INFO = re.compile(rb"\{\\(?:fonttbl|colortbl|stylesheet|info|\*)(?:[^{}]|\{[^{}]*\})*\}")


def inspect(subject: Subject) -> None:
    """Read the groups; blank if there is neither text nor a picture."""
    data = subject.file.read()
    if not data.startswith(_HEADER):
        raise subject.wrong_format()
    braces = _ESCAPES.sub(b"", data)
    # Raw bytes after \bin may be braces; current programs do not write them.
    if not _BINARY.search(data) and braces.count(b"{") != braces.count(b"}"):
        raise Problem("is cut off or damaged: a group of it is not closed")
    if subject.must_not_be_blank() and not any(picture in data for picture in _PICTURES):
        text = _INFO.sub(b"", data)
        # A character that is written as a number is seen, too.
        if b"\\'" not in text and b"\\u" not in text and not _WORDS.sub(b"", text).strip(b"\x00"):
            raise Problem("is blank: it has neither text nor a picture")
