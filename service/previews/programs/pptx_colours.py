"""Runs in a sandbox: the colours of a slide, with those of its theme."""

import re
from typing import Any

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_HEX = re.compile(r"[0-9A-Fa-f]{6}")
_PER_CENT = 100_000
_USUAL_MAP = {"tx1": "dk1", "bg1": "lt1", "tx2": "dk2", "bg2": "lt2"}


class ThemeColours:
    """Resolves the colours of a slide to CSS.

    Args:
        slide: the slide.
    """

    def __init__(self, slide: Any) -> None:
        self._slide = slide
        master = slide.slide_layout.slide_master
        self._named = _theme_colours(master)
        mapping = master._element.find(f"{_P}clrMap")  # noqa: SLF001 - not in the library
        self._map = {**_USUAL_MAP, **({} if mapping is None else dict(mapping.attrib))}

    def background(self) -> str:
        """The colour of the slide's ground."""
        layout = self._slide.slide_layout
        for owner in (self._slide, layout, layout.slide_master):
            ground = owner._element.find(f"{_P}cSld/{_P}bg")  # noqa: SLF001 - reading it creates it
            if ground is None:
                continue
            own, reference = ground.find(f"{_P}bgPr"), ground.find(f"{_P}bgRef")
            colour = self.fill_of(own) if own is not None else None
            colour = colour or (self._resolve(reference) if reference is not None else None)
            if colour:
                return colour
        return self._by_name("bg1") or "#ffffff"

    def text(self) -> str:
        """The usual colour of text."""
        return self._by_name("tx1") or "#000000"

    def text_of(self, shape: Any) -> str:
        """The usual colour of a shape's text."""
        font = shape._element.find(f"{_P}style/{_A}fontRef")  # noqa: SLF001
        return (None if font is None else self._resolve(font)) or self.text()

    def accent(self) -> str:
        """The first accent of the theme."""
        return self._by_name("accent1") or "#4472c4"

    def shape_css(self, shape: Any) -> list[str]:
        """The declarations of a shape's fill and outline."""
        properties = shape._element.find(f"{_P}spPr")  # noqa: SLF001
        if properties is None:
            return []
        css = []
        fill = self.fill_of(properties)
        style = shape._element.find(f"{_P}style/{_A}fillRef")  # noqa: SLF001
        has_none = properties.find(f"{_A}noFill") is not None
        if fill is None and style is not None and style.get("idx") != "0" and not has_none:
            fill = self._resolve(style)
        if fill:
            css.append(f"background: {fill}")
        line = properties.find(f"{_A}ln")
        colour = None if line is None else self.fill_of(line)
        if colour:
            css.append(f"border: {int(line.get('w', 9_525)) / 12_700:.2f}pt solid {colour}")
        geometry = properties.find(f"{_A}prstGeom")
        kind = "" if geometry is None else geometry.get("prst", "")
        if kind in {"ellipse", "roundRect"}:
            css.append(f"border-radius: {'50%' if kind == 'ellipse' else '8pt'}")
        return css

    def fill_of(self, properties: Any) -> str | None:
        """The colour of a solid fill, or the first of a gradient; None if there is none."""
        for path in (f"{_A}solidFill", f"{_A}gradFill/{_A}gsLst/{_A}gs"):
            found = properties.find(path)
            if found is not None:
                return self._resolve(found)
        return None

    def _resolve(self, parent: Any) -> str | None:
        for child in parent:
            value = child.get("val", "")
            if child.tag == f"{_A}srgbClr" and _HEX.fullmatch(value):
                return _changed(value, child)
            if child.tag == f"{_A}sysClr" and _HEX.fullmatch(child.get("lastClr", "")):
                return _changed(child.get("lastClr"), child)
            if child.tag == f"{_A}schemeClr":
                named = self._by_name(value)
                return None if named is None else _changed(named[1:], child)
        return None

    def _by_name(self, name: str) -> str | None:
        return self._named.get(self._map.get(name, name))


def _theme_colours(master: Any) -> dict[str, str]:
    from lxml import etree  # noqa: PLC0415 - python-pptx has it

    for relation in master.part.rels.values():
        if relation.reltype.endswith("/theme"):
            parser = etree.XMLParser(resolve_entities=False, no_network=True)
            scheme = etree.fromstring(relation.target_part.blob, parser).find(f"{_A}themeElements/{_A}clrScheme")
            return {} if scheme is None else dict(_pairs(scheme))
    return {}


def _pairs(scheme: Any) -> list[tuple[str, str]]:
    found = []
    for entry in scheme:
        for child in entry:
            value = child.get("lastClr") or child.get("val", "")
            if _HEX.fullmatch(value):
                found.append((entry.tag.removeprefix(_A), f"#{value}"))
    return found


def _changed(value: str, element: Any) -> str:
    """A colour, made lighter or darker as its element states."""
    channels = [int(value[at : at + 2], 16) for at in (0, 2, 4)]
    scale, offset = (_share(element, name) for name in ("lumMod", "lumOff"))
    tint, shade = _share(element, "tint"), _share(element, "shade")
    if scale is not None or offset is not None:
        channels = [round(each * (scale if scale is not None else 1) + 255 * (offset or 0)) for each in channels]
    if tint is not None:
        channels = [round(255 - (255 - each) * tint) for each in channels]
    if shade is not None:
        channels = [round(each * shade) for each in channels]
    return "#" + "".join(f"{min(max(each, 0), 255):02x}" for each in channels)


def _share(element: Any, name: str) -> float | None:
    found = element.find(f"{_A}{name}")
    text = "" if found is None else found.get("val", "")
    return int(text) / _PER_CENT if text.isdigit() else None
