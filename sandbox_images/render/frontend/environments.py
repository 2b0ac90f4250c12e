r"""Formulas in an environment of LaTeX without dollars around it: ``\begin{align} … \end{align}``."""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

LINES_MAX = 100
"""An environment that does not end within so many lines is text."""
_NAMES = (
    "equation|displaymath|multline|gather|align|alignat|flalign|eqnarray|aligned|gathered|split|cases|"
    "[pbBvV]?matrix|array"
)
_BEGIN = re.compile(rf"\\begin\{{((?:{_NAMES})\*?)\}}")
WHOLE = rf"(?P<whole>\\begin\{{(?P<name>(?:{_NAMES})\*?)\}}(?:(?!\\begin\{{(?P=name)\}}).){{0,4000}}?\\end\{{(?P=name)\}})"
"""The pattern of an environment within other text; a dot has to match line ends."""
_NUMBERING = re.compile(r"\\label\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])")
_TAG = re.compile(r"\\tag\*?\{([^{}]*)\}")
_OUTER = re.compile(r"\\begin\{(equation|displaymath)(\*?)\}(.*)\\end\{\1\2\}", re.DOTALL)
_SIMILAR = {"multline": "gather", "flalign": "align"}
_RENAMED = re.compile(r"\\(begin|end)\{(multline|flalign)(?=\*?\})")


def environments_plugin(parser: MarkdownIt) -> None:
    """Read environments as formulas that stand on lines of their own."""
    parser.block.ruler.before(
        "blockquote", "environment", _environment, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def tex_of(environment: str) -> str:
    """The TeX of an environment as the converters know it: without its numbers, and those of one formula opened."""
    tex = _NUMBERING.sub("", _TAG.sub(r"\\qquad(\\text{\1})", environment)).strip()
    outer = _OUTER.fullmatch(tex)
    if outer:
        return outer[3].strip()
    return _RENAMED.sub(lambda match: f"\\{match[1]}{{{_SIMILAR[match[2]]}", tex)


def _environment(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    first = state.bMarks[start] + state.tShift[start]
    match = _BEGIN.match(state.src, first, state.eMarks[start])
    if match is None or state.is_code_block(start):
        return False
    closing = f"\\end{{{match[1]}}}"
    for line in range(start, min(end, start + LINES_MAX)):
        begin = state.bMarks[line] + state.tShift[line]
        if begin < state.eMarks[line] and state.sCount[line] < state.blkIndent:
            return False
        text, found, rest = state.src[begin : state.eMarks[line]].partition(closing)
        if not found:
            continue
        if rest.strip() not in {"", ".", ",", ";"}:
            return False
        if not silent:
            lines = state.getLines(start, line, state.sCount[start], keepLastLF=True) if line > start else ""
            token = state.push("math_block", "math", 0)
            token.block = True
            token.content = tex_of(f"{lines}{text}{closing}") + rest.strip()
            token.map = [start, line + 1]
        state.line = line + 1
        return True
    return False
