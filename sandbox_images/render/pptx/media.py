"""Pictures of slides: bytes that PowerPoint reads, and the drawing itself beside a raster of it."""

import io
import re
import warnings
from typing import Any
from xml.etree.ElementTree import Element

import resvg_py
from PIL import Image
from pptx.opc.constants import RELATIONSHIP_TYPE as RT
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.oxml import parse_xml
from render.model import Document
from render.pptx.drawingml_style import NAMESPACES
from render.to_ir.images import fetch, serialised

_NATIVE = frozenset({"image/png", "image/jpeg", "image/gif"})
_SVG = "image/svg+xml"
_PIXELS_MAX = 60_000_000
_RASTER_MAX = 2600
_OUTSIDE = re.compile(
    r"""\s(?:xlink:)?href\s*=\s*(?:"\s*(?!#|data:image/)[^"]*"|'\s*(?!#|data:image/)[^']*')|<script\b.*?</script\s*>|@import[^;<]*""",
    re.IGNORECASE | re.DOTALL,
)
_SVG_CHARACTERS_MAX = 8_000_000


class Media:
    """Reads and converts pictures, each once."""

    def __init__(self, document: Document) -> None:
        """Pictures of one document.

        Args:
            document: its assets are all that is read.
        """
        self._document = document
        self._seen: dict[tuple[str, int], tuple[bytes, str] | None] = {}
        self._count = 0

    def picture(self, element: Element, width: float) -> tuple[bytes, str] | None:
        """The raster of an ``img`` or ``svg`` element, and its SVG or "".

        Args:
            element: what shows the picture.
            width: how wide it's shown, in slide pixels.

        Returns:
            None if it cannot be had.
        """
        if str(element.tag).rpartition("}")[2] == "svg":
            svg = serialised(element)
            return self._raster(svg, width) if svg else None
        source = element.get("src", "")
        key = (source, round(width))
        if key not in self._seen:
            self._seen[key] = self._read(source, width)
        return self._seen[key]

    def _read(self, source: str, width: float) -> tuple[bytes, str] | None:
        found = fetch(source, self._document)
        if found is None:
            return None
        data, mime = found
        if mime == _SVG:
            return self._raster(data.decode("utf-8", "replace"), width)
        return _checked(data, mime)

    def _raster(self, svg: str, width: float) -> tuple[bytes, str] | None:
        if len(svg) > _SVG_CHARACTERS_MAX or "<!DOCTYPE" in svg or "<!ENTITY" in svg:
            return None
        # A drawing of its own accord reads no files: only what is in it, or in data URIs, is drawn.
        svg = _OUTSIDE.sub(" ", re.sub(r"^\s*<\?xml[^>]*\?>", "", svg))
        try:
            data = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=max(16, min(_RASTER_MAX, round(width * 2)))))
        except Exception:  # noqa: BLE001 - a native library: whatever it raises means "no picture"
            return None
        return (data, svg) if data.startswith(b"\x89PNG") else None

    def read(self, source: str) -> bytes | None:
        """A picture file as a raster, such as a logo; None if it cannot be had."""
        found = self._read(source, 240.0)
        return found[0] if found else None

    def add_svg(self, slide: Any, picture: Any, svg: str) -> None:
        """Puts the drawing beside the raster: PowerPoint shows it sharp, others show the raster."""
        self._count += 1
        package = slide.part.package
        part = Part(PackURI(f"/ppt/media/drawing{self._count}.svg"), _SVG, package, svg.encode("utf-8", "replace"))
        relation = slide.part.relate_to(part, RT.IMAGE)
        blip = picture._element.blipFill.find("{http://schemas.openxmlformats.org/drawingml/2006/main}blip")  # noqa: SLF001
        blip.append(parse_xml(
            f'<a:extLst {NAMESPACES}><a:ext uri="{{96DAC541-7B7A-43D3-8B79-37D633B846F1}}"><asvg:svgBlip '
            f'xmlns:asvg="http://schemas.microsoft.com/office/drawing/2016/SVG/main" r:embed="{relation}"/>'
            f"</a:ext></a:extLst>"
        ))  # fmt: skip


def _checked(data: bytes, mime: str) -> tuple[bytes, str] | None:
    """A picture that opens, as PNG if it is in a format that slides don't have."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data)) as picture:
                if picture.width * picture.height > _PIXELS_MAX:
                    return None
                picture.load()
                turned = mime == "image/jpeg" and picture.getexif().get(0x0112, 1) != 1
                if mime in _NATIVE and not turned:
                    return data, ""
                upright: Image.Image = picture
                if turned:
                    from PIL import ImageOps  # noqa: PLC0415 - few pictures need it

                    upright = ImageOps.exif_transpose(picture)
                out = io.BytesIO()
                upright.convert(
                    "RGBA" if "A" in upright.getbands() or "transparency" in upright.info else "RGB"
                ).save(out, "PNG")
                return out.getvalue(), ""
    except Exception:  # noqa: BLE001 - decoders raise what they like on broken files
        return None
