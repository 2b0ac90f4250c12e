"""Rows of flex boxes that wrap, each as an element of its own: WeasyPrint 70 breaks no page within a flex box (#2287).

The box moves to another page as a whole, away from its heading, and what is longer than a page ends below it.
"""

from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

import weasyprint
from render.frontend.element_tree import add_class, make
from weasyprint.formatting_structure import boxes

PART_OF_PAGE = 0.3
"""A lower box is left alone: it is not torn apart, and where it moves to another page it leaves little room."""


def part_flex_rows(laid: weasyprint.Document) -> bool:
    """Put each row of high flex boxes that wrap into an element of its own.

    Returns:
        Whether there were any.
    """
    parted = False
    for page in laid.pages:
        height = page._page_box.height  # noqa: SLF001 - this package's purpose
        for box in _wrapping(page._page_box):  # noqa: SLF001
            rows = _rows(box)
            if len(rows) > 1 and box.height > height * PART_OF_PAGE:
                _part(box.element, rows, _gap(box))
                parted = True
    return parted


def _wrapping(page: Any) -> Iterator[Any]:
    """The flex boxes of a page that wrap, as far as they stand in the flow of blocks."""
    stack = [page]
    while stack:
        box = stack.pop()
        box = getattr(box, "_box", box)
        if isinstance(box, boxes.FlexContainerBox):
            style = box.style
            if style["flex_wrap"] == "wrap" and style["flex_direction"] == "row" and "pb-row" not in _classes(box):
                yield box
        elif isinstance(box, boxes.BlockContainerBox | boxes.PageBox) and not isinstance(box, boxes.MarginBox):
            stack.extend(child for child in box.children if getattr(child, "is_in_normal_flow", bool)())


def _classes(box: Any) -> str:
    return (box.element.get("class") or "") if box.element is not None else "pb-row"


def _rows(box: Any) -> list[list[Element]]:
    """The elements of a flex box by the rows that they were laid out in; none if it holds anything but elements."""
    rows: list[list[Element]] = []
    bottom = -1.0
    direct = set(box.element)
    for child in box.children:
        if child.element not in direct or "::" in (child.element_tag or "") or child.style["order"]:
            return []
        if not rows or child.position_y >= bottom - 1:
            rows.append([])
            bottom = child.position_y + child.margin_height()
        rows[-1].append(child.element)
    return rows if sum(map(len, rows)) == len(set(box.element)) else []


def _gap(box: Any) -> float:
    gap = box.style["row_gap"]
    return float(gap.value) if getattr(gap, "unit", "") == "px" else 0.0


def _part(element: Element, rows: list[list[Element]], gap: float) -> None:
    """Make each row a flex box with the styles of the one that held them all."""
    style, names = element.get("style") or "", element.get("class") or ""
    element[:] = []
    for number, row in enumerate(rows):
        space = f";--pb-gap:{gap if number else 0:g}px"
        element.append(make("div", {"class": f"{names} pb-row".strip(), "style": style + space}, None, *row))
    add_class(element, "pb-flow")
