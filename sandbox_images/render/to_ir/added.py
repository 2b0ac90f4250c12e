"""Text that a style sheet adds to an element: ``content`` of ``::before`` and ``::after``."""

from xml.etree.ElementTree import Element

import tinycss2

_QUOTES = {"open-quote": "\u201c", "close-quote": "\u201d"}
_NOTHING = frozenset({"normal", "none", "no-open-quote", "no-close-quote", "inherit", "initial", "unset"})


def added_text(content: str, element: Element) -> tuple[str, bool]:
    """The text of a ``content``, and whether that is all of it: counters and pictures have none here.

    Args:
        content: the value of the property.
        element: whose attributes it may name.
    """
    text, is_whole = "", True
    for value in tinycss2.parse_component_value_list(content, skip_comments=True):
        if value.type == "string":
            text += value.value
        elif value.type == "ident":
            text += _QUOTES.get(value.lower_value, "")
            is_whole = is_whole and (value.lower_value in _QUOTES or value.lower_value in _NOTHING)
        elif value.type == "function" and value.lower_name == "attr":
            names = [part.value for part in value.arguments if part.type == "ident"]
            text += element.get(names[0], "") if names else ""
        elif value == "/":
            break  # what follows is the alternative text
        elif value.type != "whitespace":
            is_whole = False
    return text, is_whole
