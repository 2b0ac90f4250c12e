"""Which face stands for a font that programs name, and which faces have the letters that it lacks.

matplotlib and Pillow ask here when they have no font of a name: those of other systems are in many programs, and letters
of any script are to be drawn without a warning.
"""

import inspect
import io
import mmap
import os
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

_SANS, _SERIF, _MONO = "Liberation Sans", "Liberation Serif", "Liberation Mono"
_WIDE, _WIDE_MONO = "DejaVu Sans", "DejaVu Sans Mono"
_CHINESE, _KOREAN, _SYMBOLS = "Droid Sans Fallback", "NanumGothic", "Symbola"
# Names in small letters are no fonts: kinds, and what nobody looks for.
_FACES = {
    _SANS: "Arial, Helvetica, Helvetica Neue, Nimbus Sans, Arimo, FreeSans, Arial Narrow, Arial Black, Arial Unicode MS, swiss",
    _SERIF: "Times New Roman, Times, Nimbus Roman, Tinos, FreeSerif, Georgia, Garamond, EB Garamond, Palatino, Palatino Linotype,"
    "Book Antiqua, Baskerville, Bookman, Bookman Old Style, Charter, Didot, Century, Century Schoolbook, Computer Modern Roman,"
    "CMU Serif, Latin Modern Roman, Playfair Display, Merriweather, Lora, stix, New Century Schoolbook, Utopia, ITC Bookman",
    _MONO: "Courier New, Courier, Nimbus Mono, Cousine, FreeMono, fixed, terminal",
    "Carlito": "Calibri",
    "Caladea": "Cambria",
    "Noto Sans": "Open Sans, Roboto, Lato, Inter, Segoe UI, Ubuntu, Source Sans Pro, Source Sans 3, Droid Sans, Montserrat, Poppins,"
    "Nunito, Raleway, Work Sans, SF Pro, SF Pro Display, SF Pro Text, San Francisco, system-ui, -apple-system, blinkmacsystemfont,"
    "IBM Plex Sans, PT Sans, Fira Sans, Candara, Corbel, Optima, Avenir, Avenir Next, Gill Sans, Gill Sans MT, Futura, Myriad Pro,"
    "Century Gothic, Franklin Gothic, Trebuchet MS, DM Sans, Helvetica Light, Aptos",
    "Noto Serif": "noto serif cjk, Constantia, Source Serif Pro, PT Serif",
    _WIDE: "Verdana, Tahoma, Geneva, Lucida Grande, Lucida Sans, Lucida Sans Unicode, lucid, avant garde, Bitstream Vera Sans,"
    "Comic Sans MS, Comic Neue, xkcd, xkcd script, Humor Sans, Impact, chicago, charcoal, sand, script mt, felipa, textile,"
    "Apple Chancery, Zapf Chancery, ITC Zapf Chancery, western, cursive, fantasy",
    _WIDE_MONO: "Consolas, Menlo, Monaco, Andale Mono, Lucida Console, Lucida Sans Typewriter, Cascadia Code, Cascadia Mono, Fira Code,"
    "Fira Mono, JetBrains Mono, Source Code Pro, SF Mono, Ubuntu Mono, Roboto Mono, Inconsolata, Hack, IBM Plex Mono, cmtt10,"
    "Computer Modern Typewriter, Bitstream Vera Sans Mono, Space Mono",
    _CHINESE: "SimHei, SimSun, NSimSun, SimKai, KaiTi, FangSong, SimFang, STHeiti, STSong, STKaiti, STXihei, Heiti SC, Heiti TC, Songti SC,"
    "Microsoft YaHei, Microsoft YaHei UI, Microsoft JhengHei, MingLiU, PMingLiU, DFKai-SB, PingFang SC, PingFang TC, PingFang HK,"
    "Hiragino Sans GB, Source Han Sans, Source Han Sans CN, Source Han Sans SC, Source Han Serif SC, Source Han Sans JP,"
    "WenQuanYi Micro Hei, WenQuanYi Zen Hei, WenQuanYi Bitmap Song, AR PL UMing CN, AR PL UKai CN, Noto Sans SC, Noto Sans TC,"
    "Noto Serif SC, Noto Sans Hans, Droid Sans Fallback Full, LiHei Pro, LiSong Pro, YouYuan, LiSu, Heiti, Songti, DengXian, "
    "Hiragino Sans, Hiragino Kaku Gothic Pro, Hiragino Kaku Gothic ProN, Hiragino Mincho ProN, Hiragino Maru Gothic Pro, Meiryo,"
    "Meiryo UI, MS Gothic, MS PGothic, MS UI Gothic, MS Mincho, MS PMincho, Yu Gothic, Yu Mincho, YuGothic, Takao, TakaoGothic,"
    "TakaoPGothic, IPAGothic, IPAPGothic, IPAexGothic, IPAMincho, VL Gothic, Noto Sans JP, Noto Serif JP, Source Han Serif,"
    "Noto Sans CJK SC, Noto Sans CJK TC, Noto Sans CJK HK, Noto Sans CJK JP, Noto Serif CJK SC, Noto Serif CJK TC, Noto Serif CJK JP",
    _KOREAN: "Malgun Gothic, Apple SD Gothic Neo, AppleGothic, Nanum Gothic, NanumBarunGothic, NanumMyeongjo, NanumSquare, Gulim,"
    "Batang, Dotum, Gungsuh, Noto Sans KR, Noto Serif KR, Noto Sans CJK KR, Noto Serif CJK KR, Un Dotum, UnDotum,"
    "Baekmuk Gulim, Source Han Sans KR, Source Han Sans K",
    "Noto Sans Devanagari": "Mangal, Nirmala UI, Nirmala Text, Kokila, Aparajita, Utsaah, Kohinoor Devanagari, Lohit Devanagari, Kruti Dev,"
    "Devanagari MT, Devanagari Sangam MN, Sanskrit Text, Gargi, Sarai",
    "Noto Sans Bengali": "Vrinda, Shonar Bangla, Kohinoor Bangla, Lohit Bengali, SolaimanLipi",
    "Noto Sans Tamil": "Latha, Vijaya, Tamil Sangam MN, Lohit Tamil",
    "Noto Sans Telugu": "Gautami, Vani, Lohit Telugu, Kohinoor Telugu",
    "Noto Sans Kannada": "Tunga",
    "Noto Sans Malayalam": "Kartika",
    "Noto Sans Gujarati": "Shruti",
    "Noto Sans Gurmukhi": "Raavi",
    "Noto Sans Thai": "Leelawadee, Leelawadee UI, Cordia New, CordiaUPC, Angsana New, AngsanaUPC, Browallia New, Thonburi, TH Sarabun New,"
    "Sarabun, Tahoma Thai, Loma, Garuda, Norasi, Waree, Ayuthaya, Krungthep, Silom, Sathu",
    "Noto Naskh Arabic": "Arabic Typesetting, Traditional Arabic, Simplified Arabic, Sakkal Majalla, Geeza Pro, Amiri, Scheherazade,"
    "Al Bayan, Baghdad, Damascus, Tajawal, Cairo, Droid Arabic Naskh, B Nazanin, IRANSans, Vazir, Vazirmatn",
    "Noto Sans Hebrew": "David, Miriam, FrankRuehl, Arial Hebrew, Gisha, Aharoni, Levenim MT, Rod",
    "Noto Sans Khmer": "Daunpenh, Khmer UI, Moolboran",
    "Noto Sans Lao": "Dokchampa, Lao UI",
    "Noto Sans Myanmar": "Myanmar Text, Padauk",
    "Noto Sans Ethiopic": "Nyala, Ebrima, Kefa",
    "Noto Sans Georgian": "Sylfaen",
    "Noto Sans Armenian": "Mshtakan",
    "Noto Serif Tibetan": "Microsoft Himalaya, Kailasa",
    "Noto Sans Mongolian": "Mongolian Baiti",
    # Faces in colour cannot be drawn by matplotlib.
    _SYMBOLS: "Segoe UI Emoji, Segoe UI Symbol, Apple Color Emoji, Apple Symbols, Noto Emoji, Noto Color Emoji, Twemoji, OpenMoji",
}
_NAMES = {name.strip(): face for face, names in _FACES.items() for name in names.split(",")}
_FACE_OF = {name.lower(): face for name, face in _NAMES.items()}
# Of names that nobody knows here, parts by which a kind of face is meant.
_KINDS = (
    (re.compile(r"\b(cjk kr|kr|korean|hangul|nanum)\b"), _KOREAN),
    (
        re.compile(
            r"\b(cjk|sc|tc|hk|jp|gb|cn|han|hei|heiti|song|songti|kai|kaiti|ming|mincho|hiragino|pingfang|wenquanyi)\b"
        ),
        _CHINESE,
    ),
    (re.compile(r"mono|code|console|typewriter|courier|terminal"), _WIDE_MONO),
    (re.compile(r"(?<!sans )(?<!sans-)serif|roman|times"), _SERIF),
)
# In this order, a letter that a face lacks is searched. What lacks in all of them is drawn as a rectangle.
_FALLBACKS = (
    *(
        _WIDE,
        _CHINESE,
        _KOREAN,
        "Noto Sans Devanagari",
        "Noto Sans Thai",
        "Noto Sans Bengali",
        "Noto Sans Tamil",
        "Noto Sans Telugu",
    ),
    *(
        "Noto Sans Kannada",
        "Noto Sans Malayalam",
        "Noto Sans Gujarati",
        "Noto Sans Gurmukhi",
        "Noto Sans Oriya",
        "Noto Sans Sinhala",
    ),
    *(
        "Noto Sans Arabic",
        "Noto Sans Hebrew",
        "Noto Sans Khmer",
        "Noto Sans Lao",
        "Noto Sans Myanmar",
        "Noto Sans Ethiopic",
    ),
    *(
        "Noto Sans Armenian",
        "Noto Sans Georgian",
        "Noto Serif Tibetan",
        "Noto Sans Mongolian",
        "Noto Sans Thaana",
        "Noto Sans Syriac",
    ),
    *("Noto Sans Symbols", "Noto Sans Symbols2", _SYMBOLS, "Noto Sans Math"),
)
_REGULAR = 400
_BOLD_FROM = 600
_STYLE = re.compile(
    r"(?:[\s_-]*(?:semi|extra|demi)?(?:bold|italic|oblique|regular|medium|light|black|thin)|[\s_-](?:bi|bd|b|i))+$|(?:bd|bi)$"
)
_FOLDER = "/usr/share/fonts/truetype"
# How Windows and macOS name the files of their fonts, where that is not the name of the font.
_FILES = {
    "seguiemj": "segoe ui emoji", "seguisym": "segoe ui symbol", "arialuni": "arial", "times": "times new roman", "cour": "courier new",
    "consola": "consolas", "segoeui": "segoe ui", "trebuc": "trebuchet ms",
    "comic": "comic sans ms", "msyh": "microsoft yahei", "msjh": "microsoft jhenghei", "simkai": "kaiti",
    "malgun": "malgun gothic", "msgothic": "ms gothic", "yugoth": "yu gothic", "micross": "arial",
    "pingfang": "pingfang sc", "helveticaneue": "helvetica", "sfnsdisplay": "sf pro", "nirmala": "nirmala ui", "lucon": "lucida console",
    "pala": "palatino",
}  # fmt: skip


