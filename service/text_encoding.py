"""Which encoding a text is in, and its characters: the one place where bytes of files become text.

It is the one of its mark; else UTF-8 if it can be that, UTF-16 by its zeros, or the older encoding whose letters
fit best. A broken UTF-8 text stays one. Decoding runs nothing that the bytes bring along.
"""

import codecs
import re
import unicodedata
from collections.abc import Container, Mapping

UTF_8 = "utf-8"
SNIFFED_BYTES = 16 * 1024
"""So much of the start of a file shows its encoding."""
# UTF-32 first: its mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, UTF_8),
)
_CLEAR_SHARE = 0.7  # of what a text has beyond ASCII, for two bytes a character
_LIKELY_SHARE = 0.5  # the same, for one byte
_READABLE_SHARE = 0.97
_ASCII_SHARE = 0.05  # of UTF-16: blanks and ends of lines in any script
_KOREAN_PAIRS_MIN = 4  # fewer may as well be Chinese by chance
_KANA_SHARE = 0.2
_TYPOGRAPHIC = frozenset("“”„‚‘’‹›«»–—…•·€£¥§°©®™±²³¼½¾×÷¡¿ºª\xa0\xad¨´`№")  # noqa: RUF001
_CONTROL = re.compile(rb"[\x01-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
_ASCII_END = 0x80
_HALF_WIDTH = range(0xA1, 0xE0)  # katakana
_WORD_BEYOND_ASCII = re.compile(rb"[A-Za-z]*[\x80-\xff][A-Za-z\x80-\xff]*")
_ASCII_LETTER = re.compile(rb"[A-Za-z]")
_MIXED_SHARE = 0.4  # of such words: European letters stand beside those of ASCII, others among themselves
_CAPITAL_WEIGHT = 0.8
_LATIN = {
    "cp1252": "äöüßéèêàáíóúñçåæøãõâîôûëïùœìòþð",
    "cp1250": "ąćęłńśźżěščřžýáíéúůőűóöüäďťňßţăâî",
    "cp1254": "ğışçöüİâî",
}
_OTHER = {
    "cp1251": "оеаинтсрвлкмдпуяызбйіїєґ",
    "koi8_r": "оеаинтсрвлкмдпуяызбй",
    "cp866": "оеаинтсрвлкмдпуяызбй",
    "cp1253": "αοιτενσηρπκμλυςάέίόήύώ",
    "cp1255": "יוהלאתרבשמנדקעחפםץןגזטסכצ",
    "cp1256": "اليمنورتبهدسعفقكةىحجأ",
}
"""The common letters, small, of what is written in each encoding of one byte; of two that fit alike, the first."""


def find_encoding(head: bytes, *, is_whole: bool = True) -> str | None:
    """The codec that a text is in, such as ``utf-16`` or ``cp1252``; None for what is no text.

    Args:
        head: the text, or its start.
        is_whole: else its last character may be cut off.
    """
    is_whole = is_whole and len(head) <= SNIFFED_BYTES
    head = head[:SNIFFED_BYTES]
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name if name == UTF_8 or _decodes(head, name, is_whole=is_whole) is not None else None
    if b"\x00" in head:
        return _find_utf_16(head, is_whole=is_whole)
    if _decodes(head, UTF_8, is_whole=is_whole) is not None or not _is_legacy(head):
        return UTF_8
    if _CONTROL.search(head):
        return None
    return _find_two_bytes(head, is_whole=is_whole) or _find_one_byte(head)


def decode_text(data: bytes, encoding: str, *, is_whole: bool = True) -> str:
    """The characters of a text without its mark; what its encoding does not know becomes U+FFFD.

    Args:
        data: the text, or its start.
        encoding: a codec, of `find_encoding` or of a contract.
        is_whole: else a character that is cut off at the end is left out.
    """
    text = codecs.getincrementaldecoder(encoding)("replace").decode(data, final=is_whole)
    return text.removeprefix("\ufeff") if encoding != UTF_8 else text


def encode_text(text: str, encoding: str, like: bytes) -> bytes:
    """A text in the encoding of a file, with the mark that the file has.

    Args:
        text: without a mark, but for UTF-8.
        encoding: that of `find_encoding`.
        like: the first bytes of the file.

    Raises:
        UnicodeEncodeError: the encoding does not have a character of it.
    """
    big_endian = like.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))
    if encoding in {"utf-16", "utf-32"}:
        return f"\ufeff{text}".encode(f"{encoding}-{'be' if big_endian else 'le'}")
    return text.encode(encoding)


def as_utf_8(head: bytes, *, is_whole: bool, encoding: str | None = None) -> tuple[bytes, str]:
    """The start of a text as UTF-8, and its encoding; what is no text comes back as it is, as UTF-8.

    Args:
        head: the text, or its start.
        is_whole: else its last character may be cut off.
        encoding: the one that it was promised to have.
    """
    encoding = UTF_8 if encoding is None else codecs.lookup(encoding).name
    if encoding in {UTF_8, "utf-8-sig", "ascii"}:
        encoding = find_encoding(head, is_whole=is_whole) or UTF_8
    if encoding == UTF_8:
        return head, UTF_8
    return decode_text(head, encoding, is_whole=is_whole).encode(errors="replace"), encoding


def find_file_encoding(path: str) -> str:
    """The codec to open a file as a text with; it takes a mark of UTF-8 away."""
    with open(path, "rb") as file:  # noqa: PTH123 - as the programs of previews do, before which this module stands
        head = file.read(SNIFFED_BYTES + 1)
    found = find_encoding(head, is_whole=len(head) <= SNIFFED_BYTES)
    return "utf-8-sig" if found in {None, UTF_8} else str(found)


