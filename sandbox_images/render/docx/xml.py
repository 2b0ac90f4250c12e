"""WordprocessingML as text: escaping, lengths, names."""

import re

MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" '
    f'xmlns:m="{MATH}" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture" '
    'xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" mc:Ignorable="w14"'
)
DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

TWIPS = 15
"""Twentieths of a point in a CSS pixel."""
EMU = 9525
"""English metric units in a CSS pixel."""

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPECIAL = re.compile(r"[&<>]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_BREAKS = re.compile(r"(\t|\r\n|\r|\n)")
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
_STRONG = re.compile(
    "[A-Za-z\u00c0-\u058f\u0900-\u1fff\u2c00-\ud7ff\uf900-\ufb1c]|([\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc])"
)


def legal(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _ILLEGAL.sub("", text)


def escape(text: str) -> str:
    """Text as element content; characters that XML cannot hold are left out."""
    text = legal(text)
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], text) if _SPECIAL.search(text) else text


def attribute(text: str) -> str:
    """Text as the value of an attribute, on one line."""
    return escape(" ".join(text.split())).replace('"', "&quot;")


def text_elements(text: str) -> str:
    """``w:t`` elements of a text; tabs and line ends, which ``w:t`` must not hold, become elements of their own."""
    if "\n" not in text and "\t" not in text and "\r" not in text:
        return f'<w:t xml:space="preserve">{escape(text)}</w:t>'
    parts = []
    for part in _BREAKS.split(text):
        if part == "\t":
            parts.append("<w:tab/>")
        elif part in {"\n", "\r", "\r\n"}:
            parts.append("<w:br/>")
        elif part:
            parts.append(f'<w:t xml:space="preserve">{escape(part)}</w:t>')
    return "".join(parts)


def is_rtl(text: str) -> bool:
    """Whether the first letter of a text is of a script that runs from right to left."""
    if text.isascii():
        return False
    found = _STRONG.search(text)
    return bool(found and found[1])


def has_rtl(text: str) -> bool:
    """Whether any letter of a text runs from right to left."""
    return not text.isascii() and bool(_RTL.search(text))


def hexa(colour: str) -> str:
    """``RRGGBB`` of ``#rrggbb``."""
    return colour.lstrip("#").upper()