def face_of(name: str) -> tuple[str, bool]:
    """The family that stands for one of this name, and whether the name is one that is known."""
    plain = " ".join(name.lower().split())
    if (face := _FACE_OF.get(plain)) is not None:
        return face, True
    for words, face in _KINDS:
        if words.search(plain):
            return face, face in {_KOREAN, _CHINESE}
    return _WIDE, False


def file_of(path: str) -> str | None:
    """The font file that stands for one of a name such as ``arialbd.ttf``; None if the name means nothing."""
    stem = Path(path.replace("\\", "/")).stem.lower()
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", Path(path.replace("\\", "/")).stem).lower()
    bold = "bold" in stem or stem.endswith(("bd", "-b"))
    plain = [_STYLE.sub("", name) for name in (spaced, stem)]
    for candidate in (stem, spaced, *plain, re.sub(r"[-_]", " ", plain[0]), stem[:-1]):
        face, known = face_of(_FILES.get(candidate, candidate))
        if known:
            return _file_with(face, bold=bold)
    return None


@lru_cache
def _file_with(face: str, *, bold: bool) -> str | None:
    name = {_CHINESE: "DroidSansFallbackFull", _SYMBOLS: "Symbola_hint"}.get(face, face.replace(" ", ""))
    endings = ("-Bold", "Bold", "-Regular", "") if bold else ("-Regular", "")
    found = {path.name: path for path in Path(_FOLDER).rglob("*.ttf")}
    return next((str(found[f"{name}{end}.ttf"]) for end in endings if f"{name}{end}.ttf" in found), None)


