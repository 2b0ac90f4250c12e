"""Slides of reveal.js that are written in Markdown, which its plug-in turns into HTML in a browser."""

import re
import textwrap
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import body_of, make, name_of, parents_of
from render.frontend.html import parse_html
from render.frontend.markdown import read_markdown

_NOTES = re.compile(r"^[ \t]*notes?:[ \t]*", re.IGNORECASE | re.MULTILINE)
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
    """The slides of a text, at its separators. These are patterns; what they are without their signs is looked for."""
    given = (section.get(f"data-separator{kind}") or "" for kind in ("", "-vertical"))
    marks = {mark for value in given if (mark := _PATTERN_SIGNS.sub("", value))} or {_RULE}
    lines: list[str] = []
    for line in text.split("\n"):
        if line.strip() in marks:
            yield "\n".join(lines)
            lines = []
        else:
            lines.append(line)
    yield "\n".join(lines)


def _slide(section: Element, text: str) -> Element:
    attributes = {name: value for name, value in section.attrib.items() if not name.startswith("data-markdown")}
    for comment in _SLIDE.findall(text):
        attributes |= {name: value for name, _, value in _ATTRIBUTE.findall(comment) if _ALLOWED.fullmatch(name)}
    words, *notes = _NOTES.split(_SLIDE.sub("", text), maxsplit=1)
    slide = make("section", attributes)
    slide.extend(_blocks(words))
    if notes:
        slide.append(make("aside", {"class": "notes"}, None, *_blocks(notes[0])))
    return slide


def _blocks(text: str) -> list[Element]:
    return list(body_of(parse_html(read_markdown(text).html)))
