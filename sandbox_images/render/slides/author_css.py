"""An author's rules made fit for slides: what is meant for a browser's window, and what the layout engine doesn't know."""

import re
from xml.etree.ElementTree import Element

import tinycss2
from render.frontend.element_tree import classes_of, parents_of, remove, text_of
from render.slides.canvas import slide_height, slide_width

_VIEWPORT = re.compile(r"(?<![\w#.-])(\d*\.?\d+)\s*(d|s|l)?(vw|vh|vmin|vmax)\b", re.IGNORECASE)
_BLOCK = re.compile(r"\{[^{}]*\}")
_PIXELS = re.compile(r"(?<![-\w])(width|height)\s*:\s*(\d{1,4}(?:\.\d+)?)(px|pt|in|cm|mm)\b", re.IGNORECASE)
_FIXED = re.compile(r"position\s*:\s*(fixed|sticky)", re.IGNORECASE)
_PAGE = re.compile(r"@page\b[^{}]*\{(?:[^{}]|\{[^{}]*\})*\}", re.IGNORECASE)
_RATIOS = (16 / 9, 16 / 10, 4 / 3)
_NARROWEST, _OFF = 700, 0.03
_NEARLY_ALL = 0.9
_PER_UNIT = {"px": 1.0, "pt": 4 / 3, "in": 96.0, "cm": 96 / 2.54, "mm": 9.6 / 2.54}
_RULE = re.compile(r"(?:(?<=[{}])|^)([^{}]*)(\{[^{}]*\})")
_PRELUDE = re.compile(r"(?:(?<=[{}])|^)([^{}]*)\{")
_BODY = re.compile(r"(?<![\w.#-])body(?![\w-])")
BODY_TAG = "pb-body"
"""The element that stands for a ``body`` that is a slide."""
_COLUMN_RULES = re.compile(r"(?<![-\w])(columns|column-count|column-width)\s*:[^;}]*", re.IGNORECASE)
_SHADOW = re.compile(
    r"(?<![-\w])box-shadow\s*+:\s*+([^;{}]{1,400}?)(?:\s{0,99}+(!important))?\s{0,99}+(?=[;}]|$)", re.IGNORECASE
)
_BEST = re.compile(r"(?<![-\w])(clamp|min|max)\(([^()]{1,200})\)", re.IGNORECASE)
_TERM = re.compile(r"([+-]?\s*\d*\.?\d+)(px|rem|pt)?")
_VARIABLE = re.compile(r"(--[\w-]+)\s*:\s*([^;{}]{1,300})")
_USE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_UNITS = {"px": 1.0, "rem": 16.0, "pt": 4 / 3, "": 1.0}


def design_width(css: str) -> float:
    """The width that an author designed slides for: that of the slides, unless a rule has their width and height."""
    for block in _BLOCK.findall(css):
        width = _slide_width(block)
        if width:
            return width
    return slide_width()


def _slide_width(block: str) -> int:
    """The width in pixels that a rule gives, if with its height it is that of a slide; else 0."""
    sizes = {name.lower(): float(value) * _PER_UNIT[unit.lower()] for name, value, unit in _PIXELS.findall(block)}
    width, height = sizes.get("width", 0.0), sizes.get("height", 0.0)
    fits = width >= _NARROWEST and height and any(abs(width / height - ratio) < _OFF for ratio in _RATIOS)
    return round(width) if fits else 0


def is_slide_body(css: str) -> bool:
    """Whether the rules make the page itself, ``body``, a slide."""
    for prelude, block in _RULE.findall(css):
        if any(selector.strip() == "body" for selector in prelude.split(",")) and _slide_width(block):
            return True
    return False


def sized_slides(body: Element, css: str) -> list[Element]:
    """The outermost elements that rules make as large as a slide, if nearly all words of the page are in them."""
    names = {
        part
        for prelude, block in _RULE.findall(css)
        if _slide_width(block)
        for selector in prelude.split(",")
        if (part := selector.strip().rpartition(" ")[2]).startswith((".", "#"))
    }
    found: list[Element] = []
    stack = list(reversed(body))
    while stack:
        element = stack.pop()
        own = {*(f".{name}" for name in classes_of(element)), f"#{element.get('id')}"}
        if names & own or _slide_width(f"{{{element.get('style') or ''}}}"):
            found.append(element)
        else:
            stack.extend(reversed(element))
    words = sum(len(text_of(element).split()) for element in found)
    return found if words and words >= len(text_of(body).split()) * _NEARLY_ALL else []


