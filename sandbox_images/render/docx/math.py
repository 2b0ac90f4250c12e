"""Formulas as editable Office Math: TeX → MathML → OMML, put in order where the converter misses the schema."""

import re
from functools import lru_cache

from lxml import etree
from render.docx.math_accents import mark_structures
from render.docx.xml import MATH
from render.ir import Formula
from render.tex_symbols import ALIGNED, escaped, known_tex

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_M, _W = f"{{{MATH}}}", f"{{{_WORD}}}"
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_MAX_DEPTH = 120
_MAX_CHARS = 20_000

_SHAPES: dict[str, tuple[str, ...]] = {
    "acc": ("e",), "bar": ("e",), "box": ("e",), "borderBox": ("e",), "d": ("e+",), "eqArr": ("e+",),
    "f": ("num", "den"), "func": ("fName", "e"), "groupChr": ("e",), "limLow": ("e", "lim"), "limUpp": ("e", "lim"),
    "m": ("mr+",), "nary": ("sub", "sup", "e"), "phant": ("e",), "rad": ("deg", "e"), "sPre": ("sub", "sup", "e"),
    "sSub": ("e", "sub"), "sSubSup": ("e", "sub", "sup"), "sSup": ("e", "sup"),
}  # fmt: skip
"""What each structure is made of, after its properties; a ``+`` allows several."""
_PROPERTIES: dict[str, tuple[str, ...]] = {
    "accPr": ("chr",), "barPr": ("pos",), "boxPr": ("opEmu", "noBreak", "diff", "brk", "aln"),
    "borderBoxPr": (
        "hideTop", "hideBot", "hideLeft", "hideRight", "strikeH", "strikeV", "strikeBLTR", "strikeTLBR",
    ),
    "dPr": ("begChr", "sepChr", "endChr", "grow", "shp"),
    "eqArrPr": ("baseJc", "maxDist", "objDist", "rSpRule", "rSp"),
    "fPr": ("type",), "funcPr": (), "groupChrPr": ("chr", "pos", "vertJc"), "limLowPr": (), "limUppPr": (),
    "mPr": ("baseJc", "plcHide", "rSpRule", "cGpRule", "rSp", "cSp", "cGp", "mcs"),
    "naryPr": ("chr", "limLoc", "grow", "subHide", "supHide"),
    "phantPr": ("show", "zeroWid", "zeroAsc", "zeroDesc", "transp"), "radPr": ("degHide",), "sPrePr": (),
    "sSubPr": (), "sSubSupPr": ("alnScr",), "sSupPr": (), "rPr": ("lit", "nor", "scr", "sty", "brk", "aln"),
}  # fmt: skip
"""The order of properties."""


_SPACE_MARK = re.compile(r"""<mspace\b[^>]*\bwidth=["'](-?\d*\.?\d+)em["'][^>]*?(?:/>|>\s*</mspace>)""")
_LIMITS = frozenset(
    {"lim", "max", "min", "sup", "inf", "limsup", "liminf", "argmax", "argmin", "arg max", "arg min"}
)
_THIN = ((0.167, "\u2009"), (0.222, "\u2005"), (0.278, "\u2004"), (0.5, "\u2002"), (1.0, "\u2003"))


class MathError(Exception):
    """A formula that the converters cannot read."""


def omml(formula: Formula) -> str:
    """The ``m:oMath`` element of a formula.

    Raises:
        MathError: the formula cannot be converted.
    """
    return _omml(formula.tex, formula.mathml, formula.display)


@lru_cache(maxsize=512)
def _omml(tex: str, mathml: str, display: bool) -> str:
    if len(tex) + len(mathml) > _MAX_CHARS or not (tex or mathml).strip():
        raise MathError("empty or too long")
    try:
        import latex2mathml.converter  # noqa: PLC0415 - most documents have no formula
        import mathml_to_omml  # noqa: PLC0415

        source = mathml or latex2mathml.converter.convert(known_tex(tex), display="block" if display else "inline")
        source = escaped(_SPACE_MARK.sub(_spaces, source))
        converted = mathml_to_omml.convert(source)
        root = etree.fromstring(f'<x xmlns:m="{MATH}" xmlns:w="{_WORD}">{converted}</x>', _parser())
    except Exception as exc:
        raise MathError(str(exc) or type(exc).__name__) from exc
    found = root.find(f".//{_M}oMath")
    if found is None or not "".join(found.itertext()).strip():
        raise MathError("nothing came of it")
    result = etree.Element(f"{_M}oMath", nsmap={"m": MATH, "w": _WORD})
    _fill(result, found, 0)
    if ALIGNED.search(tex):
        _align(result)
    mark_structures(result)
    text = etree.tostring(result, encoding="unicode")
    return re.sub(r' xmlns:[mw]="[^"]+"', "", text)


def _align(root: etree._Element) -> None:
    """Columns of aligned equations: right and left of their sign."""
    for matrix in root.iterchildren(f"{_M}m"):
        row = matrix.find(f"{_M}mr")
        columns = etree.SubElement(matrix.find(f"{_M}mPr"), f"{_M}mcs")
        for number in range(len(row) if row is not None else 1):
            properties = etree.SubElement(etree.SubElement(columns, f"{_M}mc"), f"{_M}mcPr")
            etree.SubElement(properties, f"{_M}count").set(f"{_M}val", "1")
            etree.SubElement(properties, f"{_M}mcJc").set(f"{_M}val", "left" if number % 2 else "right")


