"""Rows of cells as lines of a Markdown table."""

from collections.abc import Iterable, Iterator, Sequence


def cell_text(value: object) -> str:
    """The text of a cell in one line; a bar is escaped."""
    return " ".join(str(value).split()).replace("|", "\\|")


def table_lines(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table, its first row as the header, with a blank line on both sides."""
    for number, row in enumerate(rows):
        if number == 0:
            yield ""
        yield f"| {' | '.join(row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"
    yield ""
