"""At-rules of a style sheet, found among its tokens: an address may hold semicolons, and a comment any word."""

from collections.abc import Callable
from typing import Any

import tinycss2

Judge = Callable[[str, str], bool]
"""Whether a rule stays, by its keyword in small letters and the text that follows the keyword."""


def without_at_rules(css: str, keywords: frozenset[str], stays: Judge) -> str:
    """Take at-rules out of a style sheet, at any depth; the rest is as it was.

    Args:
        css: the style sheet.
        keywords: those of the rules to judge, in small letters, without ``@``.
        stays: decides on each rule.
    """
    lowered = css.lower()
    if "\\" not in css and not any(f"@{keyword}" in lowered for keyword in keywords):
        return css
    rest = _remaining(tinycss2.parse_component_value_list(css), keywords, stays)
    text: str = tinycss2.serialize(rest)
    return text


def _remaining(tokens: list[Any], keywords: frozenset[str], stays: Judge) -> list[Any]:
    result: list[Any] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.type == "at-keyword" and token.lower_value in keywords:
            end = _end(tokens, index + 1)
            if stays(token.lower_value, tinycss2.serialize(tokens[index + 1 : end])):
                result += tokens[index:end]
            index = end
            continue
        if token.type == "{} block":
            token.content[:] = _remaining(token.content, keywords, stays)
        result.append(token)
        index += 1
    return result


def _end(tokens: list[Any], start: int) -> int:
    """The place behind an at-rule whose prelude begins at ``start``."""
    for index in range(start, len(tokens)):
        if tokens[index].type == "{} block" or tokens[index] == ";":
            return index + 1
    return len(tokens)
