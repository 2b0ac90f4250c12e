"""From the tree of a document to what a workbook shows: tables, charts, and the text around them."""

from xml.etree.ElementTree import Element

from render.frontend.element_tree import body_of, classes_of, name_of
from render.frontend.figures.chart_data import ChartData, read_fence, read_mermaid, read_table
from render.frontend.figures.diagrams import source_of
from render.model import Document
from render.to_ir.tables import Placed, grid, header_rows, parts
from render.xlsx.cell_text import (
    BLOCKS,
    UNSEEN,
    has_scripts,
    is_all,
    link_of,
    read_inline,
    read_references,
    read_text,
)
from render.xlsx.csv_text import read_csv
from render.xlsx.model import ChartPlan, Contents, Note, SourceCell, SourceTable
from render.xlsx.sizes import require_size

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CHART_FENCES = frozenset({"language-chart", "language-chartjs", "chart"})
_CSV_FENCES = frozenset({"language-csv", "language-tsv"})
_INDENT = "    "
"""Before items of lists within lists."""
_START_DIGITS_MAX = 9
_DRAWN = frozenset({"img", "svg", "picture", "video", "audio", "canvas"})


def read_contents(document: Document) -> Contents:
    """Reads the tables and charts of a document, and the text outside of them.

    Raises:
        RenderError: a table has more rows, columns or cells than a sheet may have.
    """
    reader = _Reader(document)
    reader.walk(body_of(document.tree))
    reader.flush()
    contents = Contents(reader.tables, reader.notes)
    require_size(contents.tables)
    return contents


