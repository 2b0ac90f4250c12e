"""Tables of many rows: a sample is laid out, the rest is measured by it; layout takes milliseconds per row."""

from copy import deepcopy
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from render.frontend.element_tree import add_class, make, name_of
from render.slides.boxes_to_shapes import Painter
from render.slides.canvas import slide_width
from render.slides.css import STEPS
from render.slides.layout import Sheet, Stage
from render.slides.model import Shape, Slide, TableCell, TableShape, TextShape
from render.slides.px_to_slide import scaled
from render.slides.splitting.slide_content import has_content
from render.slides.splitting.split_after_layout import append_mark, whole_copy
from render.slides.splitting.table_rows import Model, Row, base_piece, chunks
from render.slides.text_width import Measure
from render.weasy.box_style import Gradient, Paint
from render.weasy.grounds import flattened

ROWS_MIN = 60
_SAMPLE_ROWS = 12
_EDGE = 8
_SLOW = frozenset({"img", "svg", "table", "pre", "figure"})


@dataclass(slots=True)
class BigTable:
    """What a sheet with a big table becomes.

    Attributes:
        before, after: sheets of what stands around the table.
        slides: the table's slides, finished.
        sheet: the sheet that the slides count as.
    """

    before: Sheet | None
    slides: list[Slide]
    after: Sheet | None
    sheet: Sheet


def big_table_of(root: Element) -> Element | None:
    """The first table with many rows in a slide."""
    for table in root.iter("table"):
        rows = sum(1 for _ in table.iter("tr"))
        if rows >= ROWS_MIN and not any(
            name_of(item).rpartition("}")[2] in _SLOW and item is not table for item in table.iter()
        ):
            return table
    return None


def spread(stage: Stage, sheet: Sheet) -> BigTable | None:
    """Spreads a big table over slides; None if the sheet has none, or the sample wasn't laid out."""
    table = big_table_of(sheet.root)
    if table is None:
        return None
    head, rows = _rows_of(table)
    node = None
    for step in STEPS[::2]:
        sample = _only(sheet.root, table, _with_rows(table, _sample(rows)), sheet.title)
        probe = replace(sheet, root=sample[0], title=sample[1], step=step)
        node = stage.lay_out([probe])[0]
        if node is None:
            return None
        painter = Painter(node, probe.title)
        shapes = scaled(painter.paint(), stage.scale(probe), node.x, node.y)
        if all(shape.right <= slide_width() - _EDGE for shape in shapes if isinstance(shape, TableShape)):
            break
    if node is None:
        return None
    layers = flattened((Paint(stage.paper), *node.grounds))
    ground = layers[0] if isinstance(layers[0], Paint | Gradient) else None
    model = _model(shapes, len(head), ground, painter.anchors)
    if model is None:
        return None
    measure = Measure(stage.layouter, _characters(rows), base_piece(model))
    slides = [_slide(sheet, model, chunk, number) for number, chunk in enumerate(chunks(rows, model, measure))]
    before, after = _around(sheet, table)
    return BigTable(before, slides, after, replace(sheet, root=sample[0], title=sample[1]))


def _rows_of(table: Element) -> tuple[list[Element], list[Element]]:
    head = [row for group in table.iter("thead") for row in group.iter("tr")]
    known = {id(row) for row in head}
    rows = [row for row in table.iter("tr") if id(row) not in known]
    if not head and rows and all(cell.tag == "th" for cell in rows[0]):
        head, rows = rows[:1], rows[1:]
    return head, rows


def _sample(rows: list[Element]) -> list[Element]:
    """The first rows, and those with each column's longest text, which decide how wide columns are."""
    chosen = {0, 1}
    longest: dict[int, tuple[int, int]] = {}
    for index, row in enumerate(rows):
        for column, cell in enumerate(row):
            size = sum(len(text) for text in cell.itertext())
            if size > longest.get(column, (-1, 0))[0]:
                longest[column] = (size, index)
    for _, index in list(longest.values())[: _SAMPLE_ROWS - 2]:
        chosen.add(index)
    return [rows[index] for index in sorted(chosen) if index < len(rows)]


def _with_rows(table: Element, rows: list[Element]) -> Element:
    """The table with its head and some of its rows."""
    made = Element("table", dict(table.attrib))
    add_class(made, "pb-dense")
    for child in table:
        if child.tag in {"colgroup", "thead", "caption"}:
            made.append(whole_copy(child))
    body = make("tbody")
    head, _ = _rows_of(table)
    if made.find("thead") is None and head:
        made.append(make("thead", None, None, *(whole_copy(row) for row in head)))
    body.extend(whole_copy(row) for row in rows)
    made.append(body)
    return made


