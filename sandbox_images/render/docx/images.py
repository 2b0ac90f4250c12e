"""Pictures in DOCX: at their own size, no wider than the text; SVG with a PNG beside it for readers without."""

from render.docx.package import safe_url
from render.docx.writer_state import Place, State
from render.docx.xml import EMU, TWIPS, attribute
from render.frontend.assets import AssetRefused, read_asset
from render.ir import Image
from render.to_ir.images import natural_size

_SVG_MIME = "image/svg+xml"
_SVG_EXTENSION = "http://schemas.microsoft.com/office/drawing/2016/SVG/main"
MAX_HEIGHT = 860.0
"""Pixels; a higher picture would not fit on a page."""
LOGO_HEIGHT, LOGO_WIDTH = 32.0, 170.0
"""Pixels; 8.5 by 45 mm at most, as on the pages of a PDF."""
_PICTURE = "http://schemas.openxmlformats.org/drawingml/2006/picture"


def fitted(image: Image, room: int) -> tuple[float, float] | None:
    """The size at which a picture is shown, in pixels: ``room`` is in twips; None if it cannot be read."""
    width, height = image.width, image.height
    if not width or not height:
        natural = natural_size(image.data, image.mime)
        if natural is None:
            return None
        width, height = natural
    scale = min(1.0, max(room, 200) / TWIPS / width, MAX_HEIGHT / height)
    return max(width * scale, 1.0), max(height * scale, 1.0)


def picture(state: State, place: Place, image: Image) -> str:
    """The run of a picture; empty if it cannot be shown."""
    size = fitted(image, place.width - place.indent)
    if size is None:
        return ""
    vector = ""
    if image.mime == _SVG_MIME:
        shown = state.media.drawn(image.data.decode("utf-8", "replace"), size[0])
        stored = state.media.add(image.data, _SVG_MIME) if shown else None
        if stored:
            number = place.part.link("image", stored)
            vector = (
                '<a:extLst><a:ext uri="{96DAC541-7B7A-43D3-8B79-37D633B846F1}">'
                f'<asvg:svgBlip xmlns:asvg="{_SVG_EXTENSION}" r:embed="{number}"/></a:ext></a:extLst>'
            )
    else:
        shown = state.media.add(image.data, image.mime)
    if not shown:
        state.document.warn("image_not_drawn", f"A picture could not be read: {image.alt[:120] or image.mime}")
        return ""
    return _drawing(state, place, image, (shown, vector), size)


def logo_run(state: State, place: Place) -> str:
    """The run of the theme's logo; empty if it is not available, which is reported."""
    address = state.document.theme.logo or ""
    try:
        asset = read_asset(state.document, address)
    except AssetRefused as refusal:
        state.document.warn(refusal.code, str(refusal), path=address[:200])
        return ""
    natural = natural_size(asset.data, asset.mime)
    if natural is None or min(natural) <= 0:
        state.document.warn("image_not_drawn", f"The logo could not be read: {address[:120]}")
        return ""
    scale = min(LOGO_HEIGHT / natural[1], LOGO_WIDTH / natural[0])
    name = f"Logo of {state.document.theme.name}"
    return picture(state, place, Image(asset.data, asset.mime, name, natural[0] * scale, natural[1] * scale))


def _drawing(state: State, place: Place, image: Image, blip: tuple[str, str], size: tuple[float, float]) -> str:
    number = state.number("drawing")
    wide, tall = round(size[0] * EMU), round(size[1] * EMU)
    click = ""
    url = safe_url(image.link) if image.link and not image.link.startswith("#") else None
    if url:
        leads = place.part.link("hyperlink", url, external=True)
        click = f'<a:hlinkClick r:id="{leads}"/>'
    embedded = place.part.link("image", blip[0])
    alt = attribute(image.alt)
    name = f"Picture {number}"
    return (
        f'<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="{wide}" cy="{tall}"/>'
        f'<wp:docPr id="{number}" name="{name}" descr="{alt}">{click}</wp:docPr>'
        '<wp:cNvGraphicFramePr><a:graphicFrameLocks noChangeAspect="1"/></wp:cNvGraphicFramePr>'
        f'<a:graphic><a:graphicData uri="{_PICTURE}"><pic:pic><pic:nvPicPr><pic:cNvPr id="{number}" name="{name}" '
        f'descr="{alt}"/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip r:embed="{embedded}">{blip[1]}</a:blip>'
        f'<a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm><a:off x="0" y="0"/>'
        f'<a:ext cx="{wide}" cy="{tall}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'
        "</pic:spPr></pic:pic>"
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r>"
    )
