"""SVG as a picture of the tree: an ``img`` with a data URI, which every writer reads the same way."""

import base64
from xml.etree.ElementTree import Element

from render.frontend.element_tree import make


def picture_of(svg: str, alt: str, style: str = "") -> Element:
    """An ``img`` of an SVG; ``data-pb`` marks that it was drawn here and needs no check."""
    code = base64.b64encode(svg.encode()).decode()
    attributes = {"src": f"data:image/svg+xml;base64,{code}", "alt": alt, "data-pb": "svg"}
    return make("img", {**attributes, "style": style} if style else attributes)


def svg_of(picture: Element) -> str:
    """The SVG of such an ``img``."""
    return base64.b64decode((picture.get("src") or "").partition(",")[2]).decode()
