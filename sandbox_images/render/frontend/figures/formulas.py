"""Formulas: TeX and MathML, set as SVG by ziamath."""

import re
import xml.etree.ElementTree as ET
from functools import cache, lru_cache
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from render.frontend.element_tree import (
    LITERAL,
    MATHML,
    Pieces,
    body_of,
    classes_of,
    edit_texts,
    make,
    name_of,
    parents_of,
    replace,
)
from render.frontend.environments import WHOLE, tex_of
from render.frontend.figures.svg_image import picture_of
from render.limits import FORMULA_ROWS_MAX
from render.model import Document
from render.tex_symbols import escaped, known_tex

TEX_CHARACTERS_MAX = 4_000
FORMULAS_MAX = 2_000
"""Past this a document shows TeX."""
DIFFERENT_FORMULAS_MAX = 1_000
"""The same for formulas that are not the same as another: each takes some 5 ms to set."""
SIZE = 16.0
"""Size at which formulas are set, in px; the picture is scaled with the text around it."""
LINE_HEIGHT_MAX = 400.0
"""No line of a formula is higher, in px at `SIZE`."""
_STRETCHED = re.compile(r"\\(left|right)(?![A-Za-z])\s*(\\[A-Za-z]+|\\.|.)", re.DOTALL)
_CHECKED_CHARACTERS = 40
"""Shorter TeX nests no deeper than can be laid out."""
_ROWS = frozenset(
    {"mrow", "msqrt", "mstyle", "mpadded", "mphantom", "menclose", "mfenced", "semantics", "math", "mtd"}
)
_INLINE = re.compile(rf"\\\((.{{1,2000}}?)\\\)|\\\[(.{{1,4000}}?)\\\]|\$\$(.{{1,4000}}?)\$\$|{WHOLE}", re.DOTALL)


def set_formulas(document: Document) -> None:
    """Sets every formula of the tree; one that cannot be set stays as TeX, with a warning."""
    if document.request.source_format == "html":
        edit_texts(body_of(document.tree), LITERAL, _split)
    _take_mathml(document)
    _take_fences(document)
    marked = [element for element in document.tree.iter() if "pb-math" in classes_of(element)]
    different: set[str] = set()
    for number, element in enumerate(marked):
        different.add(element.get("data-tex") or element.get("data-mathml") or "")
        if number >= FORMULAS_MAX or len(different) > DIFFERENT_FORMULAS_MAX:
            document.warn("formula_limit", f"Only the first {number:,} formulas were set.")
            break
        _set(document, element)


def _set(document: Document, element: Element) -> None:
    tex, mathml = element.get("data-tex", ""), element.get("data-mathml", "")
    display = element.tag == "div" or element.get("data-display") == "true"
    colour = document.theme.colours["text"]
    try:
        if len(tex or mathml) > TEX_CHARACTERS_MAX * (1 if tex else 8):
            raise ValueError("too long")  # noqa: TRY301 - reported as any other failure to set it
        svg, width, height, descent = draw_mathml(mathml, colour) if mathml else draw(tex, display, colour)
    except Exception as exc:  # noqa: BLE001 - the two libraries fail with all kinds of errors on TeX they don't know
        message = str(exc) or type(exc).__name__
        document.warn("formula_failed", f"A formula could not be set: {(tex or 'MathML')[:120]} ({message[:120]})")
        element[:], element.text = [make("code", None, tex or "".join(element.itertext()))], None
        element.set("class", f"{element.get('class')} pb-math-failed")
        return
    style = f"width:{width / SIZE:.3f}em;height:{height / SIZE:.3f}em;vertical-align:{-descent / SIZE:.3f}em"
    element.text = None
    element[:] = [picture_of(svg, tex or "formula", style)]


@cache
def _zmath() -> Any:
    """The library that draws formulas: 12 MB and 0.1 s that most documents don't need."""
    import ziafont  # noqa: PLC0415
    from ziamath import zmath  # noqa: PLC0415

    ziafont.config.svg2 = False  # paths: office programs do not draw symbols that are used
    return zmath


