"""Keeps text readable: a colour that can't be distinguished from its ground becomes black or white."""

from dataclasses import replace

from render.slides.model import Para, PictureShape, Shape, Slide, TableShape, TextShape
from render.weasy.box_style import Gradient, Paint

_LEAST = 1.7
"""Contrast below which text is as good as invisible; designers go down to 3, and their choices are theirs."""
_SMALL = 4.5
"""Contrast that small print needs."""
_ORNAMENT_CHARACTERS, _ORNAMENT_SIZE = 3, 80.0
_HINT = 0.3
"""Text of which no more is seen is a ground, such as a number behind a title."""


def keep_readable(slide: Slide, theme_background: str, covered: str = "") -> bool:
    """Mends text on a slide that has nearly the colour of what it stands on.

    Args:
        slide: in reading order, which is the painting order too.
        theme_background: ``rrggbb`` of the theme's ground.
        covered: ``rrggbb`` of the layout's ground, if it has one of its own.

    Returns:
        Whether a colour was changed. On a ground that nobody knows, a picture's, none is.
    """
    ground = _colours(slide.background, (covered or theme_background,))
    painted: list[tuple[Shape, Grounds]] = []
    mended = False
    for shape in slide.shapes:
        behind = () if slide.pictured else _behind(shape, painted, ground)
        if isinstance(shape, PictureShape) and shape.decorative:
            painted.append((shape, ()))
        elif isinstance(shape, TextShape):
            own = _colours(shape.fill, behind) if shape.fill is not None else behind
            if shape.fill is not None:
                painted.append((shape, own))
            mended = (not _is_ornament(shape) and _mend(shape.paragraphs, own)) or mended
        elif isinstance(shape, TableShape):
            for cell in shape.cells:
                mended = _mend(cell.paragraphs, _colours(cell.fill, behind) if cell.fill else behind) or mended
    return mended


def _is_ornament(shape: TextShape) -> bool:
    """Whether text is a big sign that its author has placed behind the rest in nearly the colour of the ground."""
    words = "".join(para.text for para in shape.paragraphs).strip()
    least = min(
        (piece.size for para in shape.paragraphs for piece in para.pieces if piece.text.strip()), default=0.0
    )
    return shape.free and len(words) <= _ORNAMENT_CHARACTERS and least >= _ORNAMENT_SIZE


Grounds = tuple[str, ...]
"""All the colours that a ground has, as ``rrggbb``; none if nobody knows."""


def _behind(shape: Shape, painted: list[tuple[Shape, Grounds]], ground: Grounds) -> Grounds:
    x, y = shape.x + shape.width / 2, shape.y + min(shape.height / 2, 20)
    for box, colours in reversed(painted):
        if box.x <= x <= box.right and box.y <= y <= box.bottom:
            return colours
    return ground


def _colours(fill: Paint | Gradient | None, behind: Grounds) -> Grounds:
    """The colours of a fill as they are seen on what is behind it."""
    paints = [paint for _, paint in fill.stops] if isinstance(fill, Gradient) else [fill] if fill else []
    seen = tuple(_colour(paint, Paint(below)) for paint in paints for below in behind)
    opaque = tuple(paint.rgb for paint in paints if paint.alpha >= 1)
    return (seen or (opaque if len(opaque) == len(paints) else ())) if paints else behind


def _colour(fill: Paint, behind: Paint) -> str:
    """The colour of a fill as it is seen: a veil over what is behind it."""
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


def soft_on(ground: Paint | Gradient | None, muted: str) -> str:
    """The colour of small print on a slide's own ground: the theme's, or black or white with a little of the ground.

    Args:
        ground: None for the theme's own.
        muted: ``rrggbb`` of small print in the theme.
    """
    grounds = _colours(ground, ()) if ground is not None else ()
    if not grounds or min(contrast(muted, behind) for behind in grounds) >= _SMALL:
        return muted
    best = _readable(grounds)
    softer = _colour(Paint(best, 0.8), Paint(grounds[-1]))
    return softer if min(contrast(softer, behind) for behind in grounds) >= _SMALL else best


def _mend(paragraphs: list[Para], ground: Grounds) -> bool:
    """Changes colours that have no contrast with any colour of the ground."""
    mended = False
    for para in paragraphs:
        for index, piece in enumerate(para.pieces):
            grounds = (piece.highlight.rgb,) if piece.highlight else ground
            colour = piece.colour
            if colour is None or colour.alpha <= _HINT or not grounds or not piece.text.strip():
                continue
            if all(contrast(_colour(colour, Paint(behind)), behind) < _LEAST for behind in grounds):
                para.pieces[index] = replace(piece, colour=Paint(_readable(grounds)))
                mended = True
    return mended


def _readable(grounds: Grounds) -> str:
    """Black or white, whichever is read better on the worst of the colours."""
    return max(("1a1a1a", "ffffff"), key=lambda colour: min(contrast(colour, behind) for behind in grounds))
