"""HTML as models write it, to a tree."""

import re
from xml.etree.ElementTree import Element

import tinyhtml5

from render.document import RenderError

CONTENT_CHARACTERS_MAX = 16_000_000
"""More than any report that a person reads; a parser's tree takes some thirty times its source."""

_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*")
_MARKED = re.compile(r"^(?:#{1,6}[ \t]|[-*+][ \t]+\S|\d{1,9}[.)][ \t]|\||>|`{3}|~{3}|---)|\*\*|\]\(", re.MULTILINE)
"""What Markdown has, and a block of output or of a program hardly has."""
NESTING_MAX = 600
"""An HTML parser looks through all open elements at each tag; far more than the depth that is laid out."""
_NESTING = re.compile(
    r"<(/?)(?:div|span|section|article|main|aside|header|footer|nav|blockquote|figure|details|center|table|ul|ol|dl"
    r"|b|i|u|s|a|em|strong|small|big|font|sub|sup|ins|del|code|label|button|fieldset|form)\b(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>",
    re.IGNORECASE,
)
"""Tags of elements that stay open until they are closed."""
_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufdd0-\ufdef\ufffe\uffff]")


def unfence(content: str, languages: tuple[str, ...]) -> str:
    """Takes the fence off a content that is fenced as a whole, as models do; one with fences is left alone.

    Around what should be Markdown and looks like none, a fence without a language stays: a document may be one block.
    """
    lines = _BLANK_LINES.sub("", content).rstrip().split("\n")
    match = _OPENING.fullmatch(lines[0])
    if match is None or match[2].lower() not in languages or len(lines) < 2:  # noqa: PLR2004
        return content
    if lines[-1].startswith("    ") or lines[-1].strip() != match[1]:
        return content
    depth = 0
    for line in lines[1:-1]:
        text = line.strip()
        if text.startswith(match[1]):
            depth += 1 if text.strip(match[1][0]) else -1
            if depth < 0:  # the first fence ends before the last line: two blocks, not one around all
                return content
    inner = "\n".join(lines[1:-1]) + "\n"
    if depth:  # the last line closes a fence within
        return content
    return content if "md" in languages and not match[2] and not _MARKED.search(inner) else inner


def clean_text(content: str) -> str:
    """Characters that no format can carry are dropped, lone surrogates replaced, line ends made one kind."""
    content = content.encode("utf-8", "replace").decode("utf-8")
    content = content.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub("", content)


def parse_html(text: str) -> Element:
    """Parses HTML, whole documents and fragments alike.

    Raises:
        RenderError: ``content_too_large``.
    """
    if len(text) > CONTENT_CHARACTERS_MAX:
        raise RenderError("content_too_large", f"The content has more than {CONTENT_CHARACTERS_MAX:,} characters.")
    tree: Element = tinyhtml5.parse(_without_deep_tags(text), namespace_html_elements=False)
    return tree


def _without_deep_tags(text: str) -> str:
    """Drops the tags of elements that are nested far deeper than anything is laid out; their text stays."""
    if text.count("<") <= NESTING_MAX:
        return text
    depth = 0

    def judge(match: re.Match[str]) -> str:
        nonlocal depth
        if match[1]:
            depth = max(0, depth - 1)
            return match[0] if depth < NESTING_MAX else ""
        depth += 1
        return match[0] if depth <= NESTING_MAX else ""

    return _NESTING.sub(judge, text)
