"""Expressions of version 1, in a syntax like JavaScript's, as proposals in Python."""

import re

from proofbox.service.gateway.compute.expression import (
    EXPRESSION_CHARACTERS_MAX,
    ExpressionError,
    parse_expression,
)
from proofbox.service.gateway.templates import TemplateError

_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None"}
_WORD = re.compile(r"(?<![.\w])(true|false|null|undefined)\b(?!\s*\()")
_MATH = re.compile(r"\bMath\.(round|min|max|abs)\b")
_MATH_REST = re.compile(r"\bMath\.")
_OPERATORS = ((r"!==", "!="), (r"===", "=="), (r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "))
_MARK = re.compile("\0([0-9]+)\0")
_OPEN, _CLOSE = "([{", ")]}"
_DEPTH_MAX = 32


def is_python(expression: str) -> bool:
    """Whether an expression is one of version 2, with names that it can have."""
    try:
        parsed = parse_expression(expression)
    except (ExpressionError, TemplateError):
        return False
    return not parsed.names & _WORDS.keys() and "Math" not in parsed.names


def propose_python(expression: str) -> str | None:
    """An expression in Python that may mean the same; None if there is no simple one."""
    if len(expression) > EXPRESSION_CHARACTERS_MAX or "\0" in expression:
        return None
    texts: list[str] = []

    def keep(found: re.Match[str]) -> str:
        texts.append(found[0])
        return f"\0{len(texts) - 1}\0"

    bare = _TEXT.sub(keep, expression)
    for pattern, word in _OPERATORS:
        bare = re.sub(pattern, word, bare)
    bare = _MATH_REST.sub("math.", _MATH.sub(r"\1", _WORD.sub(lambda found: _WORDS[found[1]], bare)))
    try:
        bare = _convert(bare, 0)
    except ValueError:
        return None
    bare = re.sub(r"\s+", " ", bare).strip()
    proposal = _MARK.sub(lambda found: texts[int(found[1])], bare)
    return proposal if is_python(proposal) else None


def _convert(text: str, depth: int) -> str:
    """A text with ``b if a else c`` in place of ``a ? b : c``, within brackets too.

    Raises:
        ValueError: brackets or choices do not pair, or are nested too deep.
    """
    if depth > _DEPTH_MAX:
        raise ValueError("nested too deep")
    made: list[str] = []
    at = 0
    while at < len(text):
        if text[at] in _OPEN:
            end = _closing(text, at)
            inner = ",".join(_convert(part, depth + 1) for part in _split(text[at + 1 : end]))
            made.append(f"{text[at]}{inner}{text[end]}")
            at = end + 1
        else:
            made.append(text[at])
            at += 1
    return _choose("".join(made), 0)


def _choose(text: str, depth: int) -> str:
    """A text whose brackets are converted, with its own choices."""
    question = _find(text, "?")
    if question < 0:
        return text
    if depth > _DEPTH_MAX:
        raise ValueError("nested too deep")
    colon = _matching_colon(text, question)
    condition = text[:question].strip()
    chosen, other = (_choose(part, depth + 1).strip() for part in (text[question + 1 : colon], text[colon + 1 :]))
    if _find(text[question + 1 : colon], "?") >= 0:
        chosen = f"({chosen})"
    return f"{chosen} if {condition} else {other}"


def _closing(text: str, at: int) -> int:
    depth = 0
    for index in range(at, len(text)):
        depth += (text[index] in _OPEN) - (text[index] in _CLOSE)
        if depth == 0:
            return index
    raise ValueError("a bracket is not closed")


def _split(text: str) -> list[str]:
    """The parts between the commas outside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _find(text: str, wanted: str) -> int:
    """The first place of a character outside of brackets; -1 if there is none."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == wanted and depth == 0:
            return index
    return -1


def _matching_colon(text: str, question: int) -> int:
    depth, choices = 0, 0
    for index in range(question + 1, len(text)):
        character = text[index]
        depth += (character in _OPEN) - (character in _CLOSE)
        if depth:
            continue
        if character == "?":
            choices += 1
        elif character == ":":
            if choices == 0:
                return index
            choices -= 1
    raise ValueError("a ? has no :")
