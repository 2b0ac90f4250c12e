"""The words of laid-out elements as pieces with looks: taken from the tree, so that no word is lost."""

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from xml.etree.ElementTree import Element

from render.frontend.element_tree import name_of
from render.slides.model import Para, Piece
from render.weasy.box_style import Look
from render.weasy.boxes import BoxNode

GAP = "\u00a0"
_GAP_FACE = "\0gap"
_UNEVEN = 4.0
_TALL_LINE, _USUAL_LINE = 1.75, 1.2
"""Heights of a line in ems: one that is there to centre text, and one that is as tall as type asks for."""
_BLANKS = re.compile(r"[ \t\n\f\r]+")
_SKIPPED = frozenset({"script", "style", "template", "head", "title"})
_OWN_LINES = frozenset({"block", "flex", "grid", "table"})
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


@dataclass(slots=True)
class Boxes:
    """What layout made of elements: the principal box of each, and the text of ``::before`` and ``::after``."""

    principal: dict[int, BoxNode] = field(default_factory=dict)
    pseudo: dict[tuple[int, str], str] = field(default_factory=dict)
    looks: dict[tuple[int, str], Look] = field(default_factory=dict)
    """Of ``::before`` and ``::after``, which need not look like their element."""
    marker: dict[int, BoxNode] = field(default_factory=dict)
    steps: dict[int, float] = field(default_factory=dict)
    """How far what follows an empty block of a line is from it."""

    @classmethod
    def of(cls, root: BoxNode) -> "Boxes":
        """Reads a laid-out tree once."""
        found = cls()
        blocks: set[tuple[int, str]] = set()
        for node in root.walk():
            if node.element is None:
                continue
            key = id(node.element)
            found._read_row(node)
            if node.kind == "marker":
                found.marker.setdefault(key, node)
            elif node.pseudo and node.kind == "text":
                found.looks.setdefault((key, node.pseudo), node.look)
                found.pseudo[key, node.pseudo] = found.pseudo.get((key, node.pseudo), "") + node.text
            elif node.pseudo and node.kind in _OWN_LINES and not node.out_of_flow:
                blocks.add((key, node.pseudo))
            elif node.principal and not node.pseudo:
                found.principal.setdefault(key, node)
        for place in blocks:  # it is painted where it stands, not at the start or the end of its element's text
            found.pseudo.pop(place, None)
        return found

    def _read_row(self, node: BoxNode) -> None:
        """Notes how far apart what stands in a line is, and that it is a row of badges."""
        if node.kind not in {"line", "inline", "block"}:
            return
        for one, other in pairwise(node.children):
            if one.element is not None and is_swatch(one) and other.kind in {"text", "inline"}:
                self.steps[id(one.element)] = max(one.width, other.x - one.x)
        if node.kind == "line" and _all_badges(node):
            for badge in node.children:
                badge.kind = "badge" if badge.kind == "inline-block" else badge.kind


@dataclass(frozen=True, slots=True)
class _Style:
    """What text inherits besides its own box's look."""

    look: Look
    link: str = ""
    lines: frozenset[str] = frozenset()
    raised: int = 0
    size: float = 0.0
    highlight: bool = False


def runs_of(owner: Element, boxes: Boxes) -> list[list[Piece]]:
    """The inline text of an element, in rows that its block children stand between.

    Args:
        owner: an element that has a box.
        boxes: what layout made of the tree.
    """
    node = boxes.principal.get(id(owner))
    if node is None:
        return []
    rows: list[list[Piece]] = [[]]
    style = _Style(node.look, lines=node.look.decoration, link=owner.get("href", "") if owner.tag == "a" else "")
    _before_after(rows, owner, style, boxes, "before")
    _collect(rows, owner, style, boxes)
    _before_after(rows, owner, style, boxes, "after")
    cleaned = [collapsed(row) for row in rows]
    return [row for row in cleaned if row]


def _all_badges(line: BoxNode) -> bool:
    """Whether a line has nothing but blocks with a ground or a border of their own, such as a row of tags."""
    badges = [child for child in line.children if child.kind != "text" or child.text.strip()]
    return bool(badges) and all(
        child.kind == "inline-block" and (child.grounds or child.look.border("top")) for child in badges
    )


def is_inline(node: BoxNode | None) -> bool:
    """Whether an element's box is part of a line of text rather than a block of its own."""
    if node is None or node.out_of_flow:
        return node is None
    if node.kind in {"inline", "text"}:
        return True
    if node.kind == "replaced":
        return node.look.inline
    if node.kind == "inline-block":
        lines = [child for child in node.children if child.kind == "line"]
        return len(lines) == len(node.children) and len(lines) <= 1
    return False


def _collect(rows: list[list[Piece]], element: Element, style: _Style, boxes: Boxes) -> None:
    _add(rows, element.text, style)
    for child in element:
        _child(rows, child, style, boxes)
        _add(rows, child.tail, style)


def _child(rows: list[list[Piece]], child: Element, style: _Style, boxes: Boxes) -> None:
    tag = name_of(child)
    node = boxes.principal.get(id(child))
    if tag == "br":
        rows[-1].append(_piece("\n", style))
    elif not tag or tag in _SKIPPED or node is None:
        return
    elif not is_inline(node):
        rows.append([])
    elif node.kind == "replaced" or is_swatch(node):
        _replaced(rows, child, node, style, boxes)
    else:
        inner = _inner_style(child, node, style)
        _before_after(rows, child, inner, boxes, "before")
        _collect(rows, child, inner, boxes)
        _before_after(rows, child, inner, boxes, "after")


