"""Refuses tables that no workbook of ours holds, before they are read cell by cell."""

from render.model import RenderError
from render.xlsx.limits import CELLS_MAX, COLUMNS_MAX, ROWS_MAX, SHEETS_MAX
from render.xlsx.model import SourceTable


def require_size(tables: list[SourceTable], *, is_full: bool = False) -> None:
    """Refuses tables that are too many or too large.

    Args:
        tables: all that were read so far.
        is_full: the last one has cells past the last column.

    Raises:
        RenderError: ``too_many_sheets``, ``too_many_rows``, ``too_many_columns``, ``too_many_cells``.
    """
    if len(tables) > SHEETS_MAX:
        raise RenderError(
            "too_many_sheets",
            f"content: too many tables and charts (limit {SHEETS_MAX}, got {len(tables)}); each is a sheet: "
            "join tables of the same columns, or write several workbooks.",
        )
    table = tables[-1] if tables else None
    if table is None:
        return
    if table.rows > ROWS_MAX:
        raise RenderError(
            "too_many_rows",
            f"content: table {len(tables)} has too many rows (limit {ROWS_MAX:,}, got {table.rows:,}); write parts of "
            "it to several sheets, or a CSV file with execute_code_python.",
        )
    if is_full or table.columns > COLUMNS_MAX:
        got = f"more than {COLUMNS_MAX:,}" if is_full else f"{table.columns:,}"
        raise RenderError(
            "too_many_columns",
            f"content: table {len(tables)} has too many columns (limit {COLUMNS_MAX:,}, got {got}); "
            "turn it on its side, or split it.",
        )
    cells = sum(item.rows * item.columns for item in tables)
    if cells > CELLS_MAX:
        raise RenderError(
            "too_many_cells",
            f"content: the tables have too many cells (limit {CELLS_MAX:,}, got {cells:,}); write several workbooks, "
            "or a CSV file with execute_code_python.",
        )