class _Mapped(mmap.mmap):
    """A font file that needs no descriptor: a program may draw with more faces than it may open files."""

    name: str

    @classmethod
    def of(cls, path: str) -> "_Mapped":
        with open(path, "rb") as file:
            mapped = cls(file.fileno(), 0, access=mmap.ACCESS_READ, trackfd=False)
        mapped.name = path
        return mapped


class _Fonts(list[Any]):
    """matplotlib's list of fonts: who looks through it finds the names too that others stand for; a search does not."""

    def __iter__(self) -> Iterator[Any]:
        fonts = [*super().__iter__()]
        return iter(fonts if getattr(_SEARCH, "is_on", False) else fonts + _stand_ins(fonts))


_SEARCH = threading.local()


@contextmanager
def _searching() -> Iterator[None]:
    """Within it, lists of fonts have those alone that are there."""
    before, _SEARCH.is_on = getattr(_SEARCH, "is_on", False), True
    try:
        yield
    finally:
        _SEARCH.is_on = before


def _stand_ins(fonts: Sequence[Any]) -> list[Any]:
    """For each name of a font that is not there an entry, of the upright face that stands for it."""
    upright = {font.name: font for font in fonts if font.style == "normal" and font.weight == _REGULAR}
    return [
        replace(upright[face], name=name)
        for name, face in _NAMES.items()
        if name[0].isupper() and name not in upright and face in upright
    ]


