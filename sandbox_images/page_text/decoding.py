"""Turns the bytes of a page into text, as browsers do: byte order mark, HTTP header, meta element, then a guess."""

import codecs
import re

_META_SEARCHED_BYTES = 4_096
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# On the web these names mean the Windows code page, which has quotation marks where Latin-1 has controls.
_AS_ON_THE_WEB = {"iso8859-1": "cp1252", "ascii": "cp1252"}
# Python's own, which are no encodings of pages.
_NO_CHARSETS = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "utf-7"})


def decoded(data: bytes, charset: str | None) -> str:
    """The text of a page; bytes that its encoding does not know become U+FFFD.

    Args:
        data: the page.
        charset: that of its HTTP header; None without one.
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, errors="replace")
    found = _META.search(data[:_META_SEARCHED_BYTES])
    for declared in (charset, found[1].decode("ascii") if found else None):
        known = _codec(declared)
        if known is not None:
            return data.decode(known, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _codec(name: str | None) -> str | None:
    if not name:
        return None
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    if info.name in _NO_CHARSETS or not info._is_text_encoding:  # noqa: SLF001 - there is no public name for it
        return None
    return _AS_ON_THE_WEB.get(info.name, info.name)
