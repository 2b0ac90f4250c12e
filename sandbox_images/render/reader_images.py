"""Pictures: bytes of data URIs and of regular files below OUT_DIR, and the size at which they are shown."""

import base64
import binascii
import io
import os
import stat
import warnings
from copy import deepcopy
from pathlib import PurePosixPath
from urllib.parse import unquote, unquote_to_bytes, urlsplit
from xml.etree.ElementTree import Element, fromstring, tostring

from PIL import Image as Picture

from render.reader_style import declarations, length, percentage

MAX_BYTES = 64 * 1024 * 1024
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_SVG_MIME = "image/svg+xml"
_DEFAULT_SVG = (300.0, 150.0)
_MAX_DEPTH = 200
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
)


def fetch(source: str, root: str) -> tuple[bytes, str] | None:
    """The bytes and media type of an image's source; None if it cannot be had.

    Args:
        source: a data URI or a path below ``root``, perhaps percent-encoded or with a query.
        root: OUT_DIR.
    """
    if source[:5].lower() == "data:":
        data = _data_uri(source)
    else:
        parts = urlsplit(source) if source.isprintable() else None
        if parts is None or parts.scheme not in {"", "file"} or parts.netloc:
            return None
        data = next((data for path in (unquote(parts.path), source) if (data := _file(path, root))), None)
    if not data:
        return None
    mime = media_type(data)
    return (data, mime) if mime else None


def _data_uri(source: str) -> bytes | None:
    head, comma, body = source[5:].partition(",")
    if not comma or len(body) > MAX_BYTES * 2:
        return None
    if not head.lower().replace(" ", "").endswith(";base64"):
        return unquote_to_bytes(body)
    try:
        packed = "".join(unquote(body).split())
        return base64.b64decode(packed + "=" * (-len(packed) % 4))
    except (binascii.Error, ValueError):
        return None


def _file(path: str, root: str) -> bytes | None:
    """Reads a regular file, following no symlink on the way from the root."""
    relative = PurePosixPath(os.path.relpath(path, root)) if path.startswith(root.rstrip("/") + "/") else PurePosixPath(path)
    steps = [step for step in relative.parts if step != "."]
    if not steps or relative.is_absolute() or ".." in steps or "\0" in path:
        return None
    folder = -1
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        for step in steps[:-1]:
            inner = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            os.close(folder)
            folder = inner
        handle = os.open(steps[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(handle, "rb") as opened:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BYTES:
                return None
            return opened.read(MAX_BYTES)
    except (OSError, ValueError):
        return None
    finally:
        if folder >= 0:
            os.close(folder)


def media_type(data: bytes) -> str | None:
    """What the bytes are, by what they begin with; None if they are no picture that documents show."""
    for signature, mime in _SIGNATURES:
        if data.startswith(signature):
            return mime
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    if b"<svg" in data[:4096] or b":svg" in data[:4096]:
        return _SVG_MIME
    return None


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
        root = fromstring(data)  # noqa: S314 - no DTD, no entities: looked for above
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


def shown_size(element: Element, natural: tuple[float, float], room: float = 0.0) -> tuple[float, float]:
    """The size at which an image element shows, by its style, its attributes or its nature.

    Args:
        element: the ``img`` or ``svg``.
        natural: width and height of the picture.
        room: the width of which percentages are taken; 0 if it is not known.
    """
    style = declarations(element.get("style", ""))
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


def svg_of(element: Element) -> str:
    """The SVG of an element: itself, or the ``svg`` or the image with SVG data within; empty if there is none."""
    for inner in element.iter():
        if not isinstance(inner.tag, str):
            continue
        if inner.tag in {_SVG + "svg", "svg"}:
            return serialised(inner)
        if inner.tag == "img" and inner.get("src", "")[:5].lower() == "data:":
            fetched = fetch(inner.get("src", ""), "")
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
    plain.attrib.pop("xmlns", None)
    text = tostring(plain, encoding="unicode")
    return text.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)


def _deep(element: Element) -> bool:
    level = [element]
    for _ in range(_MAX_DEPTH):
        level = [child for parent in level for child in parent]
        if not level:
            return False
    return True