class _Faces:
    """What a list of fonts of matplotlib has.

    Attributes:
        families: the fonts of each family, by its name in small letters.
    """

    def __init__(self, fonts: Sequence[Any], weights: dict[str, int]) -> None:
        self._weights = weights
        self._fallbacks: dict[bool, list[str]] = {}
        self.families: dict[str, list[Any]] = {}
        for font in fonts:
            self.families.setdefault(font.name.lower(), []).append(font)

    def weight_of(self, weight: str | int) -> int:
        return weight if isinstance(weight, int) else self._weights.get(weight, 400)

    def fallbacks(self, weight: str | int) -> list[str]:
        """The files with letters that a face of this weight may lack, in their order."""
        bold = self.weight_of(weight) >= _BOLD_FROM
        if bold not in self._fallbacks:
            upright = (
                [font for font in self.families.get(face.lower(), ()) if font.style == "normal"]
                for face in _FALLBACKS
            )
            best = max if bold else min
            self._fallbacks[bold] = [
                os.path.realpath(best(fonts, key=lambda font: self.weight_of(font.weight)).fname)
                for fonts in upright
                if fonts
            ]
        return self._fallbacks[bold]


class _Resolver:
    """Has properties of fonts name families that are there."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._unknown: set[str] = set()
        self._latest: tuple[tuple[int, int], _Faces] | None = None

    def faces(self, manager: Any) -> _Faces:
        """What a list has; read anew when a font was added."""
        key = (id(manager.ttflist), len(manager.ttflist))
        if self._latest is None or self._latest[0] != key:
            self._latest = key, _Faces(manager.ttflist, self._names["weight_dict"])
        return self._latest[1]

    def resolve(self, manager: Any, prop: Any, *, may_guess: bool = True) -> Any:
        """The same properties, of families that are there; a name that nobody knows stays, unless one may guess."""
        prop = self._names["FontProperties"]._from_any(prop)
        if prop.get_file() is not None:
            return prop
        families = prop.get_family()
        faces = [face for family in families for face in self._replace(manager, family, may_guess=may_guess)]
        if faces != families:
            prop = prop.copy()
            prop.set_family(faces)
        return prop

    def _replace(self, manager: Any, family: str, *, may_guess: bool) -> list[str]:
        name, installed = family.lower(), self.faces(manager).families
        if name in self._names["font_family_aliases"]:
            options = [*manager._expand_aliases(name)]
            is_there = not options or any(option.lower() in installed for option in options)
            return [family] if is_there else [face_of(option)[0] for option in options]
        face, is_known = face_of(family)
        if (name in installed and face != _SYMBOLS) or not (is_known or may_guess):
            return [family]
        if not is_known and family not in self._unknown:
            self._unknown.add(family)
            self._names["_log"].warning("findfont: Font family %r not found; %r is used.", family, face)
        return [face]


def complete_font_manager(names: dict[str, Any]) -> None:
    """Has matplotlib's list of fonts find a face for every name, and letters of every script behind it."""
    manager, resolver = names["FontManager"], _Resolver(names)
    find_one, find_all, open_fonts = manager.findfont, manager._find_fonts_by_props, names["_get_font"].__wrapped__

    @_searching()
    @wraps(find_one)
    def findfont(self: Any, prop: Any, *others: Any, **named: Any) -> Any:
        # Of a folder and of faces of PostScript, as ever.
        asked = signature.bind(self, prop, *others, **named).arguments
        if asked.get("fontext", "ttf") == "ttf" and not asked.get("directory"):
            prop = resolver.resolve(self, prop, may_guess=asked.get("fallback_to_default", True))
        return find_one(self, prop, *others, **named)

    @_searching()
    @wraps(find_all)
    def find_fonts(self: Any, prop: Any, *others: Any, **named: Any) -> list[str]:
        if others or named:
            found: list[str] = find_all(self, prop, *others, **named)
            return found
        prop = resolver.resolve(self, prop)
        fallbacks = resolver.faces(self).fallbacks(prop.get_weight())
        return list(dict.fromkeys([*find_all(self, prop), *fallbacks]))

    @lru_cache(64)
    @wraps(open_fonts)
    def get_font(*asked: Any, **named: Any) -> Any:
        opener: Any = io
        real = opener.open
        opener.open = lambda path, *mode: _Mapped.of(path) if mode == ("rb",) else real(path, *mode)
        try:
            return open_fonts(*asked, **named)
        finally:
            opener.open = real

    signature = inspect.signature(find_one)
    manager.findfont, manager._find_fonts_by_props = findfont, find_fonts
    names["fontManager"].ttflist = _Fonts(names["fontManager"].ttflist)
    names["findfont"] = names["fontManager"].findfont
    names["_get_font"] = get_font
    os.register_at_fork(after_in_child=get_font.cache_clear)