class _Reader:
    """Walks the blocks of a document in order."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.tables: list[SourceTable] = []
        self.notes: list[Note] = []
        self._heading = ""
        self._words = ""
        self._depth = 0

    def walk(self, element: Element) -> None:
        """Reads what is in an element: words in a line are one note, blocks end it."""
        self._words += element.text or ""
        for child in element:
            if not self._takes(child):
                self._inline(child)
            self._words += child.tail or ""

    def flush(self, before: str = "") -> None:
        """Ends a paragraph."""
        text = "\n".join(" ".join(line.split()) for line in self._words.split("\n\v"))
        self._words = ""
        if text.strip():
            self.notes.append(Note(before + text.strip()))

    def _inline(self, element: Element) -> None:
        name = name_of(element)
        if name.rpartition("}")[2] in _DRAWN:
            self._warn_drawn(element.get("alt") or "")
        elif name == "br":
            self._words += "\n\v"
        elif name == "input":
            self._words += "\u2611 " if "checked" in element.attrib else "\u2610 "
        elif any(name_of(item) in BLOCKS for item in element.iter()):
            self.walk(element)
        else:
            for item in element.iter():
                if name_of(item).rpartition("}")[2] in _DRAWN:
                    self._warn_drawn(item.get("alt") or "")
            self._words += read_inline(element).replace("\n", "\n\v")

    def _takes(self, element: Element) -> bool:
        """Whether an element is a block, which was read then."""
        name = name_of(element)
        if name in UNSEEN or "hidden" in element.attrib:
            return True
        if name not in BLOCKS:
            return False
        self.flush()
        if name == "table":
            self._table(element)
        elif name in _HEADINGS:
            text = read_text(element).replace("\n", " ")
            if text:
                self._heading = text
                self.notes.append(Note(text, _HEADINGS[name]))
        elif self._is_figures(element):
            pass
        elif name == "pre":
            text = "".join(element.itertext()).strip("\n")
            self.notes += [Note(text, is_code=True)] if text.strip() else []
        elif name in {"ul", "ol"}:
            self._list(element, is_ordered=name == "ol")
        else:
            self.walk(element)
            self.flush()
        return True

    def _list(self, element: Element, *, is_ordered: bool) -> None:
        self._depth += 1
        self._items(element, is_ordered=is_ordered)
        self._depth -= 1

    def _items(self, element: Element, *, is_ordered: bool) -> None:
        start = element.get("start", "1")[:_START_DIGITS_MAX]
        number = int(start) if start.isdecimal() else 1
        for item in element:
            if name_of(item) != "li":
                if not self._takes(item):
                    self._inline(item)
                continue
            self.flush()
            count = len(self.notes)
            self.walk(item)
            mark = _INDENT * (self._depth - 1)
            if "pb-task" not in classes_of(item):  # its box is mark enough
                mark += f"{number}. " if is_ordered else "\u2022 "
            self.flush(mark)
            if (
                len(self.notes) > count
                and not self.notes[count].text.startswith(mark)
                and not self.notes[count].level
            ):
                self.notes[count] = Note(mark + self.notes[count].text)
            number += 1
        self.flush()

    def _warn_drawn(self, alt: str) -> None:
        shown = f" ({alt[:60]})" if alt else ""
        self.document.warn(
            "picture_left_out", f"A picture{shown} was left out: a workbook shows tables and charts."
        )

    def _is_figures(self, element: Element) -> bool:
        """Reads a block of a chart, of CSV or of Mermaid."""
        code = element.find("code") if element.tag == "pre" else None
        names = set(classes_of(element)) | (set(classes_of(code)) if code is not None else set())
        text = "".join(element.itertext())
        if element.tag == "pre" and names & _CHART_FENCES:
            try:
                self._chart(read_fence(text))
            except (ValueError, OverflowError) as exc:
                self.document.warn("chart_failed", f"A chart could not be drawn: {exc}.")
                self.notes.append(Note(text.strip(), is_code=True))
            return True
        if element.tag == "pre" and names & _CSV_FENCES:
            table = read_csv(text)
            if table is not None:
                table.heading = self._heading
                self.tables.append(table)
            return table is not None
        source = source_of(element)
        if not source:
            return False
        chart = read_mermaid(source)
        if chart is not None:
            self._chart(chart)
        else:
            self.document.warn(
                "picture_left_out", "A Mermaid diagram was left out: a workbook shows tables and charts."
            )
        return True

    def _chart(self, data: ChartData) -> None:
        self.tables.append(chart_table(data, self._heading))

    def _table(self, element: Element) -> None:
        parted = parts(element)
        placed, columns = grid(parted.rows)
        for stray in parted.strays:
            if not self._takes(stray):
                self._inline(stray)
        self.flush()
        caption = " ".join(read_text(item).replace("\n", " ") for item in parted.captions).strip()
        rows = len(parted.rows)
        if not any(place.elements for place in placed):
            return
        table = SourceTable([], rows, columns, min(header_rows(parted), rows), caption, self._heading)
        require_size([*self.tables, table], is_full=any(len(place.elements) > 1 for place in placed))
        aligns = [_align(item) for item in parted.columns[:columns]]
        aligns += [None] * (columns - len(aligns))
        table.cells = [self._cell(place, aligns[place.column]) for place in placed if place.elements]
        if element.get("data-chart"):
            table.chart = self._plan(element)
        self.tables.append(table)

    def _cell(self, place: Placed, align: str | None) -> SourceCell:
        element = place.elements[0]
        for item in element.iter():
            if name_of(item).rpartition("}")[2] in _DRAWN:
                self._warn_drawn(item.get("alt") or "")
        references = " ".join(read_references(element))
        return SourceCell(
            read_text(element, has_references=not references),
            place.row,
            place.column,
            place.rowspan,
            place.colspan,
            element.tag == "th",
            _align(element) or align,
            is_all(element, "bold"),
            is_all(element, "code"),
            link_of(element),
            read_text(element) if references else "",
            references,
            has_scripts(element),
        )

    def _plan(self, element: Element) -> ChartPlan | None:
        try:
            return _plan_of(read_table(element))
        except (ValueError, OverflowError) as exc:
            self.document.warn("chart_failed", f"A chart could not be drawn: {exc}.")
            return None


def _plan_of(data: ChartData) -> ChartPlan:
    return ChartPlan(data.kind, data.title, data.stacked, data.x_label, data.y_label)


def chart_table(data: ChartData, heading: str = "") -> SourceTable:
    """The figures of a chart as a table: a row for each category, a column for each series."""
    named = any(name for name, _ in data.series)
    heads = [data.x_label] + [
        name or (f"Series {number}" if named or len(data.series) > 1 else data.y_label or "Value")
        for number, (name, _) in enumerate(data.series, 1)
    ]
    rows = [heads] + [
        [category, *(_figure_text(values[index]) for _, values in data.series)]
        for index, category in enumerate(data.categories)
    ]
    cells = [
        SourceCell(text, number, column, is_header=not number)
        for number, row in enumerate(rows)
        for column, text in enumerate(row)
    ]
    return SourceTable(cells, len(rows), len(heads), 1, data.title, heading, _plan_of(data))


def _figure_text(value: float | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)  # noqa: PLR2004 - digits of a cell


def _align(element: Element) -> str | None:
    style = element.get("style") or ""
    for part in style.lower().split(";"):
        name, _, value = part.partition(":")
        if name.strip() == "text-align" and value.strip() in {"left", "center", "right"}:
            return value.strip()
    given = (element.get("align") or "").strip().lower()
    return given if given in {"left", "center", "right"} else None
