"""Keeps text readable: a colour that can't be told from its ground becomes black or white."""

from dataclasses import replace

from render.layout.look import Gradient, Paint
from render.slides.model import Para, Shape, Slide, TableShape, TextShape

_LEAST = 1.7
"""Contrast below which text is as good as invisible; designers go down to 3, and their choices are theirs."""


def keep_readable(slide: Slide, theme_background: str, covered: str = "") -> None:
    """Mends text on a slide that has nearly the colour of what it stands on.

    Args:
        slide: in reading order, which is the painting order too.
        theme_background: ``rrggbb`` of the theme's ground.
        covered: ``rrggbb`` of the layout's ground, if it has one of its own.
    """
    ground = _colour(slide.background, Paint(covered or theme_background))
    painted: list[tuple[Shape, str]] = []
    for shape in slide.shapes:
        if isinstance(shape, TextShape):
            behind = _behind(shape, painted, ground)
            own = _colour(shape.fill, Paint(behind)) if shape.fill is not None else behind
            if shape.fill is not None:
                painted.append((shape, own))
            _mend(shape.paragraphs, own)
        elif isinstance(shape, TableShape):
            behind = _behind(shape, painted, ground)
            for cell in shape.cells:
                _mend(cell.paragraphs, _colour(cell.fill, Paint(behind)))


def _behind(shape: Shape, painted: list[tuple[Shape, str]], ground: str) -> str:
    x, y = shape.x + shape.width / 2, shape.y + min(shape.height / 2, 20)
    for box, colour in reversed(painted):
        if box.x <= x <= box.right and box.y <= y <= box.bottom:
            return colour
    return ground


def _colour(fill: object, behind: Paint) -> str:
    """The colour of a fill as it's seen: a gradient's middle, a veil over what is behind it."""
    if isinstance(fill, Gradient):
        fill = fill.stops[len(fill.stops) // 2][1]
    if not isinstance(fill, Paint):
        return behind.rgb
    mixed = (
        round(a * fill.alpha + b * (1 - fill.alpha))
        for a, b in zip(_parts(fill.rgb), _parts(behind.rgb), strict=True)
    )
    return "".join(f"{part:02x}" for part in mixed)


def _parts(rgb: str) -> tuple[int, int, int]:
    return int(rgb[0:2], 16), int(rgb[2:4], 16), int(rgb[4:6], 16)


def _light(rgb: str) -> float:
    """Relative luminance."""
    parts = [part / 255 for part in _parts(rgb)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)  # noqa: PLR2004
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, 1 (none) to 21."""
    lighter, darker = sorted((_light(one), _light(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _mend(paragraphs: list[Para], ground: str) -> None:
    for para in paragraphs:
        for index, piece in enumerate(para.pieces):
            behind = piece.highlight.rgb if piece.highlight else ground
            if (
                piece.colour is not None
                and piece.colour.alpha > 0
                and contrast(_colour(piece.colour, Paint(behind)), behind) < _LEAST
            ):
                best = max(("1a1a1a", "ffffff"), key=lambda colour: contrast(colour, behind))
                para.pieces[index] = replace(piece, colour=Paint(best))
