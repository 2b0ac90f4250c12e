"""CSV: its rows, cut by commas, semicolons, tabs or bars, whichever cuts them alike."""

import csv
import io
import re

_DELIMITERS = ",;\t|"
_SAMPLE_LINES = 200
_FIELD_CHARACTERS_MAX = 1_000_000
_SEPARATOR_LINE = re.compile(r"sep=(.)\n", re.IGNORECASE)
_OTHER_FORMATS = frozenset("|#<>`-*!")
"""What lines of Markdown and HTML begin with."""
_HEAD_WORDS_MAX = 8
_HEAD_CHARACTERS_MAX = 120


def read_rows(text: str) -> list[list[str]]:
    """The rows of a CSV text, which may name its delimiter in a line ``sep=;``.

    Blank rows between others are among them, as formulas count rows; those before and behind them are not.
    """
    text = text.strip("\n")
    named = _SEPARATOR_LINE.match(text)
    if named:
        text = text[named.end() :]
    rows = _cut(text, named[1] if named else _delimiter(text))
    filled = [number for number, row in enumerate(rows) if _is_filled(row)]
    return rows[filled[0] : filled[-1] + 1] if filled else []


def is_csv(text: str) -> bool:
    """Whether a text that no format was given for is CSV: two rows or more, all of as many cells, no sentences."""
    text = text.strip("\n")
    lines = text.split("\n")[:_SAMPLE_LINES]
    if _SEPARATOR_LINE.match(text):
        return True
    if len(lines) < 2 or any(line[:1] in _OTHER_FORMATS or not line.strip() for line in lines[:3]):  # noqa: PLR2004
        return False
    rows = list(filter(_is_filled, _cut("\n".join(lines), _delimiter("\n".join(lines)))))
    heads = [cell.strip() for cell in rows[0]] if rows else []
    is_head = all(
        len(head) <= _HEAD_CHARACTERS_MAX
        and len(head.split()) <= _HEAD_WORDS_MAX
        and head[-1:] not in {".", "!", "?"}
        for head in heads
    )
    # The last row of the sample may be cut in the middle of a quoted cell.
    return is_head and len(heads) > 1 and len({len(row) for row in rows[:-1]}) == 1


def _cut(text: str, delimiter: str) -> list[list[str]]:
    csv.field_size_limit(_FIELD_CHARACTERS_MAX)
    try:
        return list(csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return [line.split(delimiter) for line in text.split("\n")]


def _is_filled(row: list[str]) -> bool:
    return any(cell.strip() for cell in row)


def _delimiter(text: str) -> str:
    """The delimiter that cuts most rows into the same number of cells, the most of them."""
    sample = "\n".join(text.split("\n")[:_SAMPLE_LINES])

    def score(delimiter: str) -> tuple[float, int]:
        widths = [len(row) for row in _cut(sample, delimiter) if _is_filled(row)]
        usual = max(set(widths), key=lambda width: (widths.count(width), width), default=0)
        return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 0)

    return max(_DELIMITERS, key=score)
