"""Paragraphs and runs as DrawingML."""

from collections.abc import Callable
from dataclasses import dataclass

from render.font_families import shown_face
from render.pptx.drawingml_style import NATURAL, Palette, emu, xml_text
from render.slides.model import TICKS, Bullet, Para, Piece
from render.weasy.box_style import Paint

_LATIN_LAST = 0x24F
_PUNCTUATION = "\u2013\u2014\u2018\u2019\u201c\u201d\u2026\u2022\u20ac"
_PLAIN_BULLETS = "\u2022\u25e6\u25aa\u2013-"
_WINGDINGS = {"\u2611": "\u00fe", "\u2610": "\u00a8"}
_HEADING_FACE = '<a:latin typeface="+mj-lt"/>'
_SEEN, _SPACED = 0.05, 0.2
_SIZE_MIN, _SIZE_MAX = 100, 400_000
_HLINK_EXT = (
    '<a:extLst><a:ext uri="{A12FA001-AC4F-418D-AE19-62706E023703}"><ahyp:hlinkClr '
    'xmlns:ahyp="http://schemas.microsoft.com/office/drawing/2018/hyperlinkcolor" val="tx"/></a:ext></a:extLst>'
)


@dataclass(frozen=True, slots=True)
class TextWriter:
    """Writes text for one slide.

    Attributes:
        palette: the theme's colours and fonts.
        language: of the text, such as ``en-US``.
        link: gives a link's attributes (relation id and action) or "".
        accent: the theme's colour of links.
        default: the theme's colour of text.
    """

    palette: Palette
    language: str
    link: Callable[[str], str]
    accent: str
    default: str

    def paragraphs(self, paragraphs: list[Para], left: float, *, heading: bool = False, exact: bool = False) -> str:
        """Paragraphs as ``a:p`` elements.

        Args:
            paragraphs: with their places, which make the space between them.
            left: where the frame's text begins.
            heading: whether the heading font is the one that is the default.
            exact: whether lines are as tall as they were measured, in points.
        """
        out: list[str] = []
        before: Para | None = None
        for para in paragraphs:
            gap = para.y - (before.y + before.height) if before is not None else 0.0
            after_number = before is not None and before.bullet is not None and bool(before.bullet.scheme)
            out.append(
                self._paragraph(para, max(0.0, gap), left, heading=heading, running=after_number, exact=exact)
            )
            before = para
        return "".join(out) or "<a:p/>"

    def _paragraph(self, para: Para, gap: float, left: float, *, heading: bool, running: bool, exact: bool) -> str:
        size = max((piece.size for piece in para.pieces), default=16.0)
        margin = max(0.0, para.x - left)
        attributes = []
        hang = min(margin, size * para.bullet.hang) if para.bullet else 0.0
        if para.bullet and para.bullet.x is not None:
            hang = max(0.0, min(margin, para.x - para.bullet.x))
        margin = margin if margin >= 1 else 0.0
        attributes.append(f'marL="{min(51_206_400, emu(margin))}" indent="{-emu(hang)}"')
        if para.level:
            attributes.append(f'lvl="{para.level}"')
        align = {"center": "ctr", "right": "r", "justify": "just"}.get(para.align, "l")
        if para.rtl:
            attributes.append('rtl="1"')
        attributes.append(f'algn="{align}"')
        spacing = self._line_spacing(para, size, exact=exact)
        bullet = self._bullet(para.bullet, running=running)
        runs = "".join(self._run(piece, heading=heading) for piece in para.pieces)
        return (
            f"<a:p><a:pPr {' '.join(attributes)}>{spacing}"
            f'<a:spcBef><a:spcPts val="{min(158400, round(gap * 75))}"/></a:spcBef>'
            f'<a:spcAft><a:spcPts val="0"/></a:spcAft>{bullet}</a:pPr>{runs}'
            f'<a:endParaRPr lang="{self.language}" sz="{_size(size)}"/></a:p>'
        )

    @staticmethod
    def _line_spacing(para: Para, size: float, *, exact: bool) -> str:
        """Per cent of the font's own height where that is known, so that type can be changed; else exact points."""
        natural = NATURAL.get(shown_face(para.pieces[0].family)) if para.pieces and not exact else None
        plain = natural and all(
            piece.size == size
            and NATURAL.get(shown_face(piece.family)) == natural
            and not piece.raised
            and (
                piece.text.isascii()
                or all(ord(character) <= _LATIN_LAST or character in _PUNCTUATION for character in piece.text)
            )
            for piece in para.pieces
        )
        if plain and natural:
            return f'<a:lnSpc><a:spcPct val="{round(para.line / (size * natural) * 100000)}"/></a:lnSpc>'
        return f'<a:lnSpc><a:spcPts val="{max(100, min(158400, round(para.line * 75)))}"/></a:lnSpc>'

    def _bullet(self, bullet: Bullet | None, *, running: bool) -> str:
        if bullet is None:
            return "<a:buNone/>"
        colour = (
            f"<a:buClr>{self.palette.colour(bullet.colour)}</a:buClr>"
            if bullet.colour and bullet.colour.alpha
            else ""
        )
        if bullet.scheme:
            start = f' startAt="{bullet.number}"' if bullet.number > 1 and not running else ""
            return f'{colour}<a:buFont typeface="+mj-lt"/><a:buAutoNum type="{bullet.scheme}"{start}/>'
        if bullet.character in TICKS:
            return f'{colour}<a:buFont typeface="Wingdings" charset="2"/><a:buChar char="{_WINGDINGS[bullet.character]}"/>'
        font = "Arial" if bullet.character in _PLAIN_BULLETS else "Segoe UI Symbol"
        character = xml_text(bullet.character).replace('"', "&quot;")
        return f'{colour}<a:buFont typeface="{font}"/><a:buChar char="{character}"/>'

    def _run(self, piece: Piece, *, heading: bool) -> str:
        properties = self.properties(piece, heading=heading)
        if piece.text == "\n":
            return f"<a:br>{properties}</a:br>"
        parts = piece.text.split("\n")
        runs = [f"<a:r>{properties}<a:t>{xml_text(part)}</a:t></a:r>" if part else "" for part in parts]
        return f"<a:br>{properties}</a:br>".join(runs)

    def properties(self, piece: Piece, *, heading: bool = False) -> str:
        """A run's ``a:rPr``."""
        flags = [
            f'lang="{self.language}" sz="{_size(piece.size)}" b="{int(piece.bold)}"',
            *_flags(piece),
            'dirty="0"',
        ]
        paint = piece.colour or Paint(self.default)
        if paint.alpha < _SEEN:  # text clipped out of a gradient: its own colour is nothing
            paint = Paint(self.accent)
        inner = f"<a:solidFill>{self.palette.colour(paint)}</a:solidFill>"
        if piece.highlight:
            inner += f'<a:highlight><a:srgbClr val="{piece.highlight.rgb.upper()}"/></a:highlight>'
        inner += self._face(piece, heading=heading) + self._link(piece, paint)
        return f"<a:rPr {' '.join(flags)}>{inner}</a:rPr>"

    def _face(self, piece: Piece, *, heading: bool) -> str:
        """Fonts, as far as they aren't those that are the default."""
        face = "" if piece.family.startswith("\0") else self.palette.face(piece.family)
        if not heading:
            return face
        if face == _HEADING_FACE:
            return ""
        return face or ("" if self.palette.body == self.palette.heading else '<a:latin typeface="+mn-lt"/>')

    def _link(self, piece: Piece, paint: Paint) -> str:
        """A link; one whose text has a colour of its own keeps it."""
        attributes = self.link(piece.link) if piece.link else ""
        if not attributes:
            return ""
        own = "" if paint.rgb == self.accent else _HLINK_EXT
        return f"<a:hlinkClick {attributes}>{own}</a:hlinkClick>"


def _flags(piece: Piece) -> list[str]:
    flags = ['i="1"'] if piece.italic else []
    flags += ['u="sng"'] if piece.underline and not piece.link else []
    flags += ['strike="sngStrike"'] if piece.strike else []
    flags += [f'cap="{piece.capitals}"'] if piece.capitals else []
    if abs(piece.spacing) > _SPACED:
        flags.append(f'spc="{max(-4000, min(4000, round(piece.spacing * 75)))}"')
    flags += [f'baseline="{30000 if piece.raised > 0 else -25000}"'] if piece.raised else []
    return flags


def _size(pixels: float) -> int:
    """A size of type in hundredths of a point, on the half point."""
    return max(_SIZE_MIN, min(_SIZE_MAX, int(pixels * 1.5 + 0.01) * 50))
