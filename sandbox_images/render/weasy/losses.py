"""Words that WeasyPrint leaves out of its pages, found by counting them before and after, and a layout that has them.

It drops what stands behind a flex box of a fixed height that is longer than its page (WeasyPrint #2346), and what it
takes for collected on another page.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import weasyprint
import weasyprint.document
from render.frontend.element_tree import add_class, parents_of, remove_class
from render.model import Document
from render.weasy.engine import lay_out
from render.weasy.patch import change
from weasyprint.formatting_structure import boxes

WORDS_SHOWN = 12
LETTERS_SHOWN = 40
EDGE_PX = 3.0
"""Text that reaches so far over an edge is still read."""
HIDDEN_PX = 2.0
"""What clips to a size like this is meant to hide: text for screen readers, a closed part."""
_build = weasyprint.document.build_formatting_structure
_counted: dict[Element, int] = {}
"""Letters of the last document that was taken apart into boxes, by element."""
_ADDED = re.compile(r"::(?:before|after|marker|footnote-call|footnote-marker)\b")
"""Boxes whose text is not the document's own; that of ``::first-letter`` and ``::first-line`` is."""
_REMEDIES = ("pb-open", "pb-flow")
"""Classes of the ancestors of lost words, one after the other: free heights, then blocks in place of flex and grid."""

Letters = dict[Element, int]


def lay_out_whole(
    document: Document, sheets: Sequence[weasyprint.CSS], media: str = "print", **options: Any
) -> weasyprint.Document:
    """Lay a document out, and again with fewer fixed heights if words are left out; warn of what is changed or lost.

    Raises:
        RenderError: ``layout_failed``.
    """

    def attempt() -> tuple[weasyprint.Document, Letters]:
        change(weasyprint.document, "build_formatting_structure", _counting)
        laid = lay_out(document, sheets, media, **options)
        return laid, lost_letters(laid)

    laid, lost = attempt()
    before = sum(lost.values())
    for remedy in _REMEDIES:
        if not lost:
            break
        marked = _mark_ancestors(document.tree, lost, remedy)
        again, still_lost = attempt()
        if sum(still_lost.values()) < sum(lost.values()):
            laid, lost = again, still_lost
        else:
            for element in marked:
                remove_class(element, remedy)
    if lost:
        words = [word for element in document.tree.iter() if element in lost for word in _last_words(element, lost)]
        _warn(document, words, "are missing from the pages")
    elif before:
        document.warn(
            "layout_changed",
            "Words did not fit elements of fixed heights; these were made as high as their content.",
        )
    return laid


def lost_letters(laid: weasyprint.Document) -> Letters:
    """How many letters of each element's own text the pages lack."""
    found = _letters(page._page_box for page in laid.pages)  # noqa: SLF001 - this package's purpose
    missing = {element: count - found.get(element, 0) for element, count in _counted.items()}
    return {element: count for element, count in missing.items() if count > 0}


def _counting(*arguments: Any) -> Any:
    root = _build(*arguments)
    _counted.clear()
    _counted.update(_letters([root]))
    return root


def _letters(roots: Iterable[Any]) -> Letters:
    """Letters of boxes by element, without those that a style sheet adds."""
    counts: Letters = {}
    stack = list(roots)
    while stack:
        box = stack.pop()
        box = getattr(box, "_box", box)  # a placeholder stands for its box
        if isinstance(box, boxes.TextBox):
            if box.element is not None and not _ADDED.search(box.element_tag or ""):
                letters = len("".join(box.text.split()))
                counts[box.element] = counts.get(box.element, 0) + letters
        elif isinstance(box, boxes.ParentBox):
            stack.extend(box.children)
    return counts


def _mark_ancestors(tree: Element, lost: Letters, name: str) -> set[Element]:
    """Gives elements that lack letters and all around them a class."""
    parents = parents_of(tree)
    marked: set[Element] = set()
    for element in lost:
        above: Element | None = element
        while above is not None and above not in marked:
            marked.add(above)
            add_class(above, name)
            above = parents.get(above)
    return marked


def _last_words(element: Element, lost: Letters) -> list[str]:
    """The words at the end of an element's own text that have as many letters as it lacks."""
    words = " ".join([element.text or "", *((child.tail or "") for child in element)]).split()
    start, missing = len(words), lost[element]
    while start and missing > 0:
        start -= 1
        missing -= len(words[start])
    return words[start:]


def warn_unseen(document: Document, laid: weasyprint.Document, *, edges: bool = True) -> None:
    """Warn of words that are laid out where nobody sees them.

    Args:
        document: gets the warning.
        laid: its layout.
        edges: whether what is beyond the right or lower edge of a page is cut off.
    """
    words: list[str] = []
    for page in laid.pages:
        whole = _Area(page.width + EDGE_PX, page.height + EDGE_PX) if edges else _Area()
        stack: list[tuple[Any, _Area]] = [(page._page_box, whole)]  # noqa: SLF001
        while stack and len(words) <= WORDS_SHOWN:
            box, area = stack.pop()
            box = getattr(box, "_box", box)
            if isinstance(box, boxes.TextBox):
                if box.style["visibility"] == "visible" and area.hides(box):
                    words += box.text.split()
            elif isinstance(box, boxes.ParentBox) and not box.style["transform"] and box.style["opacity"]:
                inner = area.within(box) if box.style["overflow"] != "visible" else area
                if inner:
                    stack.extend((child, inner) for child in reversed(box.children))
    if words:
        _warn(document, words, "are cut off at an edge")


@dataclass(frozen=True, slots=True)
class _Area:
    """What is seen of a page: to a right and a lower edge, in px."""

    right: float = math.inf
    bottom: float = math.inf

    def hides(self, box: Any) -> bool:
        """Whether a line of text ends beyond the right edge, or begins below the lower one."""
        right, top = box.position_x + box.width, box.position_y
        return bool(box.text.strip()) and (right > self.right or top > self.bottom)

    def within(self, box: Any) -> "_Area | None":
        """The part that a box which clips shows; None if it hides all that it holds, on purpose."""
        if box.element_tag in {"html", "body", None} or not isinstance(box.height, float | int):
            return self
        if box.width <= HIDDEN_PX or box.height <= HIDDEN_PX:
            return None
        if box.style["text_overflow"] != "clip":  # an ellipsis shows that there is more
            return _Area(math.inf, self.bottom)
        right = box.padding_box_x() + box.padding_width() + EDGE_PX
        return _Area(min(self.right, right), min(self.bottom, box.padding_box_y() + box.padding_height()))


def _warn(document: Document, words: list[str], where: str) -> None:
    shown = " ".join(word[:LETTERS_SHOWN] for word in words[:WORDS_SHOWN]) + (
        " \u2026" if len(words) > WORDS_SHOWN else ""
    )
    document.warn("content_lost", f"Words {where}: {shown}; give the elements around them more room.")
