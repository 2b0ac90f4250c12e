"""Accents and brackets of formulas as the structures that Word has for them.

The converter leaves brackets as letters, and a power of a bracket as a power of its last letter: other readers show
such halves as errors. It writes accents as stretched characters, which they do not know.
"""

from lxml import etree
from render.docx.xml import MATH

_M = f"{{{MATH}}}"
_ROWS = frozenset(f"{_M}{name}" for name in ("oMath", "e", "num", "den", "sub", "sup", "deg", "lim", "fName"))
_CLOSED_BY = {"(": ")]", "[": "])", "{": "}"}
_SCRIPTS = frozenset(f"{_M}{name}" for name in ("sSub", "sSup", "sSubSup"))
_ACCENTS = {
    "^": "\u0302", "\u02c6": "\u0302", "~": "\u0303", "\u02dc": "\u0303", "\u2192": "\u20d7", "\u02d9": "\u0307",
    ".": "\u0307", "\u00a8": "\u0308", "\u02d8": "\u0306", "\u02c7": "\u030c", "\u00b4": "\u0301", "`": "\u0300",
}  # fmt: skip
_LONELY = frozenset(
    "=<>*+/\u2264\u2265\u2260\u2248\u2261\u223c\u221d\u2208\u2282\u2286\u00d7\u00b7\u2217\u22c5\u27f9\u21d2"
)
"""Operators that other readers call an error where one of their sides is empty."""
_NOTHING = "\u200b"
_BARS = frozenset("\u00af\u203e\u2015\u0305\u0304_\u0332\u2014\u2500")


def mark_structures(root: etree._Element) -> None:
    """Makes accents, bars and brackets of what stands for them, in place."""
    for element in list(root.iter(f"{_M}groupChr")):
        properties = element.find(f"{_M}groupChrPr")
        if properties is not None:
            found, place = properties.find(f"{_M}chr"), properties.find(f"{_M}pos")
            letter = "" if found is None else found.get(f"{_M}val", "")
            _accent(element, letter, top=place is not None and place.get(f"{_M}val") == "top")
    for name in ("limUpp", "limLow"):
        for element in list(root.iter(f"{_M}{name}")):
            lim = element.find(f"{_M}lim")
            if lim is not None and _accent(element, "".join(lim.itertext()), top=name == "limUpp"):
                element.remove(lim)
    for row in [element for element in root.iter() if element.tag in _ROWS]:
        _bracket(row)
    for row in [element for element in root.iter() if element.tag in _ROWS]:
        _bars(row)
        _sides(row)


def _accent(element: etree._Element, letter: str, *, top: bool) -> bool:
    """Makes a bar or an accent of an element, if its letter is one; its first child holds its properties."""
    if letter in _BARS:
        name, (key, value) = "bar", ("pos", "top" if top else "bot")
    elif top and letter in _ACCENTS:
        name, (key, value) = "acc", ("chr", _ACCENTS[letter])
    else:
        return False
    element.tag, element[0].tag = f"{_M}{name}", f"{_M}{name}Pr"
    wanted = etree.Element(f"{_M}{key}")
    wanted.set(f"{_M}val", value)
    element[0][:] = [wanted]
    return True


def _bars(row: etree._Element) -> None:
    """Makes a bracket of the only two bars of a row; a bar alone is that of a condition."""
    bars = [child for child in row if _letter(child) == "|"]
    if len(bars) == 2 and row.index(bars[1]) - row.index(bars[0]) > 1:  # noqa: PLR2004 - a pair
        _enclose(row, bars[0], bars[1], None, "|")
        return
    for bar in bars:
        bar.find(f"{_M}t").text = "\u2223"


def _sides(row: etree._Element) -> None:
    """Gives operators at the ends of a row, and a row without content, a text of no width beside them."""
    parts = [child for child in row if not child.tag.endswith("Pr")]
    if not parts and row.getparent() is not None and row.getparent().tag == f"{_M}mr":
        row.append(_nothing())
    if parts and _letter(parts[-1]) in _LONELY:
        row.insert(row.index(parts[-1]) + 1, _nothing())
    if parts and _letter(parts[0]) in _LONELY:
        row.insert(row.index(parts[0]), _nothing())


def _nothing() -> etree._Element:
    run = etree.Element(f"{_M}r")
    etree.SubElement(etree.SubElement(run, f"{_M}rPr"), f"{_M}nor")
    etree.SubElement(run, f"{_M}t").text = _NOTHING
    return run


def _letter(element: etree._Element) -> str:
    """The text of a run of a single letter, else nothing."""
    text = element.findtext(f"{_M}t") or "" if element.tag == f"{_M}r" else ""
    return text if len(text) == 1 else ""


def _bracket(row: etree._Element) -> None:
    """Pairs the brackets of a row; one that has no partner stays a letter."""
    opened: list[etree._Element] = []
    for child in list(row):
        letter = _letter(child)
        base = child.find(f"{_M}e") if child.tag in _SCRIPTS else None
        closing = letter or (_letter(base[0]) if base is not None and len(base) == 1 else "")
        if letter in _CLOSED_BY and letter:
            opened.append(child)
        elif opened and closing and closing in _CLOSED_BY[_letter(opened[-1])]:
            _enclose(row, opened.pop(), child, base, closing)


def _enclose(
    row: etree._Element, start: etree._Element, end: etree._Element, base: etree._Element | None, closing: str
) -> None:
    first, last = row.index(start), row.index(end)
    bracket = etree.Element(f"{_M}d")
    properties = etree.SubElement(bracket, f"{_M}dPr")
    for name, letter in (("begChr", _letter(start)), ("endChr", closing)):
        etree.SubElement(properties, f"{_M}{name}").set(f"{_M}val", letter)
    inner = etree.SubElement(bracket, f"{_M}e")
    inner.extend(row[first + 1 : last])
    row.remove(start)
    if base is None:
        row.replace(end, bracket)
    else:
        base[:] = [bracket]
