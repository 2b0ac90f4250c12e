"""The only way to files: data URIs and regular files below OUT_DIR, each of bounded size.

Paths are tried as they are written, below the turn of the target, and below its ``files/``: a model writes
``turn_1/files/chart.png``, ``files/chart.png``, ``chart.png`` or ``fi:turn_1.files/chart.png`` for the same file.
First of all a name means the file that the request has for it: the newest version in the conversation.
"""

import base64
import binascii
import io
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, unquote_to_bytes
from xml.etree.ElementTree import Element

from PIL import Image
from render.frontend.element_tree import make, parents_of, replace
from render.frontend.figures.svg import DrawingRefused, Load, clean_drawing, data_uri
from render.limits import ASSET_BYTES_MAX, IMAGE_PIXELS_MAX
from render.model import Document, RenderError, RenderRequest

BASE_URL = "file:///out-dir/"
"""What relative addresses resolve against in layout; no folder: the fetcher reads below the root."""
MISSING_SHOWN_MAX = 200
REMOTE_SHOWN_MAX = 60
PICTURE_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "AVIF", "BMP", "TIFF", "ICO")
"""Pictures that are decoded; among Pillow's others are some that start programs, as EPS does."""

_MIMES = {
    ".css": "text/css", ".woff": "font/woff", ".woff2": "font/woff2", ".ttf": "font/ttf", ".otf": "font/otf",
    ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg",
    ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp", ".tif": "image/tiff", ".tiff": "image/tiff",
}  # fmt: skip
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):")
_LOGICAL = re.compile(r"fi:(turn_[A-Za-z0-9_.-]+?)\.(files|user\.attachments)/(.+)")
_SANDBOX = re.compile(r"^sandbox:/*")
# Where other sandboxes keep files, and what stands before a path that begins at the folder of the document.
_PLACE = re.compile(
    r"^(?:(?:sandbox:|file://(?:/out-dir)?)?/*(?:mnt/data|mnt/user-data/(?:outputs|uploads)|out)/+"
    r"|(?:sandbox:|file://(?:/out-dir)?)/*|(?:~|\.|OUT_DIR|\$\{?OUT_DIR\}?)/+)"
)
_CITED = re.compile(r"\s*\[\[\s*[sS]\s*:\s*(\d{1,12})\s*\]\]\s*")
_DOCTYPE = re.compile(rb"<!DOCTYPE[^\[>]*>", re.IGNORECASE)


