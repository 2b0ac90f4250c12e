"""Workbooks made from a source and read back with openpyxl."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import openpyxl
from render.frontend.pipeline import open_document
from render.model import Document, RenderRequest
from render.writers import write


@dataclass
class Book:
    """A written workbook, and the document that it was made of."""

    path: Path
    document: Document
    facts: dict[str, Any]

    @cached_property
    def opened(self):
        return openpyxl.load_workbook(self.path)

    @property
    def names(self) -> list[str]:
        return self.opened.sheetnames

    @property
    def codes(self) -> list[str]:
        """The codes of the warnings, in order."""
        return [warning.code for warning in self.document.warnings]

    def message(self, code: str) -> str:
        """The message of the first warning of a code."""
        return next(warning.message for warning in self.document.warnings if warning.code == code)

    def sheet(self, name: str | None = None):
        return self.opened[name] if name else self.opened.worksheets[0]

    def values(self, name: str | None = None) -> list[list[Any]]:
        """The values of a sheet, row by row."""
        return [[cell.value for cell in row] for row in self.sheet(name).iter_rows()]

    def cell(self, place: str, name: str | None = None) -> tuple[Any, str]:
        """Value and number format of a cell."""
        cell = self.sheet(name)[place]
        return cell.value, cell.number_format


def book(source: str, root: Path, *, source_format: str = "markdown", **request: Any) -> Book:
    """Writes a source as a workbook below a folder."""
    target = request.pop("target", "out.xlsx")
    asked = RenderRequest("xlsx", source_format, source, str(root), target, **request)  # type: ignore[arg-type]
    document = open_document(asked)
    path = root / "out.xlsx"
    return Book(path, document, write(document, str(path)))


def column(values: list[str], root: Path, head: str = "Value") -> list[Any]:
    """What becomes of some texts in one column below a head: value and number format of each."""
    rows = "\n".join(f"| {value} | x |" for value in values)
    made = book(f"| {head} | other |\n|---|---|\n{rows}\n", root)
    return [made.cell(f"A{number}") for number in range(2, len(values) + 2)]
