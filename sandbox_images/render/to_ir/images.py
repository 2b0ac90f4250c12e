"""Pictures: their bytes, and the size at which they are shown."""

import io
import warnings
from copy import deepcopy
from xml.etree.ElementTree import Element, fromstring, tostring

from PIL import Image as Picture
from render.frontend.assets import AssetRefused, read_asset
from render.model import Document
from render.to_ir.style import Declarations, length, percentage

_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_XMLNS = "{http://www.w3.org/2000/xmlns/}"
_SVG_MIME = "image/svg+xml"
_DEFAULT_SVG = (300.0, 150.0)
_MAX_DEPTH = 200


def fetch(source: str, document: Document) -> tuple[bytes, str] | None:
    """The bytes and media type of an image's source; None if it cannot be had or is no picture."""
    try:
        asset = read_asset(document, source)
    except AssetRefused:
        return None
    return (asset.data, asset.mime) if asset.data and asset.mime.startswith("image/") else None


def natural_size(data: bytes, mime: str) -> tuple[float, float] | None:
    """Width and height in pixels; None if the bytes cannot be read as a picture."""
    if mime == _SVG_MIME:
        return _svg_size(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Picture.open(io.BytesIO(data)) as picture:
                width, height = picture.size
                turned = picture.getexif().get(0x0112, 1) in {5, 6, 7, 8}
    except Exception:  # noqa: BLE001 - decoders raise what they like on broken files
        return None
    return (float(height), float(width)) if turned else (float(width), float(height))


def _svg_size(data: bytes) -> tuple[float, float] | None:
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        return None
    try:
        root = fromstring(data)  # noqa: S314 - no DTD, no entities: searched above
    except (SyntaxError, ValueError, RecursionError, LookupError):
        return None
    width, height = length(root.get("width")), length(root.get("height"))
    box = root.get("viewBox", "").replace(",", " ").split()
    try:
        wide, tall = (float(box[2]), float(box[3])) if len(box) == 4 else (0.0, 0.0)  # noqa: PLR2004 - x y w h
    except ValueError:
        wide, tall = 0.0, 0.0
    if wide > 0 and tall > 0:
        if width:
            return width, height or width * tall / wide
        return (height * wide / tall, height) if height else (wide, tall)
    return width or _DEFAULT_SVG[0], height or _DEFAULT_SVG[1]


def shown_size(
    element: Element, style: Declarations, natural: tuple[float, float], room: float = 0.0
) -> tuple[float, float]:
    """The size at which an image element shows, by its style, its attributes or its nature.

    Args:
        element: the ``img`` or ``svg``.
        style: the author's style of it.
        natural: width and height of the picture.
        room: the width of which percentages are taken; 0 if it is not known.
    """
    width = _side(style.get("width"), element.get("width"), room)
    height = _side(style.get("height"), element.get("height"), 0.0)
    ratio = natural[0] / natural[1] if natural[0] > 0 and natural[1] > 0 else 1.0
    if width is None and height is None:
        width, height = natural
    elif width is None:
        width = (height or 1.0) * ratio
    elif height is None:
        height = width / ratio
    most_wide = _side(style.get("max-width"), None, room)
    if most_wide and width > most_wide:
        width, height = most_wide, (height or 1.0) * most_wide / width
    most_tall = length(style.get("max-height"))
    if most_tall and (height or 0) > most_tall:
        width, height = width * most_tall / (height or 1.0), most_tall
    return max(width, 1.0), max(height or 1.0, 1.0)


def _side(style: str | None, attribute: str | None, room: float) -> float | None:
    for text in (style, attribute):
        found = length(text)
        share = percentage(text)
        if found is None and share and room:
            found = room * min(share, 100.0) / 100
        if found is not None:
            return found
    return None


def svg_of(element: Element, document: Document) -> str:
    """The SVG of an element: itself, or the ``svg`` or the image with SVG data within; empty if there is none."""
    for inner in element.iter():
        if not isinstance(inner.tag, str):
            continue
        if inner.tag in {_SVG + "svg", "svg"}:
            return serialised(inner)
        if inner.tag == "img" and inner.get("src", "")[:19].lower() == "data:image/svg+xml;":
            fetched = fetch(inner.get("src", ""), document)
            if fetched and fetched[1] == _SVG_MIME:
                return fetched[0].decode("utf-8", "replace")
    return ""


def serialised(svg: Element) -> str:
    """An ``svg`` element of the tree as a document of its own; empty if it is nested beyond reason."""
    if _deep(svg):
        return ""
    plain = deepcopy(svg)
    plain.tail = None
    for element in plain.iter():
        if isinstance(element.tag, str):
            element.tag = element.tag.removeprefix(_SVG)
        for name in [name for name in element.attrib if name.startswith(_XLINK)]:
            element.set("href", element.attrib.pop(name))
        for name in [name for name in element.attrib if name.startswith(_XMLNS) or name[:5] == "xmlns"]:
            del element.attrib[name]  # as a parser of HTML reads it; it is written once, below
    text = tostring(plain, encoding="unicode")
    return text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)


def _deep(element: Element) -> bool:
    level = [element]
    for _ in range(_MAX_DEPTH):
        level = [child for parent in level for child in parent]
        if not level:
            return False
    return True