def _only(
    element: Element, table: Element, stand_in: Element, title: Element | None
) -> tuple[Element, Element | None]:
    """A copy of a slide with nothing but its title and a table."""
    found: list[Element] = []

    def walk(item: Element) -> Element | None:
        if item is table:
            return stand_in
        if item is title:
            found.append(whole_copy(item))
            return found[0]
        inner = [made for child in item if (made := walk(child)) is not None]
        return make(str(item.tag), dict(item.attrib), None, *inner) if inner or item is element else None

    root = walk(element)
    if found:
        append_mark(found[0])
    return (root if root is not None else make("section")), (found[0] if found else None)


def _around(sheet: Sheet, table: Element) -> tuple[Sheet | None, Sheet | None]:
    """Sheets of what comes before and after the table, with the title repeated."""
    sides: list[Sheet | None] = []
    for side in (0, 1):
        state = {"met": False}
        found: list[Element] = []

        def walk(
            item: Element, side: int = side, state: dict[str, bool] = state, found: list[Element] = found
        ) -> Element | None:
            if item is table:
                state["met"] = True
                return None
            if item is sheet.title:
                found.append(whole_copy(item))
                return found[0]
            holds = any(inner is table for inner in item.iter())
            if not holds:
                return whole_copy(item) if state["met"] == bool(side) else None
            made = Element(item.tag, dict(item.attrib))
            made.text = item.text if not side else None
            for child in item:
                copied = walk(child)
                tail = child.tail if state["met"] == bool(side) else None
                if copied is not None:
                    copied.tail = tail
                    made.append(copied)
            return made

        root = walk(sheet.root)
        title = found[0] if found else None
        if root is None or (
            not any(has_content(child) for child in root if child is not title) and not (root.text or "").strip()
        ):
            sides.append(None)
            continue
        if title is not None:
            append_mark(title)
        sides.append(replace(sheet, root=root, title=title, depth=sheet.depth + 1))
    return sides[0], sides[1]


def _model(shapes: list[Shape], heads: int, background: Paint | Gradient | None, anchors: set[str]) -> Model | None:
    table = next((shape for shape in shapes if isinstance(shape, TableShape)), None)
    if table is None or len(table.rows) <= heads:
        return None
    body = [cell for cell in table.cells if cell.row >= heads]
    columns: dict[int, TableCell] = {}
    for cell in body:
        if cell.colspan == 1 and (cell.column not in columns or not columns[cell.column].paragraphs):
            columns[cell.column] = cell
    if not columns or not any(cell.paragraphs for cell in columns.values()):
        return None
    fills = [next((cell.fill for cell in body if cell.row == heads + index), None) for index in (0, 1)]
    others = [shape for shape in shapes if shape is not table and shape.y < table.y + table.height]
    first = max(sum(para.height for para in cell.paragraphs) for cell in body if cell.row == heads)
    padding = max(4.0, table.rows[heads] - first)
    head = [cell for cell in table.cells if cell.row < heads]
    return Model(others, table, head, columns, fills, background, padding, anchors)


def _characters(rows: list[Element]) -> set[str]:
    found: set[str] = set()
    for row in rows:
        for text in row.itertext():
            found.update(text)
    return found


def _slide(sheet: Sheet, model: Model, chunk: list[Row], number: int) -> Slide:
    """A slide of rows under the table's head."""
    heads = len({cell.row for cell in model.heads})
    shape = TableShape(
        model.table.x, model.table.y, model.table.width, 0.0, list(model.table.columns), header_rows=heads
    )
    shape.rows = [*model.table.rows[:heads], *(row.height for row in chunk)]
    shape.height = sum(shape.rows)
    shape.cells = deepcopy(model.heads)
    for index, row in enumerate(chunk):
        for cell in row.cells:
            cell.row, cell.fill = heads + index, model.fills[index % 2]
            shape.cells.append(cell)
    others = [
        item
        for item in deepcopy(model.others)
        if number == 0 or (isinstance(item, TextShape) and item.role == "title")
    ]
    slide = Slide(sheet.draft.kind, [*others, shape], background=model.background)
    if number == 0:
        slide.anchors = model.anchors
    return slide