@lru_cache(maxsize=512)
def draw(tex: str, display: bool, colour: str) -> tuple[str, float, float, float]:
    """The SVG of a formula in TeX, its width and height, and how far it reaches below the line, in px at 16 px."""
    tex = known_tex(tex)
    if len(tex) > _CHECKED_CHARACTERS:
        _bound_rows(ET.fromstring(escaped(convert(tex))))  # noqa: S314 - made here, without entities
    drawn = _drawn(tex, display, colour)
    if drawn[2] > LINE_HEIGHT_MAX * (1 + tex.count("\\\\")) and "\\left" in tex:
        # ziamath makes the brackets around a sum with only a lower limit as high as they get.
        plain = _STRETCHED.sub(lambda match: f"\\Big{match[1][0]}{match[2]}" if match[2] != "." else "", tex)
        drawn = _drawn(plain, display, colour)
    return drawn


def _drawn(tex: str, display: bool, colour: str) -> tuple[str, float, float, float]:
    if "&" not in tex:
        return _measured(_zmath().Latex(tex, size=SIZE, inline=not display), colour)
    from ziamath.tex import tex2mml  # noqa: PLC0415 - as `_zmath`

    return _measured(_zmath().Math(escaped(tex2mml(tex, inline=not display)), size=SIZE), colour)


def draw_mathml(mathml: str, colour: str) -> tuple[str, float, float, float]:
    """The same for MathML."""
    tree = ET.fromstring(mathml)  # noqa: S314 - made by us, without entities
    _bound_rows(tree)
    return _measured(_zmath().Math(tree, size=SIZE), colour)


def _bound_rows(math: Element) -> None:
    """Looks how deep rows are nested: the layout of each is tried twice.

    Raises:
        ValueError: deeper than `FORMULA_ROWS_MAX`.
    """
    stack = [(math, 0)]
    while stack:
        element, rows = stack.pop()
        rows += name_of(element).rpartition("}")[2] in _ROWS
        if rows > FORMULA_ROWS_MAX:
            raise ValueError(f"it is nested more than {FORMULA_ROWS_MAX} levels deep")
        stack.extend((child, rows) for child in element)


def _measured(formula: Any, colour: str) -> tuple[str, float, float, float]:
    svg: str = formula.svg().replace('"black"', f'"{colour}"')
    numbers = re.search(r'viewBox="(\S+) (\S+) (\S+) (\S+)"', svg)
    if numbers is None:
        raise ValueError("no picture")
    _, top, width, height = (float(number) for number in numbers.groups())
    if not 0 < width < 20_000 or not 0 < height < 20_000:  # noqa: PLR2004 - what no page holds is an error of the library
        raise ValueError("an impossible size")
    return svg, width, height, top + height


def _split(text: str, _parent: Element) -> Pieces | None:
    r"""``\(x\)``, ``\[x\]``, ``$$x$$`` and environments in HTML, as for MathJax."""
    if "\\(" not in text and "\\[" not in text and "$$" not in text and "\\begin{" not in text:
        return None
    pieces: Pieces = []
    end = 0
    for match in _INLINE.finditer(text):
        tex = tex_of(match["whole"]) if match["whole"] else (match[1] or match[2] or match[3]).strip()
        attributes = {"class": "pb-math", "data-tex": tex}
        if not match[1]:
            attributes["data-display"] = "true"
        pieces += [text[end : match.start()], make("span", attributes, tex)]
        end = match.end()
    return [*pieces, text[end:]] if pieces else None


def _take_mathml(document: Document) -> None:
    parents = parents_of(document.tree)
    for math in list(document.tree.iter(f"{MATHML}math")):
        tex = next(
            (a.text or "" for a in math.iter(f"{MATHML}annotation") if "tex" in (a.get("encoding") or "")), ""
        )
        attributes = {"class": "pb-math", "data-tex": tex.strip()}
        if not tex.strip():
            for part in math.iter():
                part.tag = name_of(part).removeprefix(MATHML)
            tail, math.tail = math.tail, None
            attributes["data-mathml"] = ET.tostring(math, encoding="unicode")
            math.tail = tail
        block = math.get("display") == "block"
        if block:
            attributes["data-display"] = "true"
        text = tex.strip() or " ".join("".join(math.itertext()).split())
        replace(parents[math], math, make("span", attributes, text))


def _take_fences(document: Document) -> None:
    """```` ```math ```` blocks."""
    parents = parents_of(document.tree)
    for block in list(document.tree.iter("pre")):
        code = block.find("code")
        if code is not None and {"language-math", "language-latex-math", "language-katex"} & set(classes_of(code)):
            tex = "".join(code.itertext()).strip()
            replace(parents[block], block, make("div", {"class": "pb-math", "data-tex": tex}, tex))
