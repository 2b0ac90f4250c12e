"""Laid-out tables as native ones: columns, rows, spans, fills, borders."""

from collections.abc import Callable

from render.slides.model import Para, TableCell, TableShape
from render.weasy.box_style import Paint
from render.weasy.boxes import BoxNode


def read_table(node: BoxNode, paragraphs: Callable[[BoxNode], list[Para]]) -> TableShape:
    """Reads a table's box.

    Args:
        node: the table.
        paragraphs: paints what is in a cell.
    """
    rows = _rows_of(node)
    filled = [bool(item[0].children) for item in rows]
    rows = [item for item in rows if item[0].children]
    spans = [index for index, has_cells in enumerate(filled) if has_cells]
    table = TableShape(node.x, node.y, node.width, node.height)
    mirrored = node.look.right_to_left
    edges: dict[int, float] = {}
    taken: set[tuple[int, int]] = set()
    for index, (row, _, ground) in enumerate(rows):
        for cell in row.children:
            if cell.kind == "cell":
                # Rows without cells are left out, and so are those of them that a cell spans.
                cell.rowspan = sum(filled[spans[index] : spans[index] + max(1, cell.rowspan)])
                _add_cell(
                    table,
                    taken,
                    edges,
                    (cell, index, len(rows), mirrored),
                    paragraphs,
                    row.look.background or ground,
                )
    _drop_empty_columns(table, edges)
    if mirrored and edges:
        edges = _mirrored(table, edges)
    _share_borders(table)
    table.columns = _widths(edges, table)
    table.rows = [max(1.0, row.height) for row, _, _ in rows]
    for made in table.cells:
        if made.rowspan == 1:
            needed = sum(para.height for para in made.paragraphs) + made.margins[1] + made.margins[3]
            table.rows[made.row] = max(table.rows[made.row], needed)
    if rows:
        table.y = rows[0][0].y
        table.height = sum(table.rows)
    table.header_rows = sum(1 for _, head, _ in rows if head) or int(_is_head(rows))
    table.width = sum(table.columns)
    return table


def _rows_of(node: BoxNode) -> list[tuple[BoxNode, bool, Paint | None]]:
    """The rows of a table, each with whether it is in its head, and with the ground of its group."""
    rows: list[tuple[BoxNode, bool, Paint | None]] = []
    for child in node.children:
        if child.kind == "group":
            head = child.element is not None and child.element.tag == "thead"
            rows.extend((row, head, child.look.background) for row in child.children if row.kind == "row")
        elif child.kind == "row":
            rows.append((child, False, None))
    return rows


def _is_head(rows: list[tuple[BoxNode, bool, Paint | None]]) -> bool:
    cells = rows[0][0].children if rows else []
    return bool(cells) and all(cell.element is not None and cell.element.tag == "th" for cell in cells)


def _add_cell(
    table: TableShape,
    taken: set[tuple[int, int]],
    edges: dict[int, float],
    where: tuple[BoxNode, int, int, bool],
    paragraphs: Callable[[BoxNode], list[Para]],
    ground: Paint | None,
) -> None:
    cell, index, count, is_mirrored = where
    column = cell.column
    while (index, column) in taken:
        column += 1
    rowspan = max(1, min(cell.rowspan, count - index))
    colspan = max(1, cell.colspan)
    while colspan > 1 and (index, column + colspan - 1) in taken:
        colspan -= 1
    taken.update((index + down, column + right) for down in range(rowspan) for right in range(colspan))
    start = -cell.x - cell.width if is_mirrored else cell.x
    edges.setdefault(column, start)
    if column + colspan not in edges or start + cell.width > edges[column + colspan]:
        edges.setdefault(column + colspan, start + cell.width)
    look = cell.look
    fill = look.background or ground
    lines = sorted(cell.children, key=lambda child: child.y)[:1]
    left = max(0.0, cell.inner_x - cell.x)
    top = max(0.0, lines[0].y - cell.y) if lines else 4.0
    middle = look.middle
    table.cells.append(
        TableCell(
            index,
            column,
            rowspan,
            colspan,
            paragraphs(cell),
            fill,
            (look.border("left"), look.border("right"), look.border("top"), look.border("bottom")),
            (left, 2.0 if middle else min(top, 24.0), max(0.0, cell.width - left - cell.inner_width), 2.0),
            middle,
        )
    )


def _mirrored(table: TableShape, edges: dict[int, float]) -> dict[int, float]:
    """Numbers columns from the left, as slides count them, where the first stands at the right; gives their edges."""
    last = max(edges)
    for cell in table.cells:
        cell.column = last - cell.column - cell.colspan
    return {last - column: -x for column, x in edges.items()}


def _share_borders(table: TableShape) -> None:
    """Gives a border between two cells to both of them: readers take the one that is written last, none or not."""
    places = {
        (cell.row + down, cell.column + right): cell
        for cell in table.cells
        for down in range(cell.rowspan)
        for right in range(cell.colspan)
    }
    for cell in table.cells:
        left, right, top, bottom = cell.borders
        below = places.get((cell.row + cell.rowspan, cell.column))
        beside = places.get((cell.row, cell.column + cell.colspan))
        if below is not None:
            one, other, edge, last = below.borders
            bottom = bottom or edge
            below.borders = (one, other, edge or bottom, last)
        if beside is not None:
            edge, other, one, last = beside.borders
            right = right or edge
            beside.borders = (edge or right, other, one, last)
        cell.borders = (left, right, top, bottom)


def _drop_empty_columns(table: TableShape, edges: dict[int, float]) -> None:
    """Takes out columns that no cell begins in, such as most of those of ``colspan="900"``."""
    starts = sorted({cell.column for cell in table.cells})
    for cell in table.cells:
        cell.colspan = sum(1 for start in starts if cell.column <= start < cell.column + cell.colspan)
        cell.column = starts.index(cell.column)
    if edges:
        right = edges[max(edges)]
        places = [edges[start] for start in starts]
        edges.clear()
        edges.update(enumerate([*places, right]))


def _widths(edges: dict[int, float], table: TableShape) -> list[float]:
    """Widths of columns; edges that no cell has are put between their neighbours."""
    if not edges:
        return []
    last = max(edges)
    known = sorted(edges)
    places = [0.0] * (last + 1)
    for index in range(last + 1):
        if index in edges:
            places[index] = edges[index]
            continue
        before = max((item for item in known if item < index), default=known[0])
        after = min((item for item in known if item > index), default=last)
        share = (index - before) / max(1, after - before)
        places[index] = edges[before] + (edges[after] - edges[before]) * share
    table.x = min(places)
    return [max(2.0, places[index + 1] - places[index]) for index in range(last)]
