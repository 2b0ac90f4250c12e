"""Slides of reveal.js that are written in Markdown, which its plug-in turns into HTML in a browser."""

import re
import textwrap
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import body_of, make, name_of, parents_of
from render.frontend.html import parse_html
from render.frontend.markdown import read_markdown

_NOTES = re.compile(r"[ \t]*notes?:[ \t]*", re.IGNORECASE)
_LINE_END = re.compile(r"(?:\\r\??)?\\n|\n")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_NOTES_SIGNS = re.compile(r"\\s[*+?]?|\\r\??|\\n|[\^$]")
_UNREAD_SIGNS = frozenset("\\[](){}|*+.")
"""Of patterns for notes that are not followed."""
_SLIDE = re.compile(r"<!--[ \t]*\.slide:([^<>]{0,500})-->")
_ATTRIBUTE = re.compile(r"""([\w-]{1,60})\s*=\s*(["'])(.{0,500}?)\2""", re.DOTALL)
_ALLOWED = re.compile(r"class|id|data-background(?:-\w+)?")
_PATTERN_SIGNS = re.compile(r"\\r|\\n|[\^$?\s]")
_RULE = "---"
SLIDES_MAX = 2_000
"""More slides stay as they are: each is parsed by itself, and a deck of more is refused."""
_TEMPLATES = frozenset({"textarea", "script", "template"})


def read_reveal_markdown(tree: Element) -> None:
    """Makes the sections that are marked ``data-markdown`` sections of HTML, in place: one for each of their slides."""
    marked = [item for item in tree.iter("section") if item.get("data-markdown") is not None]
    if not 0 < len(marked) <= SLIDES_MAX:
        return
    parents = parents_of(tree)
    count = 0
    for section in marked:
        text = _markdown_of(section)
        if not text.strip():
            continue
        parent = parents[section]
        index = list(parent).index(section)
        parts = list(_parts(section, text))
        count += len(parts)
        if count > SLIDES_MAX:
            return
        slides = [_slide(section, part) for part in parts]
        slides[-1].tail = section.tail
        parent[index : index + 1] = slides


def _markdown_of(section: Element) -> str:
    """The Markdown of a section: that of its template, or its own text; none if it holds HTML."""
    template = next((child for child in section if name_of(child) in _TEMPLATES), None)
    if template is not None:
        return textwrap.dedent("".join(template.itertext()))
    return textwrap.dedent(section.text or "") if not len(section) else ""


def _parts(section: Element, text: str) -> Iterator[str]:
    """The slides of a text, at its separators outside of code.

    These are patterns; what they are without their signs is searched. One of line ends alone is so many blank lines.
    """
    given = [value for kind in ("", "-vertical") if (value := section.get(f"data-separator{kind}") or "")]
    marks = {mark for value in given if (mark := _PATTERN_SIGNS.sub("", value))}
    blank = min((_blank_lines(value) for value in given if not _PATTERN_SIGNS.sub("", value)), default=0)
    if not marks and not blank:
        marks = {_RULE}
    lines: list[str] = []
    empty = 0
    for line, is_code in _lines(text):
        is_blank = not is_code and not line.strip()
        if not is_code and line.strip() in marks:
            yield "\n".join(lines)
            lines = []
        elif not is_blank and 0 < blank <= empty and lines:
            yield "\n".join(lines)
            lines = [line]
        else:
            lines.append(line)
        empty = empty + 1 if is_blank else 0
    yield "\n".join(lines)


def _blank_lines(pattern: str) -> int:
    """How many blank lines a pattern of line ends stands for: from the start of a line, or from the end of one."""
    ends = len(_LINE_END.findall(pattern))
    return max(ends if pattern.lstrip(" ").startswith("^") else ends - 1, 1) if ends else 0


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text, and whether each is of fenced code."""
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            is_end = found is not None and found[1].startswith(fence) and not line[found.end() :].strip()
            yield line, True
            fence = "" if is_end else fence
        else:
            fence = found[1] if found else ""
            yield line, bool(fence)


def _notes_mark(section: Element) -> re.Pattern[str]:
    """What begins the notes: words of the section's own pattern, or ``Note:``."""
    words = _NOTES_SIGNS.sub("", section.get("data-separator-notes") or "").strip()
    if not words.strip("?") or words.startswith("?") or "??" in words or _UNREAD_SIGNS & set(words):
        return _NOTES
    signs = "".join(sign if sign == "?" else re.escape(sign) for sign in words)
    return re.compile(rf"[ \t]*{signs}[ \t]*", re.IGNORECASE)


def _split_notes(section: Element, text: str) -> tuple[str, str | None]:
    """The words of a slide, and its notes; None if it has none."""
    mark = _notes_mark(section)
    lines = list(_lines(text))
    for index, (line, is_code) in enumerate(lines):
        found = None if is_code else mark.match(line)
        if found:
            rest = [line[found.end() :], *(later for later, _ in lines[index + 1 :])]
            return "\n".join(earlier for earlier, _ in lines[:index]), "\n".join(rest)
    return text, None


def _slide(section: Element, text: str) -> Element:
    attributes = {name: value for name, value in section.attrib.items() if not name.startswith("data-markdown")}
    for comment in _SLIDE.findall(text):
        attributes |= {name: value for name, _, value in _ATTRIBUTE.findall(comment) if _ALLOWED.fullmatch(name)}
    words, notes = _split_notes(section, _SLIDE.sub("", text))
    slide = make("section", attributes)
    slide.extend(_blocks(words))
    if notes is not None:
        slide.append(make("aside", {"class": "notes"}, None, *_blocks(notes)))
    return slide


def _blocks(text: str) -> list[Element]:
    return list(body_of(parse_html(read_markdown(text).html)))
