"""A program's text without what it does not run: comments, docstrings, prose, and the text that it only prints.

A path that stands there alone names no input, so its absence does not stop a run. Nor does any absence stop a
program that looks whether its files are there.
"""

import io
import tokenize
from collections import deque
from collections.abc import Callable, Iterable

# Not the standard library's: that of Python 3.11.2, which Debian 12 has, loses its place where a possessive group
# ends at a lookahead.
import regex as re

_CHARS_MAX = 256 * 1024  # of a program that is split into tokens
_PRINTERS = frozenset(
    {"print", "debug", "info", "warning", "error", "critical", "exception", "log", "exit", "SystemExit"}
)
_WRITERS = frozenset({("stdout", ".", "write"), ("stderr", ".", "write")})
_QUOTES = frozenset({"'", '"'})
_SKIPPED = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})
_F_STRING_TEXT = getattr(tokenize, "FSTRING_MIDDLE", -1)  # from Python 3.12 on an f-string is several tokens
_PATH = r"\bturn_[\w.-]+/(?:files|attachments)\b"
# A blank in front of a path within a literal or a here-document: the path is a word of a sentence.
_PROSE = re.compile(rf"\s[^\s'\"`]*{_PATH}.*", re.DOTALL)
_PROSE_LINE = re.compile(rf"(?:^|(?<=\s))[^\s'\"`(=]*{_PATH}[^\s]*", re.MULTILINE)
_LOOKS = {
    "python": re.compile(
        r"\b(?:l?exists|is_?file|is_?dir)\b|\bexcept\s*:|\bexcept\b[^:\n]{0,200}\b(?:Base)?(?:Exception|OSError|IOError|"
        r"FileNotFoundError)\b"
    ),
    "bash": re.compile(r"(?:\[|\btest)\s+(?:!\s+)?-[defrs]\s"),
    "node": re.compile(r"\b(?:existsSync|accessSync|access|statSync|stat)\(|\bcatch\b"),
}
_Span = tuple[tuple[int, int], tuple[int, int]]