def _spaces(found: re.Match[str]) -> str:
    """Text in place of ``mspace``, which the converter drops."""
    width = float(found[1])
    if width <= 0:
        return ""
    if width >= 1:
        return f"<mtext>{chr(0x2003) * min(round(width), 20)}</mtext>"
    best = min(_THIN, key=lambda space: abs(space[0] - width))
    return f"<mtext>{best[1]}</mtext>"


def _parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True)


def _name(element: etree._Element) -> str:
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def _fill(target: etree._Element, source: etree._Element, depth: int) -> None:
    """Puts what an argument holds into another, each structure repaired."""
    if depth > _MAX_DEPTH:
        raise MathError("nested too deep")
    for child in source:
        name = _name(child)
        if name == "sSub" and _is_limit(child):
            name = "limLow"
            child.find(f"{_M}sub").tag = f"{_M}lim"
        if name == "r":
            _run(target, child)
        elif name == "box" and child.find(f"{_M}boxPr") is None:  # a box without properties only groups
            for inner in child:
                _fill(target, inner, depth + 1)
        elif name in _SHAPES:
            _structure(target, child, name, depth)
        elif name and not name.endswith("Pr"):
            _fill(target, child, depth + 1)
        if name not in {"r", ""} and (child.tail or "").strip():
            _text(target, child.tail or "")


def _is_limit(element: etree._Element) -> bool:
    word = element.find(f"{_M}e")
    return word is not None and element.find(f"{_M}sub") is not None and "".join(word.itertext()).strip() in _LIMITS


def _run(target: etree._Element, source: etree._Element) -> None:
    text = "".join(source.itertext())
    if not text:
        return
    run = etree.SubElement(target, f"{_M}r")
    properties = source.find(f"{_M}rPr")
    if properties is not None:
        _properties(run, properties, "rPr")
    _letters(run, text)


def _text(target: etree._Element, text: str) -> None:
    _letters(etree.SubElement(target, f"{_M}r"), text)


def _letters(run: etree._Element, text: str) -> None:
    look = etree.SubElement(run, f"{_W}rPr")
    fonts = etree.SubElement(look, f"{_W}rFonts")
    fonts.set(f"{_W}ascii", "Cambria Math")
    fonts.set(f"{_W}hAnsi", "Cambria Math")
    shown = etree.SubElement(run, f"{_M}t")
    shown.text = text.replace("~", "\u223c")  # the letter of a keyboard is a space to other readers
    if text != text.strip():
        shown.set(_SPACE, "preserve")


def _properties(target: etree._Element, source: etree._Element, name: str) -> etree._Element:
    result = etree.SubElement(target, f"{_M}{name}")
    for wanted in _PROPERTIES.get(name, ()):
        found = source.find(f"{_M}{wanted}")
        if found is not None:
            result.append(_copied(found))
    if name == "rPr" and result.find(f"{_M}nor") is not None:  # normal text has neither script nor style
        for other in ("scr", "sty"):
            for extra in result.findall(f"{_M}{other}"):
                result.remove(extra)
    return result


def _copied(element: etree._Element) -> etree._Element:
    copy = etree.Element(element.tag)
    copy.attrib.update(element.attrib)
    copy.extend([_copied(child) for child in element])
    return copy


def _structure(target: etree._Element, source: etree._Element, name: str, depth: int) -> None:
    result = etree.SubElement(target, f"{_M}{name}")
    given = source.find(f"{_M}{name}Pr")
    properties = _properties(result, given if given is not None else source, f"{name}Pr")
    missing = []
    for wanted in _SHAPES[name]:
        found = [child for child in source if _name(child) == wanted.rstrip("+")]
        for part in found if wanted.endswith("+") else found[:1]:
            inner = etree.SubElement(result, part.tag)
            if wanted == "mr+":
                for cell in part:
                    _fill(etree.SubElement(inner, f"{_M}e"), cell, depth + 1)
            else:
                _fill(inner, part, depth + 1)
        if not found or not ("".join(found[0].itertext()).strip() or len(found[0])):
            missing.append(wanted)
        if not found:
            etree.SubElement(result, f"{_M}{wanted.rstrip('+')}")
    _hide(properties, name, missing)


def _hide(properties: etree._Element, name: str, missing: list[str]) -> None:
    """Hides arguments that are missing, or Word draws empty boxes."""
    hidden = {("rad", "deg"): "degHide", ("nary", "sub"): "subHide", ("nary", "sup"): "supHide"}
    for wanted in missing:
        mark = hidden.get((name, wanted))
        if mark and properties.find(f"{_M}{mark}") is None:
            element = etree.SubElement(properties, f"{_M}{mark}")
            element.set(f"{_M}val", "1")
    order = _PROPERTIES[f"{name}Pr"]
    properties[:] = sorted(properties, key=lambda element: order.index(_name(element)))
