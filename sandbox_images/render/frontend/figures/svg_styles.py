"""Writes the style sheets of an SVG into its elements: readers of office files draw SVG, and know little of CSS."""

import xml.etree.ElementTree as ET

import cssselect2
import tinycss2
from render.frontend.element_tree import SVG, parents_of

RULES_MAX = 500
_ROWS = frozenset({"fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "opacity",
                   "font-family", "font-size", "font-weight", "font-style", "text-anchor", "color", "visibility",
                   "display", "stroke-linecap", "stroke-linejoin", "dominant-baseline"})  # fmt: skip
"""Properties that SVG has as attributes."""


def inline_styles(svg: str) -> str:
    """The drawing with the declarations of its ``style`` elements as attributes of what they are about."""
    ET.register_namespace("", SVG.strip("{}"))
    ET.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ET.fromstring(svg)  # noqa: S314 - drawn by our own libraries
    matcher = cssselect2.Matcher()
    parents = parents_of(root)
    for style in list(root.iter(f"{SVG}style")):
        for rule in tinycss2.parse_stylesheet(style.text or "", skip_comments=True, skip_whitespace=True)[
            :RULES_MAX
        ]:
            if rule.type == "qualified-rule":
                _add(matcher, rule)
        parents[style].remove(style)
    for wrapped in list(cssselect2.ElementWrapper.from_xml_root(root).iter_subtree()):
        element = wrapped.etree_element
        for *_, rows in sorted(matcher.match(wrapped), key=lambda found: found[:2]):
            for name, value in rows:
                element.set(name, value)
    return ET.tostring(root, encoding="unicode")


def _add(matcher: cssselect2.Matcher, rule: tinycss2.ast.QualifiedRule) -> None:
    declarations = tinycss2.parse_declaration_list(rule.content, skip_comments=True, skip_whitespace=True)
    rows = [
        (item.lower_name, tinycss2.serialize(item.value).strip())
        for item in declarations
        if item.type == "declaration" and item.lower_name in _ROWS
    ]
    try:
        selectors = cssselect2.compile_selector_list(rule.prelude)
    except cssselect2.SelectorError:
        return
    for selector in selectors:
        if selector.pseudo_element is None:
            matcher.add_selector(selector, rows)
