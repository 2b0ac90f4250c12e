"""The package of a DOCX file: its parts, what they lead to, and its pictures."""

import hashlib
import io
import re
import warnings
import zipfile
from dataclasses import dataclass, field
from typing import BinaryIO
from urllib.parse import quote, urlsplit

import resvg_py
from PIL import Image as Picture
from render.docx.xml import DECLARATION, attribute
from render.frontend.links import SCHEMES

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
_EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpeg",
    "image/gif": "gif",
    "image/bmp": "bmp",
    "image/svg+xml": "svg",
}
_WORKBOOKS = {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx"}
_MAX_URL = 2000
_MAX_PIXELS = 40_000_000
_MAX_SVG_PIXELS = 3000
_MAX_SVG_CHARS = 20_000_000
_HOST = re.compile(r"[\w.\-]+|\[[0-9a-fA-F:.]+\]")
_MAIL = re.compile(r"mailto:[^@\s/?]+@[\w.\-]+(\?[^\s]*)?", re.IGNORECASE)
_SAFE = "!#$%&'()*+,/:;=?@[]~-._"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(slots=True)
class Part:
    """A part that leads to others: relationship ids by what they lead to."""

    name: str
    links: dict[tuple[str, str, bool], str] = field(default_factory=dict)

    def link(self, kind: str, target: str, *, external: bool = False) -> str:
        """The id of a relationship, made once."""
        return self.links.setdefault((kind, target, external), f"rId{len(self.links) + 1}")

    def relationships(self) -> str:
        """The part that lists what this one leads to."""
        rows = ""
        for (kind, target, external), number in self.links.items():
            mode = ' TargetMode="External"' if external else ""
            full = kind if kind.startswith("http") else _OFFICE + kind
            rows += f'<Relationship Id="{number}" Type="{full}" Target="{attribute(target)}"{mode}/>'
        space = "http://schemas.openxmlformats.org/package/2006/relationships"
        return f'{DECLARATION}<Relationships xmlns="{space}">{rows}</Relationships>'


def safe_url(url: str) -> str | None:
    """A URL that Word opens a document with; None where it would call the file damaged or the link is empty."""
    url = "".join(url.split())
    if not url or len(url) > _MAX_URL:
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    scheme = parts.scheme.lower()
    if scheme in {"http", "https"}:
        host = _ascii_host(parts.hostname or "")
        if host is None or "\\" in parts.netloc:
            return None
        if host != parts.hostname:
            url = url.replace(parts.netloc, parts.netloc.lower().replace(parts.hostname or "", host), 1)
    elif parts.netloc or (scheme and scheme not in SCHEMES) or (scheme == "mailto" and not _MAIL.fullmatch(url)):
        return None
    found = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", quote(url, safe=_SAFE))
    head, mark, tail = found.partition("#")
    return head + mark + tail.replace("#", "%23")


def _ascii_host(host: str) -> str | None:
    """A host as every program knows it: percent signs are for paths; None if it is none."""
    if not _HOST.fullmatch(host):
        return None
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return None


class Media:
    """The pictures of a package, each stored once."""

    def __init__(self, stem: str = "image") -> None:
        self._stem = stem
        self.files: dict[str, bytes] = {}
        self._names: dict[str, str] = {}
        self._converted: dict[str, bytes | None] = {}

    def add(self, data: bytes, mime: str) -> str | None:
        """Stores a picture, as PNG if Word doesn't know its format.

        Returns:
            The name of its part, relative to ``word/``; None if it cannot be read.
        """
        if mime not in _EXTENSIONS:
            converted = self._png(data)
            if converted is None:
                return None
            data, mime = converted, "image/png"
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._names:
            name = f"media/{self._stem}{len(self._names) + 1}.{_EXTENSIONS[mime]}"
            self._names[digest] = name
            self.files[f"word/{name}"] = data
        return self._names[digest]

    def drawn(self, svg: str, width: float) -> str | None:
        """Stores an SVG drawn as PNG, twice as fine as it is shown; None if it cannot be drawn."""
        key = hashlib.sha256(f"{width:.0f} {svg}".encode("utf-8", "replace")).hexdigest()
        if key not in self._converted:
            self._converted[key] = draw_svg(svg, width)
        png = self._converted[key]
        return None if png is None else self.add(png, "image/png")

    def _png(self, data: bytes) -> bytes | None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Picture.open(io.BytesIO(data)) as picture:
                    if picture.width * picture.height > _MAX_PIXELS:
                        return None
                    retained = (
                        picture if picture.mode in {"RGB", "RGBA", "L", "LA", "P"} else picture.convert("RGB")
                    )
                    drawn = io.BytesIO()
                    retained.save(drawn, "PNG")
        except Exception:  # noqa: BLE001 - decoders raise what they like on broken files
            return None
        return drawn.getvalue()


def draw_svg(svg: str, width: float) -> bytes | None:
    """A PNG of an SVG, about twice as fine as ``width`` pixels; None if it cannot be drawn."""
    if "<!DOCTYPE" in svg or "<!ENTITY" in svg or len(svg) > _MAX_SVG_CHARS:
        return None
    try:
        return bytes(resvg_py.svg_to_bytes(svg_string=svg, width=int(min(max(width * 2, 16), _MAX_SVG_PIXELS))))
    except (ValueError, OverflowError, RuntimeError):
        return None


def write_package(file: BinaryIO, parts: dict[str, str | bytes], types: dict[str, str]) -> None:
    """Writes a package.

    Args:
        file: where to.
        parts: content by part name, without a leading slash.
        types: media types of parts that their extension doesn't imply.
    """
    defaults = {"rels": "application/vnd.openxmlformats-package.relationships+xml", "xml": "application/xml"}
    used = {name.rpartition(".")[2] for name in parts}
    defaults |= {extension: mime for mime, extension in (_EXTENSIONS | _WORKBOOKS).items() if extension in used}
    rows = "".join(f'<Default Extension="{name}" ContentType="{mime}"/>' for name, mime in defaults.items())
    rows += "".join(f'<Override PartName="/{name}" ContentType="{mime}"/>' for name, mime in types.items())
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    content = {"[Content_Types].xml": f'{DECLARATION}<Types xmlns="{space}">{rows}</Types>', **parts}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=5) as package:
        for name, part in content.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            stored = name.endswith((".png", ".jpeg", ".gif"))
            entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            package.writestr(entry, part)
