"""python-docx filled cell by cell, as its documentation shows it: ``options`` has ``rows`` and ``columns``."""

from pathlib import Path
from typing import Any

from docx import Document


def warm(fmt: str) -> None:
    """Opens the template once."""
    del fmt
    Document()


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Writes a table of that size."""
    del fmt
    rows, columns = job["options"]["rows"], job["options"]["columns"]
    document = Document()
    table = document.add_table(rows=rows, cols=columns)
    for row in range(rows):
        for column in range(columns):
            table.cell(row, column).text = f"r{row} c{column}"
    document.save(str(target))
    return []
