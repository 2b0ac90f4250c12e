"""HTML as models write it, to a tree."""

import io
import re
from xml.etree.ElementTree import Element

import tinyhtml5
from render.limits import CONTENT_CHARACTERS_MAX, NODES_MAX, PARSED_DEPTH_MAX
from render.model import RenderError

_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([\w+-]*)[ \t]*")
_MARKED = re.compile(r"^(?:#{1,6}[ \t]|[-*+][ \t]+\S|\d{1,9}[.)][ \t]|\||>|`{3}|~{3}|---)|\*\*|\]\(", re.MULTILINE)
"""What Markdown has, and a block of output or of a program hardly has."""
_BLANK_LINES = re.compile(r"\A(?:[ \t]*\n)+")
_OPENED = re.compile(r"<[a-zA-Z]")
_TAG = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?:script|style|textarea|title|xmp)\b.*?(?:</(?:script|style|textarea|title|xmp)\b|\Z)|"
    r"<(/?)([a-zA-Z][^\s/>]*)[^<>]*>?",
    re.DOTALL | re.IGNORECASE,
)
_SHORT = frozenset({
    "area", "base", "br", "col", "colgroup", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta", "option",
    "optgroup", "p", "param", "rb", "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr",
    "html", "head", "body",
})  # fmt: skip
"""Elements that hold nothing, or that end where the next of their kind starts."""
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


def check_elements(count: int) -> None:
    """Refuses a number of elements, before a parser spends half a minute on their tags, and again when they are there.

    Raises:
        RenderError: ``too_many_elements``.
    """
    if count > NODES_MAX:
        raise RenderError(
            "too_many_elements",
            f"The document has {count:,} elements; at most {NODES_MAX:,} can be laid out. "
            "Render parts of it, or put long tables into a file of their own.",
        )


def _shallow(text: str) -> str:
    """Takes out tags that are opened too deep, and those that close them; elements that end by themselves don't count."""
    if text.count("<") <= PARSED_DEPTH_MAX:
        return text
    depth = left_out = 0

    def judge(match: re.Match[str]) -> str:
        nonlocal depth, left_out
        name = (match[2] or "").lower()
        if not name or name in _SHORT or match[0].endswith("/>"):
            return match[0]
        if match[1]:
            if left_out:
                left_out -= 1
                return ""
            depth = max(depth - 1, 0)
            return match[0]
        if depth >= PARSED_DEPTH_MAX:
            left_out += 1
            return ""
        depth += 1
        return match[0]

    return _TAG.sub(judge, text)


def parse_html(text: str) -> Element:
    """Parses HTML, whole documents and fragments alike.

    Raises:
        RenderError: ``content_too_large``, ``too_many_elements``.
    """
    if len(text) > CONTENT_CHARACTERS_MAX:
        raise RenderError(
            "content_too_large",
            f"The content has {len(text):,} characters; at most {CONTENT_CHARACTERS_MAX:,} are read. Render parts of it.",
        )
    check_elements(sum(1 for _ in _OPENED.finditer(text)))
    # A short text would be taken for the path of a file, and be read or fail as such.
    tree: Element = tinyhtml5.parse(io.StringIO(_shallow(text)), namespace_html_elements=False)
    return tree
