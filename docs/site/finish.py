"""What the built pages get before they are packed, so that lines break where a reader expects it.

Short code, figures with their unit and numbers of decisions stay on one line. Columns of tables are as wide as
their texts need, so that a wide table scrolls instead of breaking every word.
"""

import html
import re

# A browser breaks code at its hyphens, and in a narrow cell anywhere. On a phone a line has 40 characters of code.
_WHOLE_CHARACTERS_MAX = 24
_SHORT_CODE = re.compile(rf"<code>(?=(?:[^<&\n]|&[#\w]+;){{1,{_WHOLE_CHARACTERS_MAX}}}</code>)")
# A column with so many characters in one of its cells gets the class.
_COLUMNS = ((150, "pb-long"), (48, "pb-text"), (24, "pb-words"))
_UNTOUCHED = re.compile(r"(<(?:pre|script|style|svg|title)\b.*?</(?:pre|script|style|svg|title)>)", re.DOTALL)
_TAG_OR_CODE = re.compile(r"(<code\b.*?</code>|<[^>]+>)", re.DOTALL)
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<t[hd]\b[^>]*>(.*?)</t[hd]>", re.DOTALL)
_UNITS = "%|ms|s|min|h|mm|px|kB|KB|MB|GB|TB|KiB|MiB|GiB|times|calls/s"
_NO_BREAK = re.compile(
    rf"(?<=\d) (?=(?:{_UNITS})(?![\w/]))|(?<=[≥≤]) (?=\d)|(?<=\d) (?=/ \d)|(?<=\d /) (?=\d)|(?<=\bADR) (?=\d)"
)


def finish(page: str) -> str:
    """The HTML of a built page with classes and spaces that decide where lines break."""
    parts = _UNTOUCHED.split(page)
    parts[::2] = [_finish_text(part) for part in parts[::2]]
    return _TABLE.sub(lambda table: _with_widths(table[0]), "".join(parts))


def _finish_text(part: str) -> str:
    pieces = _TAG_OR_CODE.split(_SHORT_CODE.sub('<code class="pb-whole">', part))
    pieces[::2] = [_NO_BREAK.sub("\N{NO-BREAK SPACE}", piece) for piece in pieces[::2]]
    return "".join(pieces)


def _with_widths(table: str) -> str:
    """A table with a class in the head of each column that needs some width."""
    rows = [_CELL.findall(row) for row in _ROW.findall(table)]
    longest = [max(map(_length, column)) for column in zip(*rows, strict=True)]
    names = [next((name for at_least, name in _COLUMNS if length >= at_least), "") for length in longest]
    heads = iter(names)

    def head(tag: re.Match[str]) -> str:
        name = next(heads)
        return f'<th class="{name}"' if name else tag[0]

    return re.sub(r"<th\b", head, table)


def _length(cell: str) -> int:
    return len(html.unescape(re.sub(r"<[^>]+>", "", cell)))
