"""Where WeasyPrint put things: the only reader of its boxes here, whose structure is private to it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import cssselect2
import tinycss2
import weasyprint
from weasyprint.formatting_structure import boxes


@dataclass(frozen=True, slots=True)
class Rectangle:
    """An area of a page in CSS px; an empty one is false."""

    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0

    def __bool__(self) -> bool:
        return self.right > self.left and self.bottom > self.top

    @property
    def width(self) -> float:
        """Its width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Its height."""
        return self.bottom - self.top

    def joined(self, other: "Rectangle") -> "Rectangle":
        """The smallest rectangle around both."""
        if not self or not other:
            return self or other
        return Rectangle(
            min(self.left, other.left),
            min(self.top, other.top),
            max(self.right, other.right),
            max(self.bottom, other.bottom),
        )

    def within(self, width: float, height: float) -> "Rectangle":
        """The part of it on a page."""
        return Rectangle(max(self.left, 0), max(self.top, 0), min(self.right, width), min(self.bottom, height))


def _walk(page: weasyprint.Page, *, flow_only: bool = False, clipped: bool = False) -> Iterator[Any]:
    """The boxes of a page, without recursion; what ``overflow`` may clip is left out unless ``clipped``."""
    stack = [page._page_box]  # noqa: SLF001 - this module's purpose
    while stack:
        box = stack.pop()
        box = getattr(box, "_box", box)
        if flow_only and getattr(box, "style", None) is not None and box.style["position"] in {"absolute", "fixed"}:
            continue
        yield box
        held = isinstance(box, boxes.ParentBox) and not isinstance(box, boxes.MarginBox)
        if held and (clipped or box.style["overflow"] == "visible" or box.element_tag in {"html", "body", None}):
            stack.extend(box.children)


def _border_box(box: Any) -> Rectangle:
    left, top = box.border_box_x(), box.border_box_y()
    return Rectangle(left, top, left + box.border_width(), top + box.border_height())


def _paints(box: Any) -> bool:
    """Whether a box itself leaves ink."""
    if isinstance(box, boxes.TextBox):
        return bool(box.text.strip())
    if isinstance(box, boxes.ReplacedBox):
        return True
    if box.element_tag in {"html", "body", None} or isinstance(box, (boxes.PageBox, boxes.LineBox)):
        return False
    style = box.style
    colour = style["background_color"]
    if (getattr(colour, "alpha", 0) or 0) > 0 or any(image[0] != "none" for image in style["background_image"]):
        return True
    sides = ("top", "right", "bottom", "left")
    return any(
        style[f"border_{side}_width"] and style[f"border_{side}_style"] not in {"none", "hidden"} for side in sides
    )


def painted_rectangle(page: weasyprint.Page, *, flow_only: bool = False) -> Rectangle:
    """The area that a page paints, its canvas aside."""
    area = Rectangle()
    for box in _walk(page, flow_only=flow_only):
        try:
            if box.style["visibility"] == "visible" and _paints(box):
                area = area.joined(_border_box(box))
        except (TypeError, AttributeError, KeyError):  # a box without a place, such as a column group
            continue
    return area


def canvas_colour(page: weasyprint.Page) -> str | None:
    """The colour that ``html`` or ``body`` gives the whole page, as ``#rrggbb``, or None."""
    for box in _walk(page):
        if box.element_tag in {"html", "body"}:
            colour = box.style["background_color"]
            if (getattr(colour, "alpha", 0) or 0) > 0:
                red, green, blue = colour.to("srgb").coordinates
                return "#" + "".join(f"{round(max(0.0, min(1.0, part)) * 255):02x}" for part in (red, green, blue))
    return None


def element_rectangles(
    tree: Element, laid: weasyprint.Document, selector: str
) -> tuple[weasyprint.Page, Rectangle] | None:
    """The first page that holds the first element of a selector, and its area there.

    Raises:
        ValueError: it is no selector.
    """
    try:
        compiled = cssselect2.compile_selector_list(tinycss2.parse_component_value_list(selector))
    except (cssselect2.SelectorError, SyntaxError, RecursionError, MemoryError) as exc:
        # The last three: it is compiled to Python, and has brackets too deep for that.
        raise ValueError(selector) from exc
    tests = [item.test for item in compiled]
    for element in cssselect2.ElementWrapper.from_html_root(tree, content_language=None).iter_subtree():
        if not any(test(element) for test in tests):
            continue
        for page in laid.pages:
            area = Rectangle()
            for box in _walk(page, clipped=True):
                if getattr(box, "element", None) is element.etree_element and isinstance(
                    box, (boxes.BlockLevelBox, boxes.InlineLevelBox)
                ):
                    area = area.joined(_border_box(box))
            if area:
                return page, area.within(page.width, page.height)
    return None


def content_edges(page: weasyprint.Page) -> tuple[float, float]:
    """Left and right edge of a page's content box."""
    box = page._page_box  # noqa: SLF001
    return float(box.content_box_x()), float(box.content_box_x() + box.width)


def fixed_blocks(page: weasyprint.Page) -> Iterator[tuple[float, float]]:
    """Width and height of the border boxes of what the body holds on a page; 0 where it is not fixed in px."""
    body = next((box for box in _walk(page) if box.element_tag == "body"), None)
    for box in body.children if body is not None else ():
        yield _fixed_size(getattr(box, "_box", box))  # a placeholder stands for its box


def fixed_body(page: weasyprint.Page) -> tuple[float, float] | None:
    """Width and height of the body, if both are fixed in px."""
    body = next((box for box in _walk(page) if box.element_tag == "body"), None)
    size = _fixed_size(body) if body is not None else (0.0, 0.0)
    return size if all(size) else None


def _fixed_size(box: Any) -> tuple[float, float]:
    sides = [box.style[name] for name in ("width", "height")]
    fixed = [getattr(side, "unit", None) == "px" for side in sides]
    extra = box.border_height() - box.height if all(fixed) else 0.0
    height = sides[1].value + (0.0 if box.style["box_sizing"] == "border-box" else extra) if fixed[1] else 0.0
    return (float(box.border_width()) if fixed[0] else 0.0, float(height))
