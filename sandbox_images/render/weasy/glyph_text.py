"""Which letters a PDF maps its glyphs to.

WeasyPrint takes the text that a glyph is first drawn for. For the ellipsis of a cut line that is all the text that is
not shown, so long that pypdf gives up; for a letter whose first syllable is drawn in another order than it is
written, it is the syllable, wherever the letter stands. The font knows better.
"""

import io
import unicodedata
from typing import Any

import weasyprint.pdf
from fontTools.ttLib import TTFont, TTLibError
from render.weasy.patch import change

_build = weasyprint.pdf.build_fonts_dictionary


def _is_sure(text: str) -> bool:
    """One letter, a part of one, or a ligature of Latin letters needs no second look."""
    return len(text) <= 1 or (len(text) <= 3 and text.isascii() and text.isalpha())  # noqa: PLR2004 - such as ffi


def _settle(font: Any) -> None:
    """Gives glyphs that stand for more than a letter the one that the font has them for."""
    unsure = [glyph for glyph, text in font.to_unicode.items() if not _is_sure(text)]
    if not unsure or font.png or font.svg or font.colr:  # an emoji of many code points is one glyph
        return
    try:
        file = TTFont(io.BytesIO(font.file_content), fontNumber=font.index, lazy=True)
        letters = {file.getGlyphID(name): letter for letter, name in reversed((file.getBestCmap() or {}).items())}
    except (TTLibError, OSError, ValueError, KeyError, AttributeError, AssertionError):
        return
    for glyph in unsure:
        letter = chr(letters[glyph]) if glyph in letters else None
        if letter and unicodedata.normalize("NFKC", letter) != unicodedata.normalize(
            "NFKC", font.to_unicode[glyph]
        ):
            font.to_unicode[glyph] = letter


def _with_letters(pdf: Any, fonts: dict[str, Any], *others: Any) -> Any:
    for font in fonts.values():
        _settle(font)
    return _build(pdf, fonts, *others)


def settle_letters() -> None:
    """Puts the correction in place; again is no harm."""
    change(weasyprint.pdf, "build_fonts_dictionary", _with_letters)
