"""Drawings made harmless: nothing in them runs, nothing is loaded, and what they repeat is bounded.

Every writer, and every reader of what they write, gets a drawing from here: PDF engines, rasterisers and Office
programs each follow other references, and some of them open files.
"""

import base64
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from xml.etree.ElementTree import Element

from render.frontend.css_rules import without_at_rules
from render.frontend.limits_css import plain_letters
from render.frontend.links import safe_link
from render.limits import SVG_DEPTH_MAX, SVG_EFFECT_SIZE_MAX, SVG_EFFECTS_MAX, SVG_NESTED_MAX, SVG_NODES_MAX

Load = Callable[[str, int], str | None]
"""Gives the data URI of a picture that a drawing names, at that depth of drawings; None if it is not to be had."""

_SPACES = frozenset({"http://www.w3.org/2000/svg", ""})
_ACTIVE = frozenset({
    "script", "foreignobject", "iframe", "object", "embed", "audio", "video", "canvas", "handler", "listener",
    "set", "animate", "animatecolor", "animatemotion", "animatetransform", "discard", "cursor", "font-face-uri",
})  # fmt: skip
_PICTURES = frozenset({"image", "feimage"})
_OUTSIDE = re.compile(r"url\(\s*(?![\"']?\s*#)[^)]*\)?|image-set\([^)]*\)?", re.IGNORECASE)
_PLACE = re.compile(r"url\(\s*[\"']?\s*#([^)\"']+)", re.IGNORECASE)
_EFFECT_SIZES = frozenset({"stddeviation", "radius", "numoctaves", "order"})
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+", re.IGNORECASE)
_REFERENCES_DEEP = 40
"""Steps from one reference to the next that a drawing may have."""
_RULES = frozenset({"import", "font-face", "namespace"})


class DrawingRefused(ValueError):  # noqa: N818 - reported and shown, no error of the document
    """A drawing that is not shown; the message has the reason."""


def clean_drawing(data: bytes, load: Load, depth: int = 0) -> bytes:
    """A drawing of a file or a data URI, without what acts or loads.

    Raises:
        DrawingRefused: it is no SVG, or too large.
    """
    try:
        root = ET.fromstring(data)  # noqa: S314 - the caller has searched for document types and entities
    except (ET.ParseError, ValueError, LookupError, RecursionError) as exc:
        raise DrawingRefused("it is not well-formed SVG") from exc
    if _local(root) != "svg":
        raise DrawingRefused("it is XML, but no SVG")
    check_size(root)
    clean_svg(root, load, depth)
    ET.register_namespace("", "http://www.w3.org/2000/svg")
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    cleaned: bytes = ET.tostring(root, encoding="utf-8")
    return cleaned


def check_size(root: Element) -> None:
    """Counts the elements of a drawing, and what its ``use`` elements repeat.

    Raises:
        DrawingRefused: it is deeper or larger than `SVG_DEPTH_MAX` and `SVG_NODES_MAX`.
    """
    order: list[Element] = []
    stack = [(root, 0)]
    while stack:
        element, depth = stack.pop()
        if depth > SVG_DEPTH_MAX:
            raise DrawingRefused(f"it is nested more than {SVG_DEPTH_MAX} levels deep")
        order.append(element)
        stack.extend((child, depth + 1) for child in element)
    named = {element.get("id", ""): element for element in order}
    targets = {element: [named[name] for name in _references(element) if name in named] for element in order}
    targets = {element: found for element, found in targets.items() if found}
    # What is referred to counts where it is referred to: sizes grow until they no longer do; in a circle, for ever.
    sizes: dict[Element, int] = {}
    for _ in range(_REFERENCES_DEEP):
        before = dict(sizes)
        for element in reversed(order):
            repeated = sum(sizes.get(target, 1) for target in targets.get(element, ()))
            size = 1 + repeated + sum(sizes[child] for child in element)
            sizes[element] = min(size, SVG_NODES_MAX + 1)
        if sizes[root] > SVG_NODES_MAX:
            raise DrawingRefused(f"it has more than {SVG_NODES_MAX:,} elements, or its parts repeat each other")
        if sizes == before or not targets:
            return
    raise DrawingRefused("its parts refer to each other in a circle")


def clean_svg(root: Element, load: Load, depth: int = 0) -> None:
    """Takes out of an ``svg`` element what acts or loads; pictures that may be shown become data URIs."""
    stack = [root]
    effects = 0
    while stack:
        element = stack.pop()
        effects += _local(element).startswith("fe")
        if effects > SVG_EFFECTS_MAX and _local(element) == "filter":
            element[:] = []
        for child in list(element):
            if not isinstance(child.tag, str) or _local(child) in _ACTIVE or _space(child) not in _SPACES:
                element.remove(child)
            else:
                stack.append(child)
        if _local(element) == "style":
            element.text = _OUTSIDE.sub("none", _harmless_rules(element.text or ""))
        for key in list(element.attrib):
            _clean_attribute(element, key, load, depth)


def _harmless_rules(css: str) -> str:
    return without_at_rules(plain_letters(css), _RULES, lambda _keyword, _text: False)


def _clean_attribute(element: Element, key: str, load: Load, depth: int) -> None:
    name = key.rpartition("}")[2].rpartition(":")[2].lower()
    value = element.attrib[key]
    if name.startswith("on") or name in {"src", "base", "data", "ping", "externalresourcesrequired"}:
        del element.attrib[key]
    elif name == "href":
        retained = _filter_reference(_local(element), value.strip(), load, depth)
        if retained is None:
            del element.attrib[key]
        else:
            element.set(key, retained)
    elif name in _EFFECT_SIZES and _NUMBER.search(value):
        element.set(
            key, _NUMBER.sub(lambda number: number[0] if float(number[0]) <= SVG_EFFECT_SIZE_MAX else "1", value)
        )
    elif "(" in value:
        element.set(key, _OUTSIDE.sub("none", plain_letters(value)))


def _filter_reference(name: str, value: str, load: Load, depth: int) -> str | None:
    """What stays of a reference: places within the drawing, links, and pictures as data URIs."""
    if value.startswith("#"):
        return value
    if name == "a":
        return safe_link(value)
    if name in _PICTURES and value and depth < SVG_NESTED_MAX:
        return load(value, depth + 1)
    return None


def data_uri(data: bytes, mime: str) -> str:
    """Bytes as a data URI."""
    return f"data:{mime};base64,{base64.b64encode(data).decode()}"


def _references(element: Element) -> list[str]:
    """The ids of the places in the drawing that an element draws, or is painted with."""
    found: list[str] = []
    for key, value in element.attrib.items():
        if "#" in value:
            if key.rpartition("}")[2].rpartition(":")[2].lower() == "href" and _local(element) != "a":
                found.append(value.strip().removeprefix("#"))
            found += _PLACE.findall(value)
    return found


def _local(element: Element) -> str:
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _space(element: Element) -> str:
    return element.tag[1:].partition("}")[0] if element.tag.startswith("{") else ""