def of_body(css: str) -> str:
    """The rules with those of ``body`` made those of the element that stands for it."""
    return _PRELUDE.sub(lambda match: _BODY.sub(BODY_TAG, match[1]) + "{", css)


def tame(css: str, width: float, variables: dict[str, str] | None = None) -> str:
    """An author's rules with lengths of the window made pixels, and what makes sense in a browser only taken out.

    Args:
        css: a style sheet or a style attribute.
        width: the width that slides are designed for.
        variables: custom properties by name, for what has to be known before layout.
    """
    height = width * slide_height() / slide_width()
    units = {"vw": width / 100, "vh": height / 100, "vmin": height / 100, "vmax": width / 100}
    known = variables or {}

    def pixels(match: re.Match[str]) -> str:
        return f"{float(match[1]) * units[match[3].lower()]:.2f}px"

    def shadow(match: re.Match[str]) -> str:
        value = _USE.sub(lambda use: known.get(use[1], use[2] or ""), match[1])
        value = _USE.sub(lambda use: known.get(use[1], use[2] or ""), value).translate(_UNQUOTED)
        return f'bookmark-label:"{value}"{match[2] or ""}'

    css = _without_drop_caps(_PAGE.sub(" ", css))
    css = _FIXED.sub("position:absolute", css)
    css = _COLUMN_RULES.sub("--pb-unused:0", css)
    css = _VIEWPORT.sub(pixels, css)
    css = _BEST.sub(_best, css)
    return _SHADOW.sub(shadow, css)


_UNQUOTED = str.maketrans({'"': None, "\\": None, "\n": " "})


def _without_drop_caps(css: str) -> str:
    """The rules without those of first letters, which the engine may fail on and slides have no counterpart of."""
    if "first-letter" not in css.lower():
        return css
    rest = []
    for part in css.split("}"):
        before, brace, _ = part.rpartition("{")
        start = max(before.rfind("{"), before.rfind(";")) + 1
        drop = bool(brace) and "first-letter" in before[start:].lower()
        rest.append(before[:start] if drop else part + "}")
    return "".join(rest).removesuffix("}")


def rules_of(css: str) -> list[str]:
    """The top-level rules of a style sheet, each as text."""
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return [tinycss2.serialize([rule]) for rule in rules if rule.type != "error"]


def _best(match: re.Match[str]) -> str:
    """The length that ``clamp()``, ``min()`` or ``max()`` comes to; unchanged where only layout knows it."""
    values = [_length(part) for part in match[2].split(",")]
    known = [value for value in values if value is not None]
    if match[1].lower() != "clamp":
        return f"{(min if match[1].lower() == 'min' else max)(known):.2f}px" if known else match[0]
    if len(values) != 3 or not known:  # noqa: PLR2004 - least, wanted, most
        return match[0]
    least, wanted, most = values
    value = wanted if wanted is not None else most if most is not None else least
    value = min(value or 0.0, most) if most is not None else value
    return f"{max(value or 0.0, least or 0.0):.2f}px"


def _length(text: str) -> float | None:
    """A sum of lengths in pixels; None if it has terms that depend on something else."""
    terms = list(_TERM.finditer(text))
    if not terms or _TERM.sub("", text).strip(" +"):
        return None
    return sum(float(term[1].replace(" ", "")) * _UNITS[term[2] or ""] for term in terms)


def author_rules(tree: Element) -> tuple[str, float]:
    """The rules of a document's ``style`` elements, fit for slides, and the width they're designed for.

    Style attributes are tamed in place.
    """
    css = "\n".join(element.text or "" for element in tree.iter("style") if not element.get("data-pb"))
    inline = "".join(f"{{{element.get('style')}}}" for element in tree.iter() if element.get("style"))
    width = design_width(css + inline)
    variables = dict(_VARIABLE.findall(css))
    parents = parents_of(tree)
    for element in [item for item in tree.iter("style") if not item.get("data-pb") and item in parents]:
        remove(parents[element], element)
    for element in tree.iter():
        style = element.get("style")
        if style:
            element.set("style", tame(style, width, variables))
    return tame(css, width, variables), width
