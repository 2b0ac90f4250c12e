"""The only interface to WeasyPrint's box tree: lays out a tree and hands out plain boxes with positions, sizes and looks.

The box tree is a private structure of WeasyPrint, pinned to 70.*; nothing else in the slides' writer imports from
``weasyprint``. `tests/container/in_image/render/test_layout_boxes.py` fails if its shape changes. Lengths are CSS pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from render.weasy.box_style import Look
from render.weasy.engine import TreeHTML
from render.weasy.fitting_grids import fit_grids
from render.weasy.grounds import Ground, canvas_of, grounds_of
from render.weasy.limits import keep_bounds
from render.weasy.savings import save
from weasyprint import CSS
from weasyprint.css.counters import CounterStyle
from weasyprint.text.fonts import FontConfiguration
from weasyprint.urls import URLFetcher

_LARGEST = 1e7
_KINDS = {
    "TableBox": "table",
    "InlineTableBox": "table",
    "TableRowGroupBox": "group",
    "TableRowBox": "row",
    "TableCellBox": "cell",
    "TableCaptionBox": "block",
    "FlexBox": "flex",
    "InlineFlexBox": "flex",
    "GridBox": "grid",
    "InlineGridBox": "grid",
    "LineBox": "line",
    "InlineBox": "inline",
    "InlineBlockBox": "inline-block",
    "TextBox": "text",
    "BlockReplacedBox": "replaced",
    "InlineReplacedBox": "replaced",
}


@dataclass(slots=True)
class BoxNode:
    """A laid-out box.

    Attributes:
        kind: block, flex, grid, table, group, row, cell, line, inline, inline-block, text, replaced or marker.
        element: the element it comes from.
        pseudo: ``before``, ``after`` or "" for the element itself.
        principal: whether it is the element's own box, not an anonymous one.
        look: computed style.
        x, y, width, height: of the border box.
        inner_x, inner_width: of the content box.
        text: of a text box or a marker.
        column, colspan, rowspan: of a table cell.
        out_of_flow: absolutely positioned or floating.
        grounds: the colour and the gradients behind it, the lowest first.
        matrix: the transformation of the box and all in it, as CSS writes ``matrix()``; None for none.
        children: in the order of the document.
    """

    kind: str
    element: Element | None
    pseudo: str
    principal: bool
    look: Look
    x: float
    y: float
    width: float
    height: float
    inner_x: float
    inner_width: float
    text: str = ""
    column: int = 0
    colspan: int = 1
    rowspan: int = 1
    out_of_flow: bool = False
    grounds: tuple[Ground, ...] = ()
    matrix: tuple[float, ...] | None = None
    children: list["BoxNode"] = field(default_factory=list)

    @property
    def bottom(self) -> float:
        """Lower edge of the border box."""
        return self.y + self.height

    def walk(self) -> Iterator["BoxNode"]:
        """Itself and all boxes in it, in document order."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


class Layouter:
    """Lays out trees with one set of styles and one font configuration."""

    def __init__(self, css: str, fetcher: URLFetcher | None, base_url: str | None) -> None:
        """Parses the deck's own style sheet once.

        Args:
            css: the deck's rules; they have the origin "user": an author's rules win, but not over ``!important``.
            fetcher: where images come from; None refuses everything but data URIs.
            base_url: what relative references start from.
        """
        self._fonts = FontConfiguration()
        self._fetcher = fetcher or URLFetcher(allowed_protocols={"data"})
        self._base_url = base_url
        self._sheet = CSS(string=css, font_config=self._fonts, url_fetcher=self._fetcher, base_url=base_url)
        self._cache: dict[str, Any] = {}

    def pages(self, tree: Element, shape: float = 9 / 16) -> list[BoxNode]:
        """The body's box of every page of a document.

        Args:
            tree: ``html`` element of a document.
            shape: height of what is shown of a page, in shares of its width.
        """
        keep_bounds()  # of repeating gradients, which are laid out here
        fit_grids()
        save()
        rendered = TreeHTML(tree, self._fetcher, base_url=self._base_url).render(
            font_config=self._fonts,
            counter_style=CounterStyle(),
            stylesheets=[self._sheet],
            cache=self._cache,
            presentational_hints=True,
        )
        found = []
        for page in rendered.pages:
            node = _node(page._page_box, seen=set())  # noqa: SLF001
            node.grounds = canvas_of(page._page_box, page.width * shape)  # noqa: SLF001
            found.append(node)
        return found


def _node(box: Any, seen: set[tuple[int, str]]) -> BoxNode:
    """A plain copy of a box and all in it."""
    box = getattr(box, "_box", box)  # what stands for a box that is out of the flow
    tag = box.element_tag or ""
    pseudo = tag.partition("::")[2]
    kind = _KINDS.get(type(box).__name__, "block")
    if pseudo == "marker" and kind != "text":
        kind = "marker"
    key = (id(box.element), pseudo)
    principal = kind not in {"line", "text"} and box.element is not None and key not in seen
    if kind not in {"line", "text"}:
        seen.add(key)
    x, y, width, height = _border_box(box, kind)
    node = BoxNode(
        kind=kind,
        element=box.element if isinstance(box.element, Element) else None,
        pseudo=pseudo,
        principal=principal,
        look=Look(box.style),
        x=x,
        y=y,
        width=width,
        height=height,
        inner_x=_number(box.position_x) if kind in {"line", "text"} else _number(box.content_box_x()),
        inner_width=_number(box.width),
        text=getattr(box, "text", ""),
        column=int(getattr(box, "grid_x", 0) or 0),
        colspan=int(getattr(box, "colspan", 1) or 1),
        rowspan=int(getattr(box, "rowspan", 1) or 1),
        out_of_flow=kind not in {"line", "text"} and not box.is_in_normal_flow(),
        grounds=grounds_of(box) if kind not in {"line", "text"} else (),
        matrix=_matrix(box),
    )
    node.children = [_node(child, seen) for child in box.children]
    if kind == "marker":
        node.text = "".join(inner.text for inner in node.walk() if inner is not node)
        node.children = []
    return node


def _matrix(box: Any) -> tuple[float, ...] | None:
    matrix = getattr(box, "transformation_matrix", None)
    values = tuple(float(value) for value in matrix.values) if matrix else ()
    known = len(values) == 6 and all(abs(value) < _LARGEST for value in values)  # noqa: PLR2004 - of an affine matrix
    return values if known and values != (1, 0, 0, 1, 0, 0) else None


def _border_box(box: Any, kind: str) -> tuple[float, float, float, float]:
    if kind in {"line", "text"}:
        return _number(box.position_x), _number(box.position_y), _number(box.width), _number(box.height)
    return (
        _number(box.border_box_x()),
        _number(box.border_box_y()),
        _number(box.border_width()),
        _number(box.border_height()),
    )


def _number(value: Any) -> float:
    """A length; "auto", infinities and anything else that layout left open are 0."""
    return float(value) if isinstance(value, (int, float)) and abs(value) < _LARGEST else 0.0
