"""A program's text without what it does not run: comments, docstrings and the text that it only prints.

A path that stands there alone names no input, so its absence does not stop a run.
"""

import io
import re
import tokenize
from collections.abc import Callable, Iterable

_CHARS_MAX = 256 * 1024  # of a program that is split into tokens
_PRINTERS = frozenset({"print", "debug", "info", "warning", "error", "critical", "exception", "log"})
_SKIPPED = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})
_F_STRING_TEXT = getattr(tokenize, "FSTRING_MIDDLE", -1)  # from Python 3.12 on an f-string is several tokens
_Span = tuple[tuple[int, int], tuple[int, int]]

_SHELL = re.compile(
    r"""
    (?P<comment>(?:(?<=[\s;&|()])|^)\#[^\n]*)      # a number sign inside of a word begins no comment
    | \\.
    | '[^']*'
    | "(?:\\.|[^"\\])*"
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_SCRIPT = re.compile(
    r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
    | '(?:\\.|[^'\\\n])*'
    | "(?:\\.|[^"\\\n])*"
    | `(?:\\.|[^`\\])*`
    """,
    re.VERBOSE | re.DOTALL,
)


def runnable_text(code: str, language: str) -> str:
    """The program with its comments, docstrings and printed text blanked out; all of it where it does not parse.

    Args:
        code: the program.
        language: ``python``, ``bash`` or ``node``; the text of any other language comes back whole.
    """
    strip = _STRIPPERS.get(language)
    if strip is None or len(code) > _CHARS_MAX:
        return code
    return strip(code)


def _without_matches(form: re.Pattern[str]) -> Callable[[str], str]:
    return lambda code: form.sub(lambda found: "" if found["comment"] is not None else found[0], code)


def _python(code: str) -> str:
    try:
        spans = list(_unrun_spans(list(tokenize.generate_tokens(io.StringIO(code).readline))))
    except (SyntaxError, tokenize.TokenError, ValueError):
        return code
    return _blanked(code, spans)


def _unrun_spans(tokens: list[tokenize.TokenInfo]) -> Iterable[_Span]:
    starts_statement = True
    printing = 0  # how deep the parentheses of a call that prints are nested
    for at, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end
        if token.type in _SKIPPED:
            continue
        if token.type == tokenize.OP and token.string in "([{":
            is_printer = printing == 0 and token.string == "(" and at > 0 and tokens[at - 1].string in _PRINTERS
            printing += 1 if printing or is_printer else 0
        elif token.type == tokenize.OP and token.string in ")]}":
            printing = max(0, printing - 1)
        elif _is_text(token) and (printing == 1 or (starts_statement and _ends_statement(tokens, at))):
            yield token.start, token.end
        starts_statement = token.type == tokenize.NEWLINE


def _is_text(token: tokenize.TokenInfo) -> bool:
    """Whether a token is text as it stands: not an f-string that computes, which 3.11 gives as one token."""
    if token.type == tokenize.STRING:
        prefix = token.string[: min(token.string.find(quote) for quote in "'\"" if quote in token.string)]
        return "f" not in prefix.lower() or "(" not in token.string
    return token.type == _F_STRING_TEXT


def _ends_statement(tokens: list[tokenize.TokenInfo], at: int) -> bool:
    following = next((token for token in tokens[at + 1 :] if token.type not in _SKIPPED), None)
    return following is None or following.type in {tokenize.NEWLINE, tokenize.ENDMARKER}


def _blanked(code: str, spans: Iterable[_Span]) -> str:
    lines = list(io.StringIO(code))  # ended by line feeds alone, as for the tokens
    for (first, begin), (last, end) in spans:
        for number in range(first - 1, last):
            line = lines[number]
            start = begin if number == first - 1 else 0
            stop = end if number == last - 1 else len(line.rstrip("\r\n"))
            lines[number] = line[:start] + " " * (stop - start) + line[stop:]
    return "".join(lines)


_STRIPPERS: dict[str, Callable[[str], str]] = {
    "python": _python,
    "bash": _without_matches(_SHELL),
    "node": _without_matches(_SCRIPT),
}
