"""Which face stands for a font that programs name, and which faces have the letters that it lacks.

matplotlib and Pillow ask here when they have no font of a name: those of other systems are in many programs, and letters
of any script are to be drawn without a warning.
"""

import inspect
import io
import mmap
import os
import re
from collections.abc import Sequence
from functools import lru_cache, wraps
from pathlib import Path
from typing import Any

_SANS, _SERIF, _MONO = "Liberation Sans", "Liberation Serif", "Liberation Mono"
_WIDE, _WIDE_MONO = "DejaVu Sans", "DejaVu Sans Mono"
_CHINESE, _KOREAN, _SYMBOLS = "Droid Sans Fallback", "NanumGothic", "Symbola"
_FACES = {
    _SANS: "arial, helvetica, helvetica neue, nimbus sans, arimo, freesans, arial narrow, arial black, arial unicode ms, swiss",
    _SERIF: "times new roman, times, nimbus roman, tinos, freeserif, georgia, garamond, eb garamond, palatino, palatino linotype,"
    "book antiqua, baskerville, bookman, bookman old style, charter, didot, century, century schoolbook, computer modern roman,"
    "cmu serif, latin modern roman, playfair display, merriweather, lora, stix, new century schoolbook, utopia, itc bookman",
    _MONO: "courier new, courier, nimbus mono, cousine, freemono, fixed, terminal",
    "Carlito": "calibri",
    "Caladea": "cambria",
    "Noto Sans": "open sans, roboto, lato, inter, segoe ui, ubuntu, source sans pro, source sans 3, droid sans, montserrat, poppins,"
    "nunito, raleway, work sans, sf pro, sf pro display, sf pro text, san francisco, system-ui, -apple-system, blinkmacsystemfont,"
    "ibm plex sans, pt sans, fira sans, candara, corbel, optima, avenir, avenir next, gill sans, gill sans mt, futura, myriad pro,"
    "century gothic, franklin gothic, trebuchet ms, dm sans, helvetica light, aptos",
    "Noto Serif": "noto serif cjk, constantia, source serif pro, pt serif",
    _WIDE: "verdana, tahoma, geneva, lucida grande, lucida sans, lucida sans unicode, lucid, avant garde, bitstream vera sans,"
    "comic sans ms, comic neue, xkcd, xkcd script, humor sans, impact, chicago, charcoal, sand, script mt, felipa, textile,"
    "apple chancery, zapf chancery, itc zapf chancery, western, cursive, fantasy",
    _WIDE_MONO: "consolas, menlo, monaco, andale mono, lucida console, lucida sans typewriter, cascadia code, cascadia mono, fira code,"
    "fira mono, jetbrains mono, source code pro, sf mono, ubuntu mono, roboto mono, inconsolata, hack, ibm plex mono, cmtt10,"
    "computer modern typewriter, bitstream vera sans mono, space mono",
    _CHINESE: "simhei, simsun, nsimsun, simkai, kaiti, fangsong, simfang, stheiti, stsong, stkaiti, stxihei, heiti sc, heiti tc, songti sc,"
    "microsoft yahei, microsoft yahei ui, microsoft jhenghei, mingliu, pmingliu, dfkai-sb, pingfang sc, pingfang tc, pingfang hk,"
    "hiragino sans gb, source han sans, source han sans cn, source han sans sc, source han serif sc, source han sans jp,"
    "wenquanyi micro hei, wenquanyi zen hei, wenquanyi bitmap song, ar pl umming cn, ar pl ukai cn, noto sans sc, noto sans tc,"
    "noto serif sc, noto sans hans, droid sans fallback full, lihei pro, lisong pro, youyuan, lisu, heiti, songti, dengxian, "
    "hiragino sans, hiragino kaku gothic pro, hiragino kaku gothic pron, hiragino mincho pron, hiragino maru gothic pro, meiryo,"
    "meiryo ui, ms gothic, ms pgothic, ms ui gothic, ms mincho, ms pmincho, yu gothic, yu mincho, yugothic, takao, takaogothic,"
    "takaopgothic, ipagothic, ipapgothic, ipaexgothic, ipamincho, vl gothic, noto sans jp, noto serif jp, source han serif",
    _KOREAN: "malgun gothic, apple sd gothic neo, applegothic, nanum gothic, nanumbarungothic, nanummyeongjo, nanumsquare, gulim,"
    "batang, dotum, gungsuh, noto sans kr, noto serif kr, un dotum, undotum, baekmuk gulim, source han sans kr, source han sans k",
    "Noto Sans Devanagari": "mangal, nirmala ui, nirmala text, kokila, aparajita, utsaah, kohinoor devanagari, lohit devanagari, kruti dev,"
    "devanagari mt, devanagari sangam mn, sanskrit text, gargi, sarai",
    "Noto Sans Bengali": "vrinda, shonar bangla, kohinoor bangla, lohit bengali, solaimanlipi",
    "Noto Sans Tamil": "latha, vijaya, tamil sangam mn, lohit tamil",
    "Noto Sans Telugu": "gautami, vani, lohit telugu, kohinoor telugu",
    "Noto Sans Kannada": "tunga",
    "Noto Sans Malayalam": "kartika",
    "Noto Sans Gujarati": "shruti",
    "Noto Sans Gurmukhi": "raavi",
    "Noto Sans Thai": "leelawadee, leelawadee ui, cordia new, cordiaupc, angsana new, angsanaupc, browallia new, thonburi, th sarabun new,"
    "sarabun, tahoma thai, loma, garuda, norasi, waree, ayuthaya, krungthep, silom, sathu",
    "Noto Naskh Arabic": "arabic typesetting, traditional arabic, simplified arabic, sakkal majalla, geeza pro, amiri, scheherazade,"
    "al bayan, baghdad, damascus, tajawal, cairo, droid arabic naskh, b nazanin, iransans, vazir, vazirmatn",
    "Noto Sans Hebrew": "david, miriam, frankruehl, arial hebrew, gisha, aharoni, levenim mt, rod",
    "Noto Sans Khmer": "daunpenh, khmer ui, moolboran",
    "Noto Sans Lao": "dokchampa, lao ui",
    "Noto Sans Myanmar": "myanmar text, padauk",
    "Noto Sans Ethiopic": "nyala, ebrima, kefa",
    "Noto Sans Georgian": "sylfaen",
    "Noto Sans Armenian": "mshtakan",
    "Noto Serif Tibetan": "microsoft himalaya, kailasa",
    "Noto Sans Mongolian": "mongolian baiti",
    # Faces in colour cannot be drawn by matplotlib.
    _SYMBOLS: "segoe ui emoji, segoe ui symbol, apple color emoji, apple symbols, noto emoji, noto color emoji, twemoji, openmoji",
}
_FACE_OF = {name.strip(): face for face, names in _FACES.items() for name in names.split(",")}
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

    def resolve(self, manager: Any, prop: Any) -> Any:
        """The same properties, of families that are there."""
        prop = self._names["FontProperties"]._from_any(prop)
        if prop.get_file() is not None:
            return prop
        families = prop.get_family()
        faces = [face for family in families for face in self._replace(manager, family)]
        if faces != families:
            prop = prop.copy()
            prop.set_family(faces)
        return prop

    def _replace(self, manager: Any, family: str) -> list[str]:
        name, installed = family.lower(), self.faces(manager).families
        if name in self._names["font_family_aliases"]:
            options = [*manager._expand_aliases(name)]
            is_there = not options or any(option.lower() in installed for option in options)
            return [family] if is_there else [face_of(option)[0] for option in options]
        face, is_known = face_of(family)
        if name in installed and face != _SYMBOLS:
            return [family]
        if not is_known and family not in self._unknown:
            self._unknown.add(family)
            self._names["_log"].warning("findfont: Font family %r not found; %r is used.", family, face)
        return [face]


def complete_font_manager(names: dict[str, Any]) -> None:
    """Has matplotlib's list of fonts find a face for every name, and letters of every script behind it."""
    manager, resolver = names["FontManager"], _Resolver(names)
    find_one, find_all, open_fonts = manager.findfont, manager._find_fonts_by_props, names["_get_font"].__wrapped__

    @wraps(find_one)
    def findfont(self: Any, prop: Any, *others: Any, **named: Any) -> Any:
        # Of a folder, of faces of PostScript and where nothing may stand for a family, as ever.
        asked = signature.bind(self, prop, *others, **named).arguments
        if (
            asked.get("fontext", "ttf") == "ttf"
            and not asked.get("directory")
            and asked.get("fallback_to_default", True)
        ):
            prop = resolver.resolve(self, prop)
        return find_one(self, prop, *others, **named)

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
    names["findfont"] = names["fontManager"].findfont
    names["_get_font"] = get_font
    os.register_at_fork(after_in_child=get_font.cache_clear)


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
