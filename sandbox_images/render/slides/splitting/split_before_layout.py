"""Cuts what is far too much for one slide before it's laid out: layout takes long on what is long."""

import math
from dataclasses import replace
from xml.etree.ElementTree import Element

from render.frontend.element_tree import name_of
from render.slides.layout import Sheet
from render.slides.splitting.split_after_layout import Cut, is_repeated, parts_of
from render.slides.splitting.split_text import cut_text

LINES_MAX = 300
"""So many lines, roughly, are cut by layout itself: a dozen slides."""
_CHUNK = 200
_LINE = 85
_CODE_MAX, _CODE_CHUNK = 60, 19
_INLINES = 10
"""So many inline elements take as long as a line."""
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "ul", "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "pre"}
    | {
        "blockquote",
        "figure",
        "aside",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "nav",
        "header",
        "footer",
        "main",
        "details",
    }
)
_WHOLE = frozenset({"tr", "pre", "figure"})


def presplit(sheet: Sheet) -> list[Sheet]:
    """A sheet, or its parts if it has far more lines than a slide.

    Args:
        sheet: not yet laid out.
    """
    holders = _block_holders(sheet.root)
    if _lines(sheet.root) <= LINES_MAX and not any(_is_long_code(block) for block in sheet.root.iter("pre")):
        return [sheet]
    cut, at = Cut({}, {}, 1), 0.0
    stack: list[tuple[Element, bool]] = [(sheet.root, True)]
    while stack:
        element, entered = stack.pop()
        if element is sheet.title or (is_repeated(element) and element is not sheet.root):
            continue
        page = int(at / _CHUNK)
        if entered and id(element) in holders and element.tag not in _WHOLE:
            own = _own_lines(element)
            if own:
                cut.own[id(element)] = page
                at += own
            stack.extend(
                (child, True) for child in reversed(element) if name_of(child) in _BLOCKS or id(child) in holders
            )
        elif element is not sheet.root:
            alone = _is_long_code(element)
            page = page + 1 if alone and at else page
            cut.pages[id(element)] = page
            at = (page + 1.0) * _CHUNK if alone else at + _lines(element)
    cut.count = int(at / _CHUNK) + 1
    parts = parts_of(sheet.root, sheet.title, cut) if cut.pages or cut.own else []
    made: list[Sheet] = []
    for root, title in parts or [(sheet.root, sheet.title)]:
        lines = _lines(root)
        count = math.ceil(lines / _CHUNK) if lines > 2 * LINES_MAX else 0
        code = max((_code_lines(block) for block in root.iter("pre")), default=0)
        count = math.ceil(code / _CODE_CHUNK) if code > _CODE_MAX else count
        shares = cut_text(root, title, count) if count else []
        made.extend(
            replace(sheet, root=part, title=head, depth=1, coarse=code <= _CODE_MAX)
            for part, head in shares or [(root, title)]
        )
    return made


def _is_long_code(element: Element) -> bool:
    """Whether a code block has more lines than are laid out in reasonable time: that grows with their square."""
    return element.tag == "pre" and _code_lines(element) > _CODE_MAX


def _code_lines(element: Element) -> int:
    return 1 + sum(text.count("\n") for text in element.itertext())


def _block_holders(root: Element) -> set[int]:
    """Elements with blocks in them."""
    order, stack = [], [root]
    while stack:
        element = stack.pop()
        order.append(element)
        stack.extend(element)
    holders: set[int] = set()
    for element in reversed(order):
        if any(name_of(child) in _BLOCKS or id(child) in holders for child in element):
            holders.add(id(element))
    return holders


def _lines(element: Element) -> float:
    """About how many lines an element takes: a block takes one, and text as many as it fills."""
    lines, characters, inlines = 0.0, 0, 0
    for inner in element.iter():
        inlines += name_of(inner) not in _BLOCKS
        lines += name_of(inner) in {"p", "li", "tr", "h1", "h2", "h3", "h4", "dt", "dd", "br"}
        text = inner.text or ""
        characters += len(text) + len(inner.tail or "")
        lines += text.count("\n") if inner.tag in {"pre", "code"} else 0
        lines += (inner.tail or "").count("\n") * 0.5 if inner.tag == "span" else 0.0
    return max(lines + characters / _LINE, inlines / _INLINES)


def _own_lines(element: Element) -> float:
    """Lines of the text that stands in an element beside its blocks."""
    characters = len((element.text or "").strip())
    for child in element:
        characters += len((child.tail or "").strip())
        if name_of(child) not in _BLOCKS:
            characters += sum(len(text) for text in child.itertext())
    return 1 + characters / _LINE if characters else 0.0