def complete_mathtext(names: dict[str, Any]) -> None:
    """Has texts with formulas fall back for each letter too, on the fonts that other texts fall back on."""
    manager = names["findfont"].__self__

    class _Others:
        """What the last of the fonts for formulas falls back on."""

        def __init__(self, fonts: Any) -> None:
            self._fonts = fonts

        def _get_glyph(self, fontname: str, font_class: str, sym: str) -> tuple[Any, int, bool]:
            if fontname in {
                "it",
                "regular",
            }:  # of these alone, formulas have no glyphs but those of upright letters
                glyph: tuple[Any, int, bool] = self._fonts._get_glyph("rm", font_class, sym)
                return glyph
            with suppress(ValueError):
                letter = names["get_unicode_index"](sym)
                for path in manager._find_fonts_by_props(self._fonts.default_font_prop):
                    font = names["get_font"](path)
                    if font.get_char_index(letter):
                        return font, letter, False
            names["_log"].warning("No font has a glyph for %a, substituting with a dummy symbol.", sym)
            return self._fonts._get_font("rm"), ord("\N{CURRENCY SIGN}"), False

    names["StixFonts"]._fallback_font = property(_Others)


def complete_text_helpers(names: dict[str, Any]) -> None:
    """Has the warning of a letter that no face has name the one that was asked, and not all that were tried."""
    warn = names["warn_on_missing_glyph"]

    @wraps(warn)
    def warn_on_missing_glyph(codepoint: int, fontnames: str) -> None:
        asked = [name for name in fontnames.split(", ") if name not in _FALLBACKS]
        warn(codepoint, ", ".join(sorted(asked)) or _WIDE)

    # A warning names the first line that is not of matplotlib: the program's.
    code = warn_on_missing_glyph.__code__
    warn_on_missing_glyph.__code__ = code.replace(co_filename=warn.__code__.co_filename)
    names["warn_on_missing_glyph"] = warn_on_missing_glyph


def complete_truetype(names: dict[str, Any]) -> None:
    """Has Pillow open the face that stands for a font file of another system."""
    open_as_ever = names["truetype"]

    @wraps(open_as_ever)
    def truetype(font: Any = None, *others: Any, **named: Any) -> Any:
        try:
            return open_as_ever(font, *others, **named)
        except OSError:
            path = file_of(os.fspath(font)) if isinstance(font, (str, os.PathLike)) else None
            if path is None:
                raise
            return open_as_ever(path, *others, **named)

    names["truetype"] = truetype
