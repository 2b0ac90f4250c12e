"""What was found in the cells of a workbook that its reader should know: collected, and warned of once for a kind."""

from dataclasses import dataclass, field

from openpyxl.utils import get_column_letter
from render.model import Document

_SHOWN_MAX = 5


@dataclass(slots=True)
class Findings:
    """Cells by what was found in them, each with its sheet and reason."""

    as_text: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    numbers_as_text: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def warn(self, document: Document) -> None:
        """Add a warning to a document for each kind of finding."""
        kinds = (
            ("formula_refused", self.refused, "Formulas that reach out of the workbook were written as text"),
            ("formula_as_text", self.as_text, "Cells begin with = and were written as text"),
            ("content_lost", self.cut, "Cells hold 32,767 characters; the rest was left out"),
            ("ambiguous_dates", self.ambiguous, "Dates that can be read in two ways stay text; write 2026-01-31"),
            ("ambiguous_numbers", self.guessed, "Numbers were read in one of two ways; write 1234 or 1.2340"),
            ("numbers_as_text", self.numbers_as_text, "Texts among numbers do not count; write digits alone"),
            ("dropped_link", self.links, "Links that Excel does not open are text"),
        )
        for code, rows, text in kinds:
            if rows:
                more = f"; and {len(rows) - _SHOWN_MAX} more" if len(rows) > _SHOWN_MAX else ""
                document.warn(code, f"{text}: {'; '.join(rows[:_SHOWN_MAX])}{more}.")


def place(sheet: str, row: int, column: int) -> str:
    """A cell as a reader finds it: the sheet, and the cell's name from row and column counted from 0."""
    return f"{sheet}!{get_column_letter(column + 1)}{row + 1}"