_NUMBER_SIGN_LINE = re.compile(r"^[ \t]*#.*", re.MULTILINE)
_SLASHES_LINE = re.compile(r"^[ \t]*//.*", re.MULTILINE)
_HERE_DOCUMENT = re.compile(r"(?<!<)<<-?[ \t]*(?:'([^'\n]{1,100})'|\"([^\"\n]{1,100})\"|\\?(\w{1,100}))")
_PRINTED_DOCUMENT = re.compile(r"[ \t]*cat[ \t]*<<[^|;&<>]*")
_SHELL = re.compile(
    r"""
    (?P<unrun>
        (?:(?<=[\s;&|()])|^)\#[^\n]*               # a number sign inside of a word begins no comment
        | (?:^|(?<=[;&|({])|(?<=\bthen)|(?<=\belse)|(?<=\bdo))[ \t]*+(?:echo|printf)(?=[ \t])
          (?:[ \t]++(?!\#) | [^\s'"\\;&|<>$`()\#]++ | \# | \\. | \$(?!\() | '[^']*+'
             | "(?:\\.|[^"\\`$]|\$(?!\())*+")*+
          [ \t]*+(?:>&2[ \t]*+)?(?=\n|\Z|;|&&|\|\||\#)
    )
    | \\.
    | \$'(?:\\.|[^'\\])*+'
    | '[^']*'
    | "(?:\\.|[^"\\])*+"
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_SCRIPT = re.compile(
    r"""
    (?P<unrun>
        //[^\n]*
        | /\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z)
        | \bconsole\.\w{1,20}\(
          (?:[^'"`()]++ | '(?:\\.|[^'\\\n])*+' | "(?:\\.|[^"\\\n])*+"
             | `(?:\\.|[^`\\$]|\$(?!\{)|\$\{[\w.]*+\})*+`)*+
          \)
    )
    | '(?:\\.|[^'\\\n])*+'?                                 # one that is not closed counts too
    | "(?:\\.|[^"\\\n])*+"?
    | `(?:\\.|[^`\\])*+`?
    | (?:^|[=(,:;!&|?{}\[+*%<>~^-]|\breturn\b)[ \t]*+/(?![/*])             # a regular expression
      (?:\\[^\n] | \[(?:\\[^\n]|[^\]\\\n]){0,40}+\] | [^/\\\[\n]){1,60}+/
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


def runnable_text(code: str, language: str) -> str:
    """The program with its comments, docstrings and printed text blanked out.

    Of a program that does not parse, or that is long, whole lines of comment alone are.

    Args:
        code: the program.
        language: ``python``, ``bash`` or ``node``; the text of any other language comes back whole.
    """
    strip = _STRIPPERS.get(language)
    if strip is None:
        return code
    if len(code) > _CHARS_MAX:
        return (_SLASHES_LINE if language == "node" else _NUMBER_SIGN_LINE).sub("", code)
    return strip(code)


def looks_for_files(text: str, language: str) -> bool:
    """Whether a program, as `runnable_text` gives it, asks if files are there, or goes on if one is not."""
    form = _LOOKS.get(language)
    return form is not None and form.search(text) is not None


def _bash(code: str) -> str:
    script, documents = _split_script(_NUMBER_SIGN_LINE.sub("", code).splitlines(keepends=True))
    return _without_matches(_SHELL, script) + documents


def _split_script(lines: list[str]) -> tuple[str, str]:
    """The lines of a script, and its here-documents but those that it only prints."""
    last = {line.strip(): at for at, line in enumerate(lines)}
    script, documents, ends = [], [], deque[str]()
    is_printed = False
    for at, line in enumerate(lines):
        if ends:
            if line.strip() == ends[0]:
                ends.popleft()
            elif "$(" in line or "`" in line:
                documents.append(line)
            elif not is_printed:
                documents.append(_PROSE_LINE.sub("", line))
            continue
        script.append(line)
        begun = ("".join(found.groups("")) for found in _HERE_DOCUMENT.finditer(line))
        ends.extend(end for end in begun if last.get(end, 0) > at)
        is_printed = _PRINTED_DOCUMENT.fullmatch(line.rstrip()) is not None
    return "".join(script), "".join(documents)


def _node(code: str) -> str:
    return _without_matches(_SCRIPT, _SLASHES_LINE.sub("", code), _PROSE)


def _without_matches(form: re.Pattern[str], code: str, prose: re.Pattern[str] | None = None) -> str:
    def rest(found: re.Match[str]) -> str:
        if found["unrun"] is not None:
            return ""
        return found[0] if prose is None or found[0][:1] not in _QUOTES else prose.sub("", found[0])

    return form.sub(rest, code)


def _python(code: str) -> str:
    tokens, parses = _tokens(code)
    text = _blank_spans(code, _unrun_spans(tokens))
    return text if parses else _NUMBER_SIGN_LINE.sub("", text)


def _tokens(code: str) -> tuple[list[tokenize.TokenInfo], bool]:
    """The tokens up to the first error, and whether there is none."""
    tokens: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type == tokenize.ERRORTOKEN:
                return tokens, False
            tokens.append(token)
    except (SyntaxError, tokenize.TokenError, ValueError):
        return tokens, False
    return tokens, True


def _unrun_spans(tokens: list[tokenize.TokenInfo]) -> Iterable[_Span]:
    starts_statement = True
    printing = 0  # how deep the parentheses of a call that prints are nested
    for at, token in enumerate(tokens):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end
        if token.type in _SKIPPED:
            continue
        if token.type == tokenize.OP and token.string in "([{":
            is_printer = printing == 0 and token.string == "(" and _prints(tokens, at)
            printing += 1 if printing or is_printer else 0
        elif token.type == tokenize.OP and token.string in ")]}":
            printing = max(0, printing - 1)
        elif _is_text(token) and (printing == 1 or (starts_statement and _ends_statement(tokens, at))):
            yield from _text_spans(token)
        elif _is_text(token) and (found := _PROSE.search(token.string)) is not None:
            yield _place(token, found.start()), token.end
        starts_statement = token.type == tokenize.NEWLINE


def _place(token: tokenize.TokenInfo, at: int) -> tuple[int, int]:
    """The row and column of a place within a token."""
    before = token.string[:at]
    row, column = token.start
    above = before.count("\n")
    return row + above, (column + at if above == 0 else at - before.rindex("\n") - 1)


def _prints(tokens: list[tokenize.TokenInfo], at: int) -> bool:
    """Whether the parenthesis at a place is that of a call that prints."""
    names = tuple(token.string for token in tokens[max(0, at - 3) : at])
    return names in _WRITERS or names[-2:-1] == ("raise",) or (names[-1:] != () and names[-1] in _PRINTERS)


def _is_text(token: tokenize.TokenInfo) -> bool:
    return token.type in {tokenize.STRING, _F_STRING_TEXT}


def _text_spans(token: tokenize.TokenInfo) -> Iterable[_Span]:
    """Where a token is text as it stands: of an f-string, which 3.11 gives as one token, not what it computes."""
    prefix = token.string[:2].partition("'")[0].partition('"')[0]
    if token.type != tokenize.STRING or "f" not in prefix.lower():
        yield token.start, token.end
        return
    row, column = token.start
    depth, start = 0, token.start
    for character in token.string:
        if character == "{":
            if depth == 0:
                yield start, (row, column)
            depth += 1
        elif character == "}":
            depth = max(0, depth - 1)
            start = (row, column + 1) if depth == 0 else start
        row, column = (row + 1, 0) if character == "\n" else (row, column + 1)
    if depth == 0:
        yield start, (row, column)


def _ends_statement(tokens: list[tokenize.TokenInfo], at: int) -> bool:
    for number in range(at + 1, len(tokens)):
        if tokens[number].type not in _SKIPPED:
            return tokens[number].type in {tokenize.NEWLINE, tokenize.ENDMARKER}
    return True


def _blank_spans(code: str, spans: Iterable[_Span]) -> str:
    lines = list(io.StringIO(code))  # ended by line feeds alone, as for the tokens
    cuts: dict[int, list[tuple[int, int]]] = {}
    for (first, begin), (last, end) in spans:
        for number in range(first - 1, last):
            start = begin if number == first - 1 else 0
            stop = end if number == last - 1 else len(lines[number].rstrip("\r\n"))
            cuts.setdefault(number, []).append((start, stop))
    for number, of_line in cuts.items():
        line, copied = lines[number], 0
        pieces = []
        for start, stop in of_line:
            pieces += [line[copied:start], " " * (stop - start)]
            copied = stop
        lines[number] = "".join(pieces) + line[copied:]
    return "".join(lines)


_STRIPPERS: dict[str, Callable[[str], str]] = {
    "python": _python,
    "bash": _bash,
    "node": _node,
}
