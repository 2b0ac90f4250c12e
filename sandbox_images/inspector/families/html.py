"""HTML: text with at least one element; blank if a browser would have nothing to show."""

from __future__ import annotations

import re

from lxml import etree
from lxml import html as lxml_html
from model import Problem, Subject

_START_TAG = re.compile(r"<[A-Za-z]")
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_CHARSET_WITHIN_BYTES = 1_024
"""Where a browser looks for the declaration (HTML standard, 4.2.5.4)."""

_UNSEEN = ("head", "script", "style", "template", "noscript", "title")
_SEEN_WITHOUT_TEXT = ("img", "svg", "canvas", "table", "video", "iframe", "object", "embed", "picture", "input")


def inspect(subject: Subject) -> None:
    """Decode and parse the page.

    A page that only a script fills (as plotting libraries write them) counts as not blank if a script in it
    names the id of one of its elements: what it would draw can't be known without running it.
    """
    text = _decoded(subject)
    if "\x00" in text:
        raise Problem(f"is not text: it has a NUL byte at offset {text.index(chr(0)):,}")
    if not _START_TAG.search(_without_comments(text)):
        raise Problem(f"is not an HTML page: there is no element in it ({_start(subject)})")
    parser = lxml_html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True)
    root = lxml_html.document_fromstring(text.encode("utf-8", "replace"), parser=parser)
    if subject.must_not_be_blank() and not _shows_something(root):
        raise Problem("is blank: it has neither visible text nor an image, a drawing or a table")


def _start(subject: Subject) -> str:
    return str(subject.wrong_format()).split(": ", 1)[1]


def _decoded(subject: Subject) -> str:
    """Return the text, in UTF-8 or in the encoding that the page declares.

    Raises:
        Problem: It is in neither.
    """
    data = subject.file.read()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        declared = _CHARSET.search(data[:_CHARSET_WITHIN_BYTES])
        if declared is not None:
            try:
                return data.decode(declared[1].decode("ascii"))
            except (LookupError, UnicodeError):
                pass
        if b"<" not in data[:_CHARSET_WITHIN_BYTES]:
            raise subject.wrong_format() from error
        raise Problem(f"is not UTF-8: the byte at offset {error.start:,} does not belong there") from error


def _without_comments(text: str) -> str:
    """Drop the comments; one that is never closed takes the rest with it, as in a browser."""
    parts, position = [], 0
    while (start := text.find("<!--", position)) >= 0:
        parts.append(text[position:start])
        end = text.find("-->", start + 2)
        if end < 0:
            return "".join(parts)
        position = end + 3
    return "".join([*parts, text[position:]])


def _shows_something(root: etree._Element) -> bool:
    if next(root.iter(*_SEEN_WITHOUT_TEXT), None) is not None or _is_filled_by_script(root):
        return True
    etree.strip_elements(root, *_UNSEEN, etree.Comment, etree.ProcessingInstruction, with_tail=False)
    return any(text.strip() for text in root.itertext())


def _is_filled_by_script(root: etree._Element) -> bool:
    """Return whether a script names the id of an element that it could fill."""
    scripts = "\n".join("".join(script.itertext()) for script in root.iter("script"))
    words = set(re.findall(r"[\w.:-]+", scripts))
    return any(
        element.get("id") in words
        for element in root.iter("div", "main", "section", "figure", "article", "p", "span", "pre")
        if element.get("id")
    )
