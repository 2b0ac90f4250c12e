"""A word behind the text of each page: the shape of a header that Word takes for a watermark, and can remove."""

from math import sqrt

from render.docx.writer_state import State
from render.docx.xml import attribute, hexa
from render.font_families import shown_face
from render.paged.watermark import watermark_text

_NAMESPACES = (
    'xmlns:v="urn:schemas-microsoft-com:vml" xmlns:o="urn:schemas-microsoft-com:office:office" '
    'xmlns:w10="urn:schemas-microsoft-com:office:word"'
)
_LETTER = 0.85
"""About how wide a capital letter is, by the height of the shape."""
_HEIGHT_MAX = 150.0
"""Points."""
_TWIPS = 20
_OPACITY = ".12"


def watermark_run(state: State, room: tuple[int, int]) -> str:
    """The run of a watermark; empty if the request has none.

    Args:
        state: the document.
        room: width and height between the margins, in twips.
    """
    text = watermark_text(state.document)
    if not text:
        return ""
    # On its diagonal the shape is as wide and as high as its two sides together, by the root of two.
    across = min(room) / _TWIPS * sqrt(2)
    height = min(_HEIGHT_MAX, across / (_LETTER * len(text) + 1))
    number = state.number("watermark")
    font = attribute(shown_face(state.content.theme.heading_font))
    place = (
        "position:absolute;margin-left:0;margin-top:0;"
        f"width:{_LETTER * len(text) * height:.1f}pt;height:{height:.1f}pt;rotation:315;z-index:-251658752;"
        "mso-position-horizontal:center;mso-position-horizontal-relative:margin;"
        "mso-position-vertical:center;mso-position-vertical-relative:margin"
    )
    return (
        f"<w:r><w:rPr><w:noProof/></w:rPr><w:pict {_NAMESPACES}>"
        '<v:shapetype id="_x0000_t136" coordsize="21600,21600" o:spt="136" adj="10800" '
        'path="m@7,l@8,m@5,21600l@6,21600e"><v:formulas><v:f eqn="sum #0 0 10800"/><v:f eqn="prod #0 2 1"/>'
        '<v:f eqn="sum 21600 0 @1"/><v:f eqn="sum 0 0 @2"/><v:f eqn="sum 21600 0 @3"/><v:f eqn="if @0 @3 0"/>'
        '<v:f eqn="if @0 21600 @1"/><v:f eqn="if @0 0 @2"/><v:f eqn="if @0 @4 21600"/></v:formulas>'
        '<v:path textpathok="t" o:connecttype="rect"/><v:textpath on="t" fitshape="t"/>'
        '<o:lock v:ext="edit" text="t" shapetype="t"/></v:shapetype>'
        f'<v:shape id="PowerPlusWaterMarkObject{number}" o:spid="_x0000_s{2048 + number}" type="#_x0000_t136" '
        f'alt="" style="{place}" o:allowincell="f" fillcolor="#{hexa(state.content.theme.colours["text"])}" '
        f'stroked="f"><v:fill opacity="{_OPACITY}"/>'
        f'<v:textpath style="font-family:&quot;{font}&quot;;font-size:1pt;font-weight:bold" '
        f'string="{attribute(text)}"/><w10:wrap anchorx="margin" anchory="margin"/></v:shape></w:pict></w:r>'
    )