def _inner_style(child: Element, node: BoxNode, style: _Style) -> _Style:
    look = node.look
    raised = look.raised or style.raised
    return _Style(
        look,
        link=child.get("href", style.link) if child.tag == "a" else style.link,
        lines=style.lines | look.decoration,
        raised=raised,
        size=(style.size or style.look.size) if raised else 0.0,
        highlight=style.highlight or (look.background is not None and child.tag != "code"),
    )


def is_swatch(node: BoxNode) -> bool:
    """Whether a block in a line has a ground and nothing in it, such as the colour of a legend."""
    seen = bool(node.grounds) or node.look.border("top") is not None
    return node.kind == "inline-block" and seen and not any(item.text.strip() for item in node.walk())


def _replaced(rows: list[list[Piece]], child: Element, node: BoxNode, style: _Style, boxes: Boxes) -> None:
    """A picture within a line: a gap as wide as it, unless it stands alone; the painter puts it there."""
    if child.tag == "input":
        return
    size = style.look.size
    width = boxes.steps.get(id(child), node.width)
    count = max(1, min(400, round(width / (size * 0.226))))
    rows[-1].append(Piece(GAP * count, size=size, is_verbatim=True, family=_GAP_FACE))


def break_before_pictures(pieces: list[Piece], lines: list[BoxNode]) -> list[Piece]:
    """Forces a break where a picture begins a line: readers could still fit its gap on the line before."""
    starts: list[bool] = []
    for index, line in enumerate(lines):
        first = index > 0
        for item in line.walk():
            if item.kind == "replaced":
                starts.append(first)
            first = first and item.kind != "replaced" and not (item.kind == "text" and item.text.strip())
    if not any(starts) or len(starts) != sum(1 for piece in pieces if piece.family == _GAP_FACE):
        return pieces
    out: list[Piece] = []
    for piece in pieces:
        if piece.family == _GAP_FACE and starts.pop(0) and out:
            _strip_end(out)
            out.append(replace(piece, text="\n"))
        out.append(piece)
    return out


def shift_with_text(picture: BoxNode, lines: list[BoxNode]) -> float:
    """How far down a picture goes with the text of its line, whose lines are all as tall as the mean on slides."""
    if max(line.height for line in lines) - min(line.height for line in lines) < _UNEVEN:
        return 0.0
    mean = (lines[-1].bottom - lines[0].y) / len(lines)
    for index, line in enumerate(lines):
        inside = list(line.walk())
        text = next((item for item in inside if item.kind == "text" and item.text.strip()), None)
        if text is not None and any(item is picture for item in inside):
            return lines[0].y + (index + 1) * mean - text.bottom
    return 0.0


def _before_after(rows: list[list[Piece]], element: Element, style: _Style, boxes: Boxes, which: str) -> None:
    text = boxes.pseudo.get((id(element), which), "")
    if text:
        look = boxes.looks.get((id(element), which), style.look)
        rows[-1].append(replace(_piece(text, replace(style, look=look)), is_verbatim=False))


def _add(rows: list[list[Piece]], text: str | None, style: _Style) -> None:
    if text:
        rows[-1].append(_piece(_CONTROL.sub("", text), style))


def _piece(text: str, style: _Style) -> Piece:
    look = style.look
    background = look.background if style.highlight else None
    return Piece(
        text=text,
        size=style.size or look.size,
        bold=look.bold,
        italic=look.italic,
        underline="underline" in style.lines,
        strike="line-through" in style.lines,
        colour=look.colour,
        highlight=background if background and background.alpha > 0.5 else None,  # noqa: PLR2004 - half seen
        family=look.family,
        capitals=look.capitals,
        spacing=look.spacing,
        raised=style.raised,
        link=style.link,
        is_verbatim=look.preformatted,
    )


def collapsed(row: list[Piece]) -> list[Piece]:
    """A row with blanks collapsed as in a browser: none at its ends, around breaks, or doubled between pieces."""
    out: list[Piece] = []
    blank = True
    for piece in row:
        if piece.is_verbatim:
            out.append(piece)
            blank = False
            continue
        if piece.text == "\n":
            _strip_end(out)
            out.append(replace(piece, is_verbatim=True))
            blank = True
            continue
        text = _BLANKS.sub(" ", piece.text)
        if blank:
            text = text.removeprefix(" ")
        if text:
            blank = text.endswith(" ")
            out.append(replace(piece, text=text))
    _strip_end(out)
    while out and out[-1].text == "\n":
        out.pop()
        _strip_end(out)
    return out


def _strip_end(out: list[Piece]) -> None:
    while out and not out[-1].is_verbatim and out[-1].text.endswith(" "):
        text = out[-1].text.rstrip(" ")
        if text:
            out[-1] = replace(out[-1], text=text)
            return
        out.pop()


def code_lines(pieces: list[Piece]) -> list[list[Piece]]:
    """Preformatted pieces by line, tabs as spaces."""
    lines: list[list[Piece]] = [[]]
    for piece in pieces:
        if piece.text == "\n":
            lines.append([])
            continue
        for index, part in enumerate(piece.text.replace("\t", "    ").split("\n")):
            if index:
                lines.append([])
            if part:
                lines[-1].append(replace(piece, text=part))
    while lines and not any(piece.text.strip() for piece in lines[-1]):
        lines.pop()
    return lines


def settle_line(para: Para) -> None:
    """A single line much taller than its type, as authors centre text by, becomes one of its usual height there."""
    size = max((piece.size for piece in para.pieces), default=16.0)
    if para.lines == 1 and para.line > size * _TALL_LINE and all("\n" not in piece.text for piece in para.pieces):
        usual = size * _USUAL_LINE
        para.y += (para.line - usual) / 2
        para.line = para.height = usual
