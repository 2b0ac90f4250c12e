"""What a content is, by what stands in it: models leave ``format`` out, or name another than they write."""

import re
from typing import Literal

from render.frontend.csv_rows import is_csv
from render.frontend.figures.diagrams import is_diagram
from render.frontend.html import clean_text, unfence
from render.model import Format, SourceFormat

_LEADING = re.compile(r"(?:\s|<!--.*?-->|<\?xml[^>]{0,200}\?>)*", re.DOTALL)
_PAGE = re.compile(r"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)
_BLOCKS = (
    "html|head|body|style|link|section|div|main|article|header|footer|nav|aside|figure|form|table|tr|td|th|ul|ol|li|dl|"
    "h[1-6]|p|pre|blockquote|svg|details|hr"
)
_BLOCK = re.compile(rf"<(?:{_BLOCKS})\b", re.IGNORECASE)
_LITERAL = re.compile(
    r"<(style|script|pre|svg|textarea)\b.*?(?:</\1\s*>|\Z)|^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\2|\Z)|`[^`\n]+`",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_MARKED_LINE = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]+\S|[-*+][ \t]+\S|\d{1,9}[.)][ \t]+\S|\|.*\||>[ \t]*\S|`{3}|~{3}|-{3,}[ \t]*$)|\*\*\S|\]\(",
    re.MULTILINE,
)
_FIRST_MARK = re.compile(r"#{1,6}[ \t]+\S|`{3}|~{3}|---[ \t]*\n[ \t]*[\w-]+[ \t]*:")
_DRAWING = re.compile(r"<(/?)svg\b[^<>]*?(/?)>", re.IGNORECASE)
_RULE = frozenset("|:- \t")
"""What the line below the head of a table in Markdown is made of."""
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_INDENTED = re.compile(r"(?: {4}|\t)")


def recognised(content: str, given: SourceFormat, output: Format = "pdf") -> SourceFormat:
    """What a content is: ``given``, unless what stands in it contradicts that.

    Markdown may hold HTML and any text is both, so only what would come out wrong counts as a contradiction. CSV is
    recognised for workbooks only: in a document its lines are text.
    """
    text = clean_text(content)
    if output == "xlsx":
        return _of_table(text, given)
    if given == "markdown":
        return _of_markdown(text)
    if given == "html":
        return _of_html(text)
    if given == "mermaid":
        return _of_mermaid(text)
    return given


def _of_table(text: str, given: SourceFormat) -> SourceFormat:
    """What the content of a workbook is: CSV has neither elements nor the line below the head of a table."""
    inner = unfence(text, ("", "csv", "tsv"))
    start = _start(inner)
    if given == "csv":
        return (
            "html" if _PAGE.match(start) or _BLOCK.match(start) else "markdown" if _has_pipe_table(text) else "csv"
        )
    if not start.startswith("<") and not _has_pipe_table(text) and is_csv(inner):
        return "csv"
    return _of_html(text) if given == "html" else _of_markdown(text)


def _has_pipe_table(text: str) -> bool:
    return any("|" in line and "-" in line and _RULE.issuperset(line) for line in text.split("\n"))


def _of_markdown(text: str) -> Literal["markdown", "html", "svg"]:
    inner = _start(unfence(text, ("html", "htm", "xml", "svg")))
    if _PAGE.match(inner):
        return "html"
    if _is_drawing(inner):
        return "svg"
    return "html" if _BLOCK.match(inner) and _is_broken_by_markdown(inner) else "markdown"


def _is_drawing(text: str) -> bool:
    """Whether a text is an SVG and nothing else."""
    if not re.match(r"<svg\b", text, re.IGNORECASE):
        return False
    depth = 0
    for match in _DRAWING.finditer(text):
        depth += 0 if match[2] else -1 if match[1] else 1
        if depth <= 0:
            return not _start(text[match.end() :])
    return True


def _is_broken_by_markdown(text: str) -> bool:
    """Whether a fragment is HTML through and through, and has blank lines where Markdown takes it apart."""
    rest = _LITERAL.sub("", text)
    parts = _BLANK_LINE.split(rest.strip("\n"))
    if _MARKED_LINE.search(rest) or not all(
        _INDENTED.match(part) or part.lstrip()[:1] in {"<", ""} for part in parts
    ):
        return False
    inside = any(_BLANK_LINE.search(match[0].strip()) for match in _LITERAL.finditer(text) if match[1])
    return inside or any(_INDENTED.match(part) for part in parts)


def _of_html(text: str) -> Literal["markdown", "html", "mermaid"]:
    start = _start(unfence(text, ("", "html", "htm", "xml")))
    if is_diagram(start):
        return "mermaid"
    if start.startswith("<"):
        return "html"
    if _FIRST_MARK.match(start):
        return "markdown"
    rest = _LITERAL.sub(lambda match: "" if match[1] else "\n```\n" if match[2] else "x", text)
    marks = len(_MARKED_LINE.findall(rest)) + len(_BLANK_LINE.findall(rest.strip()))
    return "markdown" if marks > 2 * len(_BLOCK.findall(rest)) else "html"


def _of_mermaid(text: str) -> SourceFormat:
    inner = unfence(text, ("", "mermaid"))
    if is_diagram(inner) or is_diagram(text):
        return "mermaid"
    if _PAGE.match(_start(text)) or _is_drawing(_start(text)):
        return "html"
    return "markdown" if re.search(r"^ {0,3}(?:`{3,}|~{3,})[ \t]*mermaid\b", text, re.MULTILINE) else "mermaid"


def _start(text: str) -> str:
    """A text from its first word or element on."""
    found = _LEADING.match(text)
    return text[found.end() :] if found else text