class AssetRefused(Exception):  # noqa: N818 - not an error of the document: it is reported and shown
    """An asset that isn't read: ``code`` is that of the warning."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Asset:
    """An asset: its bytes, its media type, and its OUT_DIR-relative path (empty for a data URI)."""

    data: bytes
    mime: str
    path: str = ""


def read_asset(document: Document, address: str, depth: int = 0) -> Asset:
    """Reads what an ``src`` or a CSS ``url()`` names; ``depth`` counts the drawings that it is in.

    Raises:
        AssetRefused: ``missing_asset``, ``remote_refused``, ``asset_too_large``, ``asset_refused``.
    """
    address = address.strip()
    if address[:5].lower() == "data:":
        return _checked(document, *_read_data(address), depth=depth)
    data, path = read_file(document, address)
    mime = _MIMES.get(Path(path).suffix.lower(), "application/octet-stream")
    return _checked(document, data, mime, path, depth)


def read_file(document: Document, address: str) -> tuple[bytes, str]:
    """The bytes of a file of any kind below OUT_DIR, and its OUT_DIR-relative path.

    Raises:
        AssetRefused: ``missing_asset``, ``remote_refused``, ``asset_too_large``, ``asset_refused``.
    """
    path = find_file(document.request, address)
    full = Path(os.path.realpath(document.request.root), path)
    try:
        # Without O_NONBLOCK a FIFO in the folder would hang the program here.
        handle = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as exc:
        raise AssetRefused("missing_asset", f"{path} cannot be read.") from exc
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise AssetRefused("asset_refused", f"{path} is not a regular file.")
        if state.st_size > ASSET_BYTES_MAX:
            raise AssetRefused(
                "asset_too_large", f"{path} has {state.st_size:,} bytes; at most {ASSET_BYTES_MAX:,} are read."
            )
        return file.read(ASSET_BYTES_MAX), path


def find_file(request: RenderRequest, address: str) -> str:
    """The OUT_DIR-relative path of the regular file that an address names.

    Raises:
        AssetRefused: ``missing_asset``, ``remote_refused``, ``asset_refused``.
    """
    root = os.path.realpath(request.root)
    given = _named(request, address)
    path = _plain_path(address, root) if given is None else given
    turn = request.target.split("/", 1)[0]
    here = str(Path(request.target).parent)
    outside = False
    for candidate in dict.fromkeys((path, f"{here}/{path}", f"{turn}/{path}", f"{turn}/files/{path}")):
        full = os.path.realpath(os.path.join(root, candidate))  # noqa: PTH118 - a Path would raise on NUL
        if not full.startswith(root + os.sep):
            outside = True
        elif os.path.isfile(full):  # noqa: PTH113
            return full[len(root) + 1 :]
    if outside:
        raise AssetRefused("asset_refused", f"{address[:200]} is outside of the output folder.")
    raise AssetRefused("missing_asset", f"{address[:200]} is not in the output folder.")


def _named(request: RenderRequest, address: str) -> str | None:
    """The file that a citation is, or the newest version of a name in any of its spellings; None for neither."""
    cited = _CITED.fullmatch(unquote(address))
    if cited:
        return next((source.path for source in request.sources if source.sid == int(cited[1])), None)
    turn, _, target = request.target.partition("/files/")
    here = str(Path(target).parent)
    cut = re.split(r"[?#]", address)[0]
    for spelling in dict.fromkeys((address, unquote(address), cut, unquote(cut))):
        logical = _LOGICAL.match(spelling)
        plain = f"{logical[1]}/{logical[2].removeprefix('user.')}/{logical[3]}" if logical else spelling
        plain = _PLACE.sub("", plain, count=1)
        name = plain.removeprefix(f"{turn}/").removeprefix("files/")
        if plain.startswith(f"{turn}/attachments/"):
            continue
        for known in (f"{here}/{name}", name, name.removeprefix("attachments/")):
            if known in request.names:
                return request.names[known]
    return None


def _plain_path(address: str, root: str) -> str:
    """A path relative to OUT_DIR, from any of the ways to write it."""
    address = _SANDBOX.sub("/", address)
    if address.startswith("//"):
        raise AssetRefused(
            "remote_refused", f"{address[:200]} is on another computer; nothing is loaded from there."
        )
    logical = _LOGICAL.match(address)
    if logical:
        address = f"{logical[1]}/{logical[2].removeprefix('user.')}/{logical[3]}"
    scheme = _SCHEME.match(address)
    if scheme and scheme[1].lower() != "file":
        raise AssetRefused(
            "remote_refused", f"{address[:200]} is on another computer; nothing is loaded from there."
        )
    if scheme:
        address = address[len(scheme[0]) :]
        address = address.removeprefix("//")
        address = address.removeprefix(BASE_URL.removeprefix("file://"))
    # A name may hold ? or #, or be percent-encoded: what exists is right.
    exact = os.path.join(root, address.lstrip("/"))  # noqa: PTH118
    path = address if "\0" not in address and os.path.isfile(exact) else unquote(re.split(r"[?#]", address)[0])  # noqa: PTH113
    if "\0" in path or not path.strip("/"):
        raise AssetRefused("missing_asset", "An address is empty.")
    if path.startswith(root + os.sep):
        path = path[len(root) + 1 :]
    return _PLACE.sub("", path, count=1).lstrip("/")


def _read_data(address: str) -> tuple[bytes, str]:
    head, _, body = address[5:].partition(",")
    if len(body) > ASSET_BYTES_MAX * 4 // 3:
        raise AssetRefused("asset_too_large", f"A data URI is longer than {ASSET_BYTES_MAX:,} bytes.")
    parts = [part.strip().lower() for part in head.split(";")]
    raw = unquote_to_bytes(body)
    if "base64" in parts[1:]:
        try:
            raw = base64.b64decode(
                re.sub(rb"[^A-Za-z0-9+/]", b"", raw.replace(b"-", b"+").replace(b"_", b"/")) + b"=="
            )
        except (binascii.Error, ValueError) as exc:
            raise AssetRefused("missing_asset", "A data URI is not base64.") from exc
    return raw, parts[0] or "text/plain"


def _checked(document: Document, data: bytes, mime: str, path: str = "", depth: int = 0) -> Asset:
    """Bounds pictures by their pixels, and takes out of SVG what acts or loads."""
    name = path or "A data URI"
    start = data[:512].lstrip().lower()
    if mime == "image/svg+xml" or start.startswith((b"<svg", b"<?xml")):
        data = _DOCTYPE.sub(b"", data)
        if b"\0" in data[:256] or b"<!ENTITY" in data.upper() or b"<!DOCTYPE" in data.upper():
            raise AssetRefused("asset_refused", f"{name} is XML with entities or of an unusual encoding.")
        try:
            return Asset(clean_drawing(data, loader(document), depth), "image/svg+xml", path)
        except DrawingRefused as exc:
            raise AssetRefused("asset_refused", f"{name} was left out: {exc}.") from exc
    if not mime.startswith("image/") and mime != "application/octet-stream":
        return Asset(data, mime, path)
    try:
        with Image.open(io.BytesIO(data), formats=PICTURE_FORMATS) as picture:
            width, height = picture.size
            mime = Image.MIME.get(picture.format or "", mime)
    except Image.DecompressionBombError as exc:
        raise AssetRefused("asset_too_large", f"{name} has too many pixels.") from exc
    except Exception as exc:
        raise AssetRefused("asset_refused", f"{name} is not a picture that can be read.") from exc
    if width * height > IMAGE_PIXELS_MAX:
        raise AssetRefused(
            "asset_too_large", f"{name} has {width:,} by {height:,} pixels; at most {IMAGE_PIXELS_MAX:,} are read."
        )
    return Asset(data, mime, path)


def loader(document: Document) -> Load:
    """What reads the pictures within drawings: small enough all together to stand in them as data URIs."""
    room = ASSET_BYTES_MAX

    def load(address: str, depth: int) -> str | None:
        nonlocal room
        try:
            asset = read_asset(document, address, depth)
        except AssetRefused as refusal:
            document.warn(refusal.code, str(refusal), path=address[:MISSING_SHOWN_MAX])
            return None
        room -= len(asset.data)
        return data_uri(asset.data, asset.mime) if room > 0 and asset.mime.startswith("image/") else None

    return load


def check_assets(document: Document) -> None:
    """Looks at every picture: a good one gets its OUT_DIR-relative path as ``src``, another a visible placeholder.

    Raises:
        RenderError: ``missing_assets``, with ``strict`` only.
    """
    lost: list[str] = []
    parents = parents_of(document.tree)
    for image in list(document.tree.iter("img")):
        source = image.get("src") or ""
        if source.startswith("data:") and image.get("data-pb"):
            continue
        try:
            asset = read_asset(document, source)
        except AssetRefused as refusal:
            lost.append(source[:MISSING_SHOWN_MAX])
            document.warn(refusal.code, str(refusal), path=source[:MISSING_SHOWN_MAX])
            replace(parents[image], image, _placeholder(source, image.get("alt") or ""))
            continue
        if asset.path:
            image.set("src", quote(asset.path))
        if image.get("alt") is None:
            image.set("alt", Path(asset.path).stem.replace("_", " ").replace("-", " ") if asset.path else "image")
    if lost and document.request.strict:
        raise RenderError("missing_assets", f"These assets cannot be had: {', '.join(lost[:10])}.")


def _placeholder(source: str, alt: str) -> Element:
    shown = "data URI" if source.startswith("data:") else _short_name(source)
    text = f"{alt} \u2014 missing image: {shown}" if alt else f"Missing image: {shown}"
    return make("span", {"class": "pb-missing", "data-path": shown}, text)


def _short_name(source: str) -> str:
    """The address of a file here; of one on another computer its name alone, which stands in the midst of a text."""
    if not re.match(r"(?:https?:)?//", source, re.IGNORECASE):
        return source[:MISSING_SHOWN_MAX]
    host, *path = re.split(r"[?#]", re.sub(r"^[^/]*//", "", source))[0].strip("/").split("/")
    return (path[-1] if path else host)[:REMOTE_SHOWN_MAX]
