"""The text of a PPTX: slide by slide, its shapes in their order, its tables and the speaker's notes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page_text.markdown_tables import cell_text, table_lines
from pptx import Presentation


def lines(path: Path) -> Iterator[str]:
    """The lines of a deck, as Markdown: ``## Slide 2: Title`` and what stands on it."""
    for number, slide in enumerate(Presentation(str(path)).slides, start=1):
        title = slide.shapes.title
        name = cell_text(title.text_frame.text) if title is not None and title.has_text_frame else ""
        yield from ("", f"## Slide {number}{f': {name}' if name else ''}", "")
        for shape in slide.shapes:
            if title is None or shape.shape_id != title.shape_id:
                yield from _shape_lines(shape)
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            notes = slide.notes_slide.notes_text_frame.text.strip()
            if notes:
                yield from ("", f"Notes: {notes}")


def _shape_lines(shape: Any) -> Iterator[str]:
    if hasattr(shape, "shapes"):  # a group
        for inner in shape.shapes:
            yield from _shape_lines(inner)
    elif getattr(shape, "has_table", False):
        yield from table_lines([[cell_text(cell.text) for cell in row.cells] for row in shape.table.rows])
    elif getattr(shape, "has_chart", False):
        yield from _chart_lines(shape.chart)
    elif shape.has_text_frame:
        for paragraph in shape.text_frame.paragraphs:
            text = "".join(run.text for run in paragraph.runs).strip()
            if text:
                yield f"{'  ' * paragraph.level}- {text}" if paragraph.level else text


def _chart_lines(chart: Any) -> Iterator[str]:
    """The figures of a chart: a column of names, and one for each series."""
    plot = chart.plots[0]
    names = [cell_text(name) for name in plot.categories]
    series = list(plot.series)
    columns = [[cell_text(value) for value in one.values] for one in series]
    header = ["", *(cell_text(one.name) for one in series)]
    rows = [[name, *(column[n] if n < len(column) else "" for column in columns)] for n, name in enumerate(names)]
    yield from table_lines([header, *rows])
