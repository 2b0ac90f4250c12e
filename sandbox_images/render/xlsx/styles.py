"""How cells look, by theme: each look is made once and shared by all cells that have it."""

from dataclasses import dataclass
from typing import Any

from render.font_families import code_face, shown_face
from render.model import Theme
from xlsxwriter import Workbook

SIZE = 11
_HEADING_SIZES = {1: 18, 2: 14, 3: 12}
_OUTSIDE = frozenset({"note", "heading", "code"})
"""Roles of text outside of tables: its sheet is white in every theme."""


@dataclass(frozen=True, slots=True)
class Look:
    """The looks of a cell, as a key.

    Attributes:
        role: head, body, total, note, heading or code.
        number_format: empty: as the value comes.
        align: left, center, right or None.
        is_wrapped: its text goes on on further lines.
        is_bold: in bold type.
        is_link: it leads somewhere.
        is_quoted: a text that Excel would read as something else once it is edited.
        is_tall: it covers several rows.
        is_apart: it stands at the left, with room to a figure before it.
        level: of a heading.
    """

    role: str = "body"
    number_format: str = ""
    align: str | None = None
    is_wrapped: bool = False
    is_bold: bool = False
    is_link: bool = False
    is_quoted: bool = False
    is_tall: bool = False
    is_apart: bool = False
    level: int = 0


class Styles:
    """The looks of one workbook."""

    def __init__(self, book: Workbook, theme: Theme) -> None:
        self._book = book
        self._theme = theme
        self._made: dict[Look, Any] = {}
        self.is_dark = theme.colours["background"].lower() != "#ffffff"

    def format(self, look: Look) -> Any:
        """The cell format of a look."""
        made = self._made.get(look)
        if made is None:
            made = self._made[look] = self._book.add_format(self._properties(look))
        return made

    def _properties(self, look: Look) -> dict[str, Any]:
        is_upright = look.role == "head" or look.is_tall
        properties = {
            **self._type(look),
            **self._ground(look),
            "valign": "vcenter" if is_upright else "top",
            "text_wrap": look.is_wrapped,
            "quote_prefix": look.is_quoted,
        }
        if look.align:
            properties["align"] = look.align
        if look.is_apart:
            properties |= {"align": "left", "indent": 1}
        if look.number_format:
            properties["num_format"] = look.number_format
        return properties

    def _type(self, look: Look) -> dict[str, Any]:
        colours = self._theme.colours
        colour = colours["heading"] if look.role in {"head", "heading"} else colours["text"]
        if look.role in _OUTSIDE and self.is_dark:
            colour = "#000000"
        family, size = shown_face(self._theme.body_font), SIZE
        if look.role == "heading":
            family, size = shown_face(self._theme.heading_font), _HEADING_SIZES.get(look.level, SIZE)
        if look.role == "code":
            family, size = code_face(self._theme.mono_font), 10
        return {
            "font_name": family,
            "font_size": size,
            "font_color": colours["accent"] if look.is_link else colour,
            "bold": look.is_bold or look.role in {"head", "total", "heading"},
            "underline": 1 if look.is_link else 0,
        }

    def _ground(self, look: Look) -> dict[str, Any]:
        colours = self._theme.colours
        if look.role == "head":
            return {"bg_color": colours["surface"], "bottom": 2, "bottom_color": colours["accent"]}
        if look.role == "total":
            lines = {"top": 1, "bottom": 1, "top_color": colours["accent"], "bottom_color": colours["accent"]}
            return {"bg_color": colours["surface"], **lines}
        if look.role != "body":
            return {}
        ground = {"bg_color": colours["background"]} if self.is_dark else {}
        return {**ground, "bottom": 1, "bottom_color": colours["border"]}
