"""Numbering of lists: one definition for each way to count, one instance for each list, so that each restarts."""

from typing import Literal

from render.docx.xml import DECLARATION, NAMESPACES
from render.ir import Marker

LEVELS = 9
STEP = 380
"""Indent of a level, in twips."""
_BULLETS = ("\u2022", "\u25e6", "\u2013")
_FORMATS = {
    "decimal": "decimal", "lower-alpha": "lowerLetter", "upper-alpha": "upperLetter",
    "lower-roman": "lowerRoman", "upper-roman": "upperRoman", "none": "none",
}  # fmt: skip
_MAX_LISTS = 30_000
"""Word counts instances in 15 bits; past this, lists of a kind go on counting."""


class Numbering:
    """The numbering part in the making."""

    def __init__(self) -> None:
        self._kinds: dict[str, int] = {}
        self._instances: list[str] = []
        self._shared: dict[tuple[str, int, int], int] = {}

    def uncounted(self, kind: Literal["bullet", "none"]) -> int:
        """The instance of lists with bullets, or of those without marks."""
        key = (kind, 0, 0)
        if key not in self._shared:
            self._shared[key] = self._add(kind, "")
        return self._shared[key]

    def ordered(self, marker: Marker, level: int, start: int) -> int:
        """A new instance, which counts from ``start`` on a level."""
        override = f'<w:lvlOverride w:ilvl="{level}"><w:startOverride w:val="{start}"/></w:lvlOverride>'
        if len(self._instances) < _MAX_LISTS:
            return self._add(marker, override)
        key = (marker, level, start)
        if key not in self._shared:
            self._shared[key] = self._add(marker, override)
        return self._shared[key]

    def _add(self, kind: str, override: str) -> int:
        abstract = self._kinds.setdefault(kind, len(self._kinds) + 1)
        number = len(self._instances) + 1
        self._instances.append(f'<w:num w:numId="{number}"><w:abstractNumId w:val="{abstract}"/>{override}</w:num>')
        return number

    def list_style(self, _kind: str, _level: int) -> str:
        """The style of the paragraphs of a level, if it is none of ours."""
        return ""

    def step(self, _kind: str, _level: int) -> int:
        """How far a level is moved in from the one around it, in twips."""
        return STEP

    def xml(self) -> str:
        """The part."""
        kinds = "".join(_abstract(kind, number) for kind, number in self._kinds.items())
        return f"{DECLARATION}<w:numbering {NAMESPACES}>{kinds}{''.join(self._instances)}</w:numbering>"


def _abstract(kind: str, number: int) -> str:
    rows = []
    for level in range(LEVELS):
        if kind == "bullet":
            shown, form = _BULLETS[level % len(_BULLETS)], "bullet"
        else:
            shown, form = "" if kind == "none" else f"%{level + 1}.", _FORMATS[kind]
        rows.append(
            f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/><w:lvlText w:val="{shown}"/>'
            f'<w:lvlJc w:val="left"/><w:pPr><w:ind w:left="{STEP * (level + 1)}" w:hanging="{STEP}"/>'
            "</w:pPr></w:lvl>"
        )
    return (
        f'<w:abstractNum w:abstractNumId="{number}"><w:nsid w:val="{0x4A000000 + number:08X}"/>'
        '<w:multiLevelType w:val="hybridMultilevel"/>'
        f'<w:tmpl w:val="{0x5B000000 + number:08X}"/>{"".join(rows)}</w:abstractNum>'
    )
