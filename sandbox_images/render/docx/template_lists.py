"""Lists of a house template: ours count and look as its list styles do, beside the lists that it has."""

import copy

from lxml import etree
from render.docx.numbering import LEVELS, STEP, Numbering
from render.docx.template_styles import HouseStyles
from render.docx.xml import DECLARATION, NAMESPACES

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_FIRST = 5_000
"""Of our lists: the template's own have small numbers."""


class HouseNumbering(Numbering):
    """The numbering part in the making.

    Args:
        root: of the template's numbering part; None if it has none.
        styles: its styles.
    """

    def __init__(self, root: etree._Element | None, styles: HouseStyles) -> None:
        super().__init__()
        self._root = root if root is not None else etree.fromstring(f"<w:numbering {NAMESPACES}/>")
        self._styles = styles
        self._levels = {kind: self._levels_of(kind) for kind in ("bullet", "decimal")}

    def list_style(self, kind: str, level: int) -> str:
        """The id of the template's style for a level of a list; "" if ours has to do."""
        known = kind in self._levels and self._levels[kind]
        return self._styles.list_style(kind == "decimal", level) if known else ""

    def step(self, kind: str, level: int) -> int:
        """How far a level is moved in from the one around it, in twips."""
        around = self._left(kind, level - 1) if level else 0
        own = self._left(kind, level)
        return own - around if own is not None and around is not None and own > around else STEP

    def _left(self, kind: str, level: int) -> int | None:
        levels = self._levels.get(kind) or []
        found = levels[level].find(f"{W}pPr/{W}ind") if level < len(levels) else None
        left = "" if found is None else found.get(f"{W}left") or found.get(f"{W}start") or ""
        return int(left) if left.isdigit() else None

    def xml(self) -> str:
        """The part: the template's lists, then ours."""
        ours = etree.fromstring(super().xml().removeprefix(DECLARATION))
        root = copy.deepcopy(self._root)
        at = sum(1 for child in root if child.tag in {f"{W}numPicBullet", f"{W}abstractNum"})
        kinds = {number: kind for kind, number in self._kinds.items()}
        for abstract in ours.findall(f"{W}abstractNum"):
            number = int(abstract.get(f"{W}abstractNumId", "0"))
            self._dress(abstract, kinds[number])
            abstract.set(f"{W}abstractNumId", str(_FIRST + number))
            root.insert(at, abstract)
            at += 1
        at = next((index for index, child in enumerate(root) if child.tag == f"{W}numIdMacAtCleanup"), len(root))
        for instance in ours.findall(f"{W}num"):
            link = instance.find(f"{W}abstractNumId")
            if link is not None:
                link.set(f"{W}val", str(_FIRST + int(link.get(f"{W}val", "0"))))
            root.insert(at, instance)
            at += 1
        return DECLARATION + str(etree.tostring(root, encoding="unicode"))

    def _add(self, kind: str, override: str) -> int:
        number = super()._add(kind, override)
        self._instances[-1] = self._instances[-1].replace(f'w:numId="{number}"', f'w:numId="{_FIRST + number}"', 1)
        return _FIRST + number

    def _dress(self, abstract: etree._Element, kind: str) -> None:
        """Give one of our lists the levels of the template."""
        levels = self._levels.get(kind)
        if not levels:
            return
        for old, level in zip(abstract.findall(f"{W}lvl"), levels, strict=False):
            abstract.replace(old, copy.deepcopy(level))

    def _levels_of(self, kind: str) -> list[etree._Element]:
        """The levels of a list of a kind: those that the template's list styles number with; empty if there is none."""
        levels: list[etree._Element] = []
        for number in range(LEVELS):
            found = self._level(kind, number)
            if found is None:
                return []
            level = copy.deepcopy(found)
            level.set(f"{W}ilvl", str(number))
            for link in level.findall(f"{W}pStyle"):
                level.remove(link)
            levels.append(level)
        return levels

    def _level(self, kind: str, number: int) -> etree._Element | None:
        """The level of the list style of a level, else the same level of the list of the first style."""
        first = self._styles.list_style(kind == "decimal", 0)
        own = self._styles.list_style(kind == "decimal", number)
        if own and own != first:
            asked = self._styles.numbering_of(own)
            found = self._found(*asked) if asked else None
            if found is not None:
                return self._renumbered(found, number)
        asked = self._styles.numbering_of(first) if first else None
        if asked is None:
            return None
        base = self._found(*asked)
        same = self._found(asked[0], min(asked[1] + number, LEVELS - 1)) if number else base
        return same if same is not None else self._moved(base, number)

    def _found(self, number: str, level: int) -> etree._Element | None:
        links = {row.get(f"{W}numId"): row.find(f"{W}abstractNumId") for row in self._root.findall(f"{W}num")}
        link = links.get(number)
        wanted = link.get(f"{W}val") if link is not None else None
        for abstract in self._root.findall(f"{W}abstractNum"):
            if wanted is not None and abstract.get(f"{W}abstractNumId") == wanted:
                rows = abstract.findall(f"{W}lvl")
                return next((row for row in rows if row.get(f"{W}ilvl") == str(level)), None)
        return None

    @staticmethod
    def _renumbered(level: etree._Element, number: int) -> etree._Element:
        """A level of another list as the level of ours: ``%1.`` counts the first one there."""
        level = copy.deepcopy(level)
        text = level.find(f"{W}lvlText")
        own = int(level.get(f"{W}ilvl", "0")) + 1
        if text is not None:
            text.set(f"{W}val", text.get(f"{W}val", "").replace(f"%{own}", f"%{number + 1}"))
        return level

    def _moved(self, level: etree._Element | None, number: int) -> etree._Element | None:
        """A level that the template lacks: that of its first one, moved in."""
        if level is None:
            return None
        level = self._renumbered(level, number)
        indent = level.find(f"{W}pPr/{W}ind")
        if indent is not None:
            for name in ("left", "start"):
                value = indent.get(f"{W}{name}", "")
                if value.isdigit():
                    indent.set(f"{W}{name}", str(int(value) * (number + 1)))
        return level
