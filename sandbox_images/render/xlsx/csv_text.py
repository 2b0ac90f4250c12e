"""Tables from CSV."""

from render.frontend.csv_rows import read_rows
from render.frontend.html import clean_text, unfence
from render.xlsx.model import SourceCell, SourceTable
from render.xlsx.numbers import read_figure


def read_csv(text: str) -> SourceTable | None:
    """Reads a CSV text, with or without a fence around it; None if it has no cell."""
    rows = read_rows(unfence(clean_text(text), ("", "csv", "tsv")))
    columns = max(map(len, rows), default=0)
    if not columns:
        return None
    heads = 1 if _is_head(rows) else 0
    cells = [
        SourceCell(cell.strip(), number, column, is_header=number < heads)
        for number, row in enumerate(rows)
        for column, cell in enumerate(row)
    ]
    return SourceTable(cells, len(rows), columns, heads)


def _is_head(rows: list[list[str]]) -> bool:
    """Whether the first row names columns: texts alone, all different, above at least one other row."""
    first = [cell.strip() for cell in rows[0]]
    return (
        len(rows) > 1
        and all(first[1:])
        and len(set(first)) == len(first)
        and not any(cell.startswith("=") for cell in first)
        and sum(read_figure(cell) is not None for cell in first[:1]) == 0
        and sum(read_figure(cell) is not None for cell in first) < len(first)
    )
