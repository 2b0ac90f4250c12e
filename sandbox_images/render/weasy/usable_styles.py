"""What a layout engine fails on in an author's styles, found and left out rule by rule."""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar
from xml.etree.ElementTree import Element

from render import model as records
from render.frontend.limits_css import rules_of
from render.model import Document, RenderError

CULPRITS_MAX = 4
"""So many rules are searched for before all styles are left out."""
SECONDS_MAX = 20.0
"""The search ends after this time: each attempt takes as long as the document."""
ATTRIBUTES_MAX = 500
"""Style attributes past this number are one unit of the search."""
RULE_SHOWN_MAX = 120
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Unit:
    """A rule, a linked style sheet, or the ``style`` of some elements."""

    elements: tuple[Element, ...]
    text: str

    @property
    def name(self) -> str:
        """How a warning calls it."""
        what = self.elements[0]
        if what.tag == "style":
            return f"rule {' '.join(self.text.split())[:RULE_SHOWN_MAX]}"
        if what.tag == "link":
            return f"style sheet {what.get('href', '')[:RULE_SHOWN_MAX]}"
        return "style attributes" if len(self.elements) > 1 else f"style {self.text[:RULE_SHOWN_MAX]}"

    @property
    def is_decoration(self) -> bool:
        """Whether a document loses little without it; of two rules that fail together, such a one goes."""
        return self.elements[0].tag == "style" and "::first-" in self.text


class _Search(Generic[T]):
    """The attempts at one document, and the warnings that it had before them."""

    def __init__(self, document: Document, attempt: Callable[[], T], before: list[records.Warning]) -> None:
        self.document = document
        self.attempt = attempt
        self.units = _units(document)
        self.before = before
        self.ends = time.monotonic() + SECONDS_MAX

    def tried(self, stays: Sequence[bool]) -> T | Exception:
        """The result with some of the units, or why there is none."""
        _apply(self.units, stays)
        self.document.warnings[:] = self.before
        return _result(self.attempt)

    def culprit(self, stays: list[bool]) -> int | None:
        """The last unit of the shortest beginning that fails, decoration being last; None if time is up."""
        order = sorted(range(len(stays)), key=lambda number: self.units[number].is_decoration)
        low, high = 0, len(stays)
        while high - low > 1:
            if time.monotonic() > self.ends:
                return None
            middle = (low + high) // 2
            begun = set(order[:middle])
            if isinstance(self.tried([stay and number in begun for number, stay in enumerate(stays)]), Exception):
                high = middle
            else:
                low = middle
        return order[high - 1]


def with_usable_styles(document: Document, attempt: Callable[[], T]) -> T:
    """Attempt a layout; if the author's styles make it fail, leave out those that do, with a warning for each.

    Raises:
        RenderError: ``layout_failed``: it fails without any of them; or what the attempt raises.
    """
    before = list(document.warnings)
    result = _result(attempt)
    if not isinstance(result, Exception):
        return result
    search = _Search(document, attempt, before)
    every = [True] * len(search.units)
    first = f"{type(result).__name__}: {result}".removesuffix(": ")[:200]
    plain = search.tried([False] * len(every)) if every else result
    stays = list(every)
    while not isinstance(plain, Exception) and len(every) - sum(stays) < CULPRITS_MAX:
        culprit = search.culprit(stays)
        if culprit is None:
            break
        stays[culprit] = False
        result = search.tried(stays)
        if not isinstance(result, Exception):
            for unit, stay in zip(search.units, stays, strict=True):
                if not stay:
                    document.warn("dropped_css", f"The {unit.name} cannot be laid out and was left out ({first}).")
            return result
    drop_styles(document)
    result = search.tried([])
    document.warn("styles_dropped", f"The document's own styles could not be laid out and were left out ({first}).")
    if isinstance(result, Exception):
        message = f"The document could not be laid out: {type(result).__name__}: {result}"[:400]
        raise RenderError("layout_failed", message) from result
    return result


def _result(attempt: Callable[[], T]) -> T | Exception:
    try:
        return attempt()
    except (RenderError, MemoryError, OSError):
        raise
    except Exception as exc:  # noqa: BLE001 - a layout engine on hostile input: any failure is one
        gc.collect()  # a layout is full of cycles
        return exc


def drop_styles(document: Document) -> None:
    """Takes the author's styles out of a document."""
    for parent in list(document.tree.iter()):
        for child in [child for child in parent if child.tag in {"style", "link"}]:
            parent.remove(child)
        parent.attrib.pop("style", None)
        if parent.tag != "img":
            for key in ("width", "height", "bgcolor"):
                parent.attrib.pop(key, None)


def _units(document: Document) -> list[_Unit]:
    sheets: list[_Unit] = []
    attributes: list[_Unit] = []
    for element in document.tree.iter():
        if element.tag == "style":
            sheets += [_Unit((element,), rule) for rule in rules_of(element.text or "")]
        elif element.tag == "link":
            sheets.append(_Unit((element,), element.get("rel", "")))
        elif element.get("style"):
            attributes.append(_Unit((element,), element.get("style", "")))
    rest = attributes[ATTRIBUTES_MAX:]
    return sheets + attributes[:ATTRIBUTES_MAX] + _in_one(rest)


def _in_one(units: list[_Unit]) -> list[_Unit]:
    """Units of attributes as one, which remembers each element's own style by a mark."""
    for unit in units:
        unit.elements[0].set("data-pb-style", unit.text)
    return [_Unit(tuple(unit.elements[0] for unit in units), "")] if units else []


def _apply(units: list[_Unit], stays: Sequence[bool]) -> None:
    rules: dict[Element, list[str]] = {}
    for unit, stay in zip(units, stays, strict=False):
        for element in unit.elements:
            if element.tag == "style":
                rules.setdefault(element, [])
                if stay:
                    rules[element].append(unit.text)
            else:
                name = "rel" if element.tag == "link" else "style"
                element.set(name, (unit.text or element.get("data-pb-style", "")) if stay else "")
    for element, texts in rules.items():
        element.text = "\n".join(texts)
