# ruff: noqa: E501 - the source of a document
"""The shape of WeasyPrint's box tree that slides are made of: a change of it has to be seen here first."""

import pytest
import weasyprint
from render.frontend.html import parse_html
from render.weasy.boxes import BoxNode, Layouter

SOURCE = """<html><head><style>
@page{size:1280px 40000px;margin:0} body{margin:0} .row{display:flex} .net{display:grid;grid-template-columns:1fr 1fr}
#card{background:hsl(200,50%,50%);border-left:4px solid tomato;border-radius:12px;padding:10px;width:200px;height:40px}
#grad{background:linear-gradient(90deg,#112233,rgba(1,2,3,.5))} #abs{position:absolute;left:700px;top:20px;width:50px}
</style></head><body><h1 id="title">Hello <em id="em">big</em> world</h1><ul><li id="item">one<ul><li>two</li></ul></li></ul>
<div class="row" id="row"><p>a</p><p>b</p></div><div class="net" id="net"><p>c</p><p>d</p></div><div id="card">card</div>
<div id="grad">g</div><p id="abs">x</p><table id="table"><thead><tr><th colspan="2">h</th></tr></thead><tr><td>1</td><td>2</td></tr></table>
</body></html>"""


@pytest.fixture(scope="module")
def page() -> BoxNode:
    return Layouter("", None, None).pages(parse_html(SOURCE))[0]


def by_id(page: BoxNode, name: str) -> BoxNode:
    return next(
        node
        for node in page.walk()
        if node.principal and node.element is not None and node.element.get("id") == name
    )


def test_weasyprint_is_the_version_whose_private_boxes_are_known() -> None:
    assert weasyprint.__version__.split(".")[0] == "70"


def test_a_heading_is_a_block_of_lines_of_texts_and_inlines(page: BoxNode) -> None:
    title = by_id(page, "title")
    line = title.children[0]
    assert (title.kind, line.kind) == ("block", "line")
    assert [child.kind for child in line.children] == ["text", "inline", "text"]
    assert "".join(node.text for node in line.walk()) == "Hello big world"


def test_a_list_item_has_a_marker_with_its_text(page: BoxNode) -> None:
    markers = [node for node in by_id(page, "item").walk() if node.kind == "marker"]
    assert [marker.text.strip() for marker in markers] == ["•", "◦"]


def test_containers_are_told_apart(page: BoxNode) -> None:
    assert [by_id(page, name).kind for name in ("row", "net", "card")] == ["flex", "grid", "block"]


def test_boxes_have_their_border_boxes_and_content_boxes(page: BoxNode) -> None:
    card = by_id(page, "card")
    assert (card.x, card.width, card.height, card.inner_x, card.inner_width) == (0.0, 224.0, 60.0, 14.0, 200.0)


def test_looks_have_colours_borders_and_radii(page: BoxNode) -> None:
    look = by_id(page, "card").look
    border = look.border("left")
    assert (look.background.rgb, border.width, border.paint.rgb, look.border("top")) == (
        "4095bf",
        4.0,
        "ff6347",
        None,
    )
    assert look.radius(224, 60) == 12.0


def test_a_linear_gradient_has_its_angle_and_stops(page: BoxNode) -> None:
    gradient = by_id(page, "grad").grounds[-1]
    assert gradient.angle == 0.0
    assert [(at, paint.rgb, paint.alpha) for at, paint in gradient.stops] == [
        (0.0, "112233", 1.0),
        (1.0, "010203", 0.5),
    ]


def test_an_absolute_box_is_out_of_flow_where_it_was_put(page: BoxNode) -> None:
    box = by_id(page, "abs")
    assert (box.out_of_flow, box.x, box.width) == (True, 700.0, 50.0)


def test_a_table_has_groups_rows_and_cells_with_columns_and_spans(page: BoxNode) -> None:
    wrapper = by_id(page, "table")
    table = next(node for node in wrapper.walk() if node.kind == "table")
    cells = [node for node in table.walk() if node.kind == "cell"]
    assert [child.kind for child in table.children] == ["group", "group"]
    assert [(cell.column, cell.colspan) for cell in cells] == [(0, 2), (0, 1), (1, 1)]
