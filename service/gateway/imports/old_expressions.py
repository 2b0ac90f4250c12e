"""Expressions of version 1, in a syntax like JavaScript's, as proposals in Python."""

import re
from collections.abc import Iterator, Sequence

from proofbox.service.gateway.compute.expression import (
    EXPRESSION_CHARACTERS_MAX,
    ExpressionError,
    parse_expression,
)
from proofbox.service.gateway.templates import TemplateError

TEXT = re.compile(r"""'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?""", re.DOTALL)
"""A text, or the start of one that is not closed: no character is read twice."""
_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None"}
_WORD = re.compile(r"(?<![.\w])(true|false|null|undefined)\b(?!\s*\()")
_MATH = re.compile(r"\bMath\.(round|min|max|abs)\b")
_MATH_REST = re.compile(r"\bMath\.")
_OPERATORS = ((r"!==", "!="), (r"===", "=="), (r"&&", " and "), (r"\|\|", " or "), (r"!(?!=)", " not "))
_MARK = re.compile("\0([0-9]+)\0")
_PIECE = re.compile(r"[^()\[\]{},?:]+|.", re.DOTALL)
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

    bare = TEXT.sub(keep, expression)
    for pattern, word in _OPERATORS:
        bare = re.sub(pattern, word, bare)
    bare = _MATH_REST.sub("math.", _MATH.sub(r"\1", _WORD.sub(lambda found: _WORDS[found[1]], bare)))
    try:
        bare = _convert(bare)
    except ValueError:
        return None
    bare = re.sub(r"\s+", " ", bare).strip()
    proposal = _MARK.sub(lambda found: texts[int(found[1])], bare)
    return proposal if is_python(proposal) else None


def _convert(text: str) -> str:
    """A text with ``b if a else c`` in place of ``a ? b : c``, within brackets too; each character is read once.

    Raises:
        ValueError: brackets or choices do not pair, or are nested too deep.
    """
    # Of each open bracket and of the whole: its finished parts, and the pieces of the part that is being read.
    # What is in brackets is one piece of the part around them.
    levels: list[tuple[list[str], list[str]]] = [([], [])]
    for piece in _PIECE.findall(text):
        parts, pieces = levels[-1]
        if piece in _OPEN:
            pieces.append(piece)
            levels.append(([], []))
            if len(levels) > _DEPTH_MAX:
                raise ValueError("nested too deep")
        elif piece in _CLOSE:
            levels.pop()
            if not levels:
                raise ValueError("a bracket is not opened")
            levels[-1][1][-1] += ",".join([*parts, _choose(pieces)]) + piece
        elif piece == "," and len(levels) > 1:
            parts.append(_choose(pieces))
            pieces.clear()
        else:
            pieces.append(piece)
    if len(levels) > 1:
        raise ValueError("a bracket is not closed")
    return _choose(levels[0][1])


def _choose(pieces: Sequence[str]) -> str:
    """The text of one part, with its choices."""
    left = iter(pieces)
    text, end, _ = _read_choice(left, 0)
    rest = [*left]
    return text if end is None else "".join([text, end, *rest])


def _read_choice(left: Iterator[str], depth: int) -> tuple[str, str | None, bool]:
    """Read a value, which may be a choice, up to the ``:`` that it has no ``?`` for.

    Returns:
        The value; the ``:``, or None at the end; whether it is a choice.
    """
    if depth > _DEPTH_MAX:
        raise ValueError("nested too deep")
    made: list[str] = []
    for piece in left:
        if piece == ":":
            return "".join(made), piece, False
        if piece == "?":
            chosen, end, is_choice = _read_choice(left, depth + 1)
            if end is None:
                raise ValueError("a ? has no :")
            chosen = chosen.strip()
            other, end, _ = _read_choice(left, depth + 1)
            condition = "".join(made).strip()
            value = f"({chosen})" if is_choice else chosen
            return f"{value} if {condition} else {other.strip()}", end, True
        made.append(piece)
    return "".join(made), None, False
