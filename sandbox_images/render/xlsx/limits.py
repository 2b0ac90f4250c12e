"""What a workbook may be: each limit with its unit and the error or warning of a document past it."""

SHEETS_MAX = 100
"""``too_many_sheets``: tables and charts of a document. A reader pages through tabs, and each has its own XML part."""
CELLS_MAX = 500_000
"""``too_many_cells``: cells of all sheets. More take longer than a call may and more memory than it has."""
ROWS_MAX = 200_000
"""``too_many_rows``: rows of one sheet, its head included. The format itself ends at 1,048,576."""
COLUMNS_MAX = 1_000
"""``too_many_columns``: columns of one sheet. The format itself ends at 16,384."""
CELL_CHARACTERS_MAX = 32_767
"""``content_lost``: characters of one cell, of which an emoji is two; the format holds no more."""
FORMULA_CHARACTERS_MAX = 8_192
"""``formula_as_text``: characters of a formula; the format holds no more."""
FORMULA_LEVELS_MAX = 64
"""``formula_as_text``: functions and brackets within each other; Excel opens no more."""
LINKS_MAX = 60_000
"""Links of one sheet; Excel opens no file with more than 65,530. The text of the others stays."""
COMMENTS_MAX = 5_000
"""Figures of one sheet whose references are comments; the others are texts with their references."""
EXCEL_ROWS, EXCEL_COLUMNS = 1_048_576, 16_384
"""The last row and column that a reference may name."""


def cut(text: str, characters: int) -> str:
    """The start of a text, with as many characters as Excel counts: those past the basic plane are two."""
    if text.isascii():
        return text[:characters]
    return text[:characters].encode("utf-16-le")[: 2 * characters].decode("utf-16-le", "ignore")
