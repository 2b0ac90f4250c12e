"""Tables of a DOCX: headers, spans, widths, and pages on their side for those that are too wide."""

from docx_reading import W, values, written


def test_headers_repeat_and_columns_are_aligned(tmp_path):
    made = written("| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 | 4 |\n", tmp_path)
    rows = list(made.body.iter(W + "tr"))
    assert [row.find(f"{W}trPr/{W}tblHeader") is not None for row in rows] == [True, False, False]
    assert [[cell.text for cell in row.cells] for row in made.opened.tables[0].rows] == [
        ["a", "b"],
        ["1", "2"],
        ["3", "4"],
    ]
    assert values(made.body, ".//w:tc/w:p/w:pPr/w:jc") == ["right"] * 3


def test_spans_become_merged_cells(tmp_path):
    source = "<table><tr><th rowspan=2>A<th colspan=2>B<tr><th>C<th>D<tr><td>1<td>2<td>3</table>"
    made = written(source, tmp_path, source_format="html")
    cells = [[cell.text for cell in row.cells] for row in made.opened.tables[0].rows]
    assert cells == [["A", "B", "B"], ["A", "C", "D"], ["1", "2", "3"]]
    grid = len(made.body.findall(f".//{W}gridCol"))
    for row in made.body.iter(W + "tr"):
        spans = [cell.find(f"{W}tcPr/{W}gridSpan") for cell in row.iter(W + "tc")]
        assert sum(1 if span is None else int(span.get(W + "val")) for span in spans) == grid


def test_every_cell_ends_with_a_paragraph(tmp_path):
    source = "<table><tr><td><td><ul><li>a</ul><td><table><tr><td>x</table><td><pre>c</pre></table>"
    made = written(source, tmp_path, source_format="html")
    assert {cell[-1].tag for cell in made.body.iter(W + "tc")} == {W + "p"}


def test_a_table_with_more_columns_than_word_opens_is_split(tmp_path):
    made = written(
        "<table><tr>" + "".join(f"<td>c{number}" for number in range(150)) + "</table>",
        tmp_path,
        source_format="html",
    )
    assert [len(table.findall(f"{W}tblGrid/{W}gridCol")) for table in made.body.iter(W + "tbl")] == [63, 63, 24]
    assert made.words() == [f"c{number}" for number in range(150)]


def test_five_thousand_rows_are_written_row_by_row(tmp_path):
    source = "<table>" + "".join(f"<tr><td>a{row}<td>b{row}" for row in range(5000)) + "</table>"
    made = written(source, tmp_path, source_format="html")
    assert len(list(made.body.iter(W + "tr"))) == 5000
    assert made.words()[-2:] == ["a4999", "b4999"]


def test_a_table_that_is_too_wide_has_a_page_on_its_side_with_its_heading(tmp_path):
    head = "| " + " | ".join(["Responsibility"] * 10) + " |\n" + "|---" * 10 + "|\n"
    made = written(f"before\n\n## Wide\n\n{head}{head.split(chr(10))[0]}\n\nafter\n", tmp_path)
    sizes = [(size.get(W + "orient"), size.get(W + "w")) for size in made.body.iter(W + "pgSz")]
    assert sizes == [(None, "11906"), ("landscape", "16838"), (None, "11906")]
    marks = [
        element for element in made.body[0] if element.find(f".//{W}sectPr") is not None or element.tag == W + "tbl"
    ]
    between = made.body[0][made.body[0].index(marks[0]) + 1 : made.body[0].index(marks[1])]
    assert ["".join(element.itertext()) for element in between] == ["Wide"]


def test_a_small_table_stays_on_one_page_and_a_long_one_does_not(tmp_path):
    def kept(rows):
        source = "<table>" + "".join(f"<tr><td>{row}" for row in range(rows)) + "</table>"
        made = written(source, tmp_path, source_format="html")
        return len(list(made.body.iter(W + "keepNext")))

    assert (kept(4), kept(40)) == (3, 0)


def test_cells_have_the_grounds_lines_and_places_of_the_author(tmp_path):
    source = (
        "<style>td{border:1px solid #ff0000;vertical-align:middle} tr:nth-child(even){background:#eeeeee}</style>"
        "<table><tr><td>a<tr><td>b</table>"
    )
    made = written(source, tmp_path, source_format="html")
    assert values(made.body, ".//w:tcPr/w:shd", "fill") == ["EEEEEE"]
    assert values(made.body, ".//w:tcBorders/w:top", "color") == ["FF0000", "FF0000"]
    assert values(made.body, ".//w:vAlign") == ["center", "center"]
