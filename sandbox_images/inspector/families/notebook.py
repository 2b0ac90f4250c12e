"""Jupyter notebooks: strict JSON with the members that a notebook of format 3 or 4 must have."""

from __future__ import annotations

from typing import Any

from model import Problem, Subject
from parsing.json_schema import schema_check
from parsing.strict_json import parse_json
from parsing.text_stream import whole_text

_OLDEST_WITH_CELLS = 4


def inspect(subject: Subject) -> None:
    """Parse the notebook (``facts.cells``); blank if no cell has a source."""
    notebook = parse_json(whole_text(subject), "it")
    cells = _cells(notebook)
    subject.facts["cells"] = len(cells)
    if "json_schema" in subject.checks:
        schema_check(subject.checks["json_schema"])(notebook, "")
    if subject.must_not_be_blank() and not any(_source(cell).strip() for cell in cells):
        raise Problem("is blank: no cell has a source")


def _cells(notebook: Any) -> list[Any]:
    if not isinstance(notebook, dict) or not isinstance(notebook.get("nbformat"), int):
        raise Problem("is not a notebook: it has no nbformat")
    if notebook["nbformat"] >= _OLDEST_WITH_CELLS:
        cells = notebook.get("cells")
    else:
        sheets = notebook.get("worksheets")
        cells = (
            sheets[0].get("cells") if isinstance(sheets, list) and sheets and isinstance(sheets[0], dict) else None
        )
    if not isinstance(cells, list):
        raise Problem("is not a notebook: it has no list of cells")
    for number, cell in enumerate(cells, start=1):
        if not isinstance(cell, dict) or not isinstance(cell.get("cell_type"), str):
            raise Problem(f"is not a notebook: cell {number:,} has no cell_type")
    return cells


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", cell.get("input", ""))
    lines = source if isinstance(source, list) else [source]
    return "".join(line for line in lines if isinstance(line, str))
