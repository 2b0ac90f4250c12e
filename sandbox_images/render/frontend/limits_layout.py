"""Bounds boxes within boxes whose layout is tried several times: flex, grid, and columns.

WeasyPrint lays out what such a box holds about three times (seven for columns), so each level multiplies the time:
eight flex boxes within each other take seconds, thirty take years. Past a bound the inner ones become plain blocks.
"""

import re
from itertools import islice
from xml.etree.ElementTree import Element

import cssselect2
import tinycss2
from render.frontend.element_tree import name_of
from render.model import Document

COST_MAX = 250.0
"""How often the innermost content may be laid out; pages as people write them stay below 30."""
SLIDES_COST_MAX = 40.0
"""The same for slides, each of which is laid out several times until it fits; those of few elements are as pages."""
SMALL_MAX = 40
TABLE_COST = 3.0
"""A table asks what it holds for its widths anew each time that it is laid out."""
RULES_MAX = 5_000
_COSTS = (
    (re.compile(r"(?:^|;)\s*display\s*:[^;]*flex", re.IGNORECASE), 3.0),
    (
        re.compile(
            r"(?:^|;)\s*(?:columns|column-count|column-width)\s*:\s*(?!auto|none|initial|unset|1\s*(?:;|$))",
            re.IGNORECASE,
        ),
        7.0,
    ),
    (re.compile(r"(?:^|;)\s*display\s*:[^;]*grid", re.IGNORECASE), 2.0),
)
_COLUMN = re.compile(r"flex-(?:direction|flow)\s*:[^;]*column", re.IGNORECASE)
_ANY = re.compile(r"flex|grid|column", re.IGNORECASE)
_PLAIN = "display:block !important;columns:auto !important"


def bound_nested_layouts(document: Document) -> None:
    """Makes plain blocks of the boxes of a document that are nested too deep to be laid out in time."""
    sheets = "".join(element.text or "" for element in document.tree.iter("style"))
    styled = any(_ANY.search(f"{item.get('style')} {item.get('class')}") for item in document.tree.iter())
    if not styled and not _ANY.search(sheets):
        return
    matched = _costs_by_rules(document.tree, sheets) if _ANY.search(sheets) else {}
    most = SLIDES_COST_MAX if document.request.output == "pptx" else COST_MAX
    stack = [(document.tree, 1.0)]
    while stack:
        element, cost = stack.pop()
        own = max(_cost(element.get("style") or ""), matched.get(element, 1.0), _cost_of_marks(element))
        if own > 1 and cost * own > most and not (cost * own <= COST_MAX and _is_small(element)):
            element.set("style", f"{element.get('style') or ''};{_PLAIN}")
            document.warn(
                "nesting_flattened", "Flex, grid or column boxes nested too deep were laid out as plain blocks."
            )
        elif element.tag == "table" and cost > 1:
            cost *= TABLE_COST
        else:
            cost *= own
        stack.extend((child, cost) for child in element if name_of(child))


def _is_small(element: Element) -> bool:
    """Whether so little is in it that it may be laid out often."""
    return sum(1 for _ in islice(element.iter(), SMALL_MAX + 1)) <= SMALL_MAX


def _cost(declarations: str) -> float:
    """How many times a box with these declarations lays out what it holds."""
    cost = next((cost for pattern, cost in _COSTS if pattern.search(declarations)), 1.0)
    return cost * 1.4 if cost == 3.0 and _COLUMN.search(declarations) else cost  # noqa: PLR2004 - the flex row of the table


def _cost_of_marks(element: Element) -> float:
    return 3.0 if "pb-columns" in (element.get("class") or "") else 1.0


def _costs_by_rules(tree: Element, css: str) -> dict[Element, float]:
    """The costs that style sheets give to elements; whichever rule wins, the dearest one is counted."""
    matcher = cssselect2.Matcher()
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    count = 0
    while rules and count < RULES_MAX:
        rule = rules.pop()
        count += 1
        if (
            rule.type == "at-rule"
            and rule.content
            and rule.lower_at_keyword in {"media", "supports", "layer", "container"}
        ):
            rules.extend(tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True))
        if rule.type != "qualified-rule":
            continue
        cost = _cost(tinycss2.serialize(rule.content).replace("\n", " "))
        if cost > 1:
            try:
                selectors = cssselect2.compile_selector_list(rule.prelude)
            except cssselect2.SelectorError:
                continue
            for selector in selectors:
                matcher.add_selector(selector, cost)
    found: dict[Element, float] = {}
    if count:
        for element in cssselect2.ElementWrapper.from_html_root(tree, content_language=None).iter_subtree():
            costs = [match[3] for match in matcher.match(element) if match[2] is None]
            if costs:
                found[element.etree_element] = max(costs)
    return found