def _decodes(head: bytes, encoding: str, *, is_whole: bool) -> str | None:
    """The text, if all bytes belong to an encoding."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=is_whole)
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text


def _is_legacy(head: bytes) -> bool:
    """Whether more bytes are no UTF-8 than characters outside of ASCII are: a text that is broken has few."""
    beyond = [char for char in head.decode(UTF_8, "surrogateescape") if char > "\x7f"]
    strays = sum("\udc80" <= char <= "\udcff" for char in beyond)
    return strays > len(beyond) - strays


def _find_utf_16(head: bytes, *, is_whole: bool) -> str | None:
    """UTF-16 without a mark, by what its characters are: those of the other byte order are seldom of ASCII."""
    readings = {name: _decodes(head, name, is_whole=is_whole) or "" for name in ("utf-16-le", "utf-16-be")}
    of_ascii = {name: sum(map(str.isascii, text)) for name, text in readings.items() if text and _is_readable(text)}
    found = max(of_ascii, key=lambda name: of_ascii[name], default=None)
    return found if found is not None and of_ascii[found] >= _ASCII_SHARE * len(readings[found]) else None


def _is_readable(text: str) -> bool:
    readable = sum(char in "\t\r\n" or unicodedata.category(char)[0] in "LMNPSZ" for char in text)
    return readable >= _READABLE_SHARE * len(text)


def _find_two_bytes(head: bytes, *, is_whole: bool) -> str | None:
    """An encoding of Chinese, Japanese or Korean, by which of its pairs of bytes are those of common characters."""
    shares: dict[str, float] = {}
    for name, (leads_of_common, trail_min) in _COMMON.items():
        if _decodes(head, name, is_whole=is_whole) is not None:
            pairs = _pairs(head, has_single=name == "cp932")
            common = sum(
                lead in leads_of_common and trail >= trail_min and not is_in_word
                for lead, trail, is_in_word in pairs
            )
            shares[name] = common / len(pairs) if pairs else 0.0
    found = max(shares, key=lambda name: shares[name], default=None)
    if found is None or shares[found] < _CLEAR_SHARE:
        return None
    if found != "gb18030":
        return found
    # Its rows of characters are those of Japanese and Korean, too.
    leads = [lead for lead, _, _ in _pairs(head)]
    if "euc_jp" in shares and sum(map(_KANA.__contains__, leads)) > _KANA_SHARE * len(leads):
        return "euc_jp"
    characters = [lead for lead in leads if lead >= _HANGUL[0]]
    is_korean = len(characters) >= _KOREAN_PAIRS_MIN and max(characters) in _HANGUL
    return "cp949" if is_korean and _decodes(head, "cp949", is_whole=is_whole) is not None else found


_KANA = range(0xA4, 0xA6)
_HANGUL = range(0xB0, 0xC9)
_COMMON: dict[str, tuple[Container[int], int]] = {
    "gb18030": (range(0xA1, 0xD8), 0xA1),
    "cp932": (range(0x81, 0x99), 0x40),
    "big5": (range(0xA1, 0xC7), 0x40),
    "euc_jp": ({0xA1, 0xA3, *_KANA, *range(0xB0, 0xD0)}, 0xA1),
}
"""Of each encoding of two bytes, the first bytes of common characters, and the least second one."""


def _pairs(head: bytes, *, has_single: bool = False) -> list[tuple[int, int, bool]]:
    """The pairs of bytes whose first is none of ASCII, and whether each stands within a word of ASCII.

    Args:
        head: the text.
        has_single: A1 to DF are characters of one byte.
    """
    found = []
    at, before = 0, b""
    while at + 1 < len(head):
        first = head[at]
        if first < _ASCII_END or (has_single and first in _HALF_WIDTH):
            before = head[at : at + 1]
            at += 1
            continue
        after = head[at + 2 : at + 3]
        found.append((first, head[at + 1], before.isalpha() or after.isalpha()))
        at, before = at + 2, b""
    return found


def _find_one_byte(head: bytes) -> str | None:
    """An encoding of one byte a character, by the share of common letters in what it has beyond ASCII."""
    words = [word for word in _WORD_BEYOND_ASCII.findall(head) if len(word) > 1]
    is_latin = sum(_ASCII_LETTER.search(word) is not None for word in words) >= _MIXED_SHARE * len(words)
    found = None if is_latin else _find_by_letters(head, _OTHER)
    fallback = "cp1252" if _decodes(head, "cp1252", is_whole=True) is not None else None
    return found or _find_by_letters(head, _LATIN) or fallback


def _find_by_letters(head: bytes, letters_of: Mapping[str, str]) -> str | None:
    shares: dict[str, float] = {}
    for name, letters in letters_of.items():
        text = _decodes(head, name, is_whole=True)
        chars = [char for char in (text or "") if char > "\x7f" and char not in _TYPOGRAPHIC]
        if text is not None and not any(unicodedata.category(char) == "Cc" for char in chars):
            small = sum(char in letters for char in chars)
            large = sum(char.lower() in letters for char in chars) - small
            # Most of a text is small: KOI8 has its capitals where others have small letters.
            shares[name] = (small + large * _CAPITAL_WEIGHT) / len(chars) if chars else 1.0
    found = max(shares, key=lambda name: shares[name], default=None)
    return found if found is not None and shares[found] >= _LIKELY_SHARE else None
