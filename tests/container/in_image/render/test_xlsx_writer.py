"""Workbooks: a sheet for each table and chart, looks by theme, text around tables, limits, recognised formats."""

import zipfile

import pytest
from render.model import RenderError, Source
from render.xlsx import limits
from xlsx_reading import book

TWO = "# Report\n\n## North\n\n| a | b |\n|---|--:|\n| x | 1 |\n\n## South\n\n| a | b |\n|---|--:|\n| y | 2 |\n"
HTML = "<table><tr><th>a<tr><td>1</table>"
SALES = "| Item | Sum |\n|---|--:|\n| a | 1 |\n| b | 2 |\n| c | 3 |\n| Total | 6 |\n"


def test_each_table_is_a_sheet_from_a1_on_named_by_its_heading(tmp_path):
    made = book(TWO, tmp_path)
    assert made.names == ["North", "South"]
    assert made.values("South") == [["a", "b"], ["y", 2]]
    assert made.facts["sheets"] == ["North", "South"]


@pytest.mark.parametrize(
    ("source", "request_", "names"),
    [
        (TWO, {"options": {"sheets": ["N"]}}, ["N", "South"]),
        ("---\nsheets: [One, Two]\n---\n\n" + TWO, {}, ["One", "Two"]),
        ("---\nsheets: One, Two\n---\n\n" + TWO, {}, ["One, Two", "South"]),
        ('---\nsheets: ""\n---\n\n' + TWO, {"options": {"sheets": ["N"]}}, ["N", "South"]),
        (TWO.replace("South", "north"), {}, ["North", "north 2"]),
        (TWO.replace("## North", "## A/B: [x]*?"), {}, ["A B x", "South", "Notes"]),
        ("## H\n\n| a |\n|---|\n| 1 |\n\n: Caption\n", {}, ["Caption", "Notes"]),
        ("| a |\n|---|\n| 1 |\n", {"target": "files/costs.xlsx"}, ["costs"]),
        ("| a |\n|---|\n| 1 |\n\ntext\n\n| b |\n|---|\n| 2 |\n", {}, ["Table 1", "Table 2", "Notes"]),
        (TWO.replace("North", "History"), {}, ["History 2", "South"]),
    ],
)
def test_sheets_have_names_that_excel_takes(tmp_path, source, request_, names):
    (tmp_path / "files").mkdir()
    assert book(source, tmp_path, **request_).names == names


def test_names_without_a_table_are_a_warning(tmp_path):
    made = book(TWO, tmp_path, options={"sheets": ["a", "b", "c"]})
    assert made.message("unused_sheets").endswith("left over: c.")


def test_text_outside_of_tables_stands_on_a_sheet_of_its_own(tmp_path):
    source = (
        "# Title\n\nSome *words*.\n\n## Part\n\n"
        + SALES
        + "\n- one\n  1. two\n- [x] three\n\n```\ncode  x\n```\n\n## Rest\n\nend\n"
    )
    made = book(source, tmp_path)
    assert made.names == ["Part", "Notes"]
    assert [row[0] for row in made.values("Notes")] == [
        "Title", "Some words.", "\u2022 one", "    1. two", "\u2611 three", "code  x", "Rest", "end",
    ]  # fmt: skip
    assert made.codes == []


def test_blanks_at_the_edges_of_marked_words_part_them(tmp_path):
    made = book(f"<p>one<b> two </b>three<br>four <i>five</i></p>{HTML}", tmp_path, source_format="html")
    assert made.values("Notes") == [["one two three\nfour five"]]


def test_a_list_starts_at_its_number_within_reason(tmp_path):
    html = f"<ol start=5><li>five</ol><ol start={'9' * 5_000}><li>many</ol>{HTML}"
    notes = book(html, tmp_path, source_format="html").values("Notes")
    assert notes == [["5. five"], ["999999999. many"]]


def test_a_heading_that_is_cut_in_the_name_of_its_sheet_is_kept_whole(tmp_path):
    heading = "Costs of all departments by quarter and region"
    made = book(f"## {heading}\n\n{SALES}", tmp_path)
    assert made.names == ["Costs of all departments by", "Notes"]
    assert made.values("Notes") == [[heading]]


def test_no_word_of_a_document_is_lost(tmp_path):
    source = (
        "intro *a* **b** `c` [e](http://x.y)\n\n# f\n\n- g\n  1. h\n\n     i\n- j\n\n> k\n> - l\n\n"
        "| m | n |\n|---|---|\n| o | p |\n\nterm\n: def\n\n> [!NOTE]\n> s\n\n"
        "<div>t<p>u</div>\n\n::: columns\n::: column\nv\n:::\n:::\n\n"
        "x[^1]\n\n[^1]: y\n"
    )
    made = book(source, tmp_path)
    words = {word for name in made.names for row in made.values(name) for cell in row for word in str(cell).split()}
    assert set("abcehijklmnopstuvy") <= words | {word.strip("[]()1.") for word in words}
    assert {"intro", "term", "def"} <= words


def test_the_head_stays_is_filtered_and_is_printed_on_each_page(tmp_path):
    sheet = book(SALES, tmp_path).sheet()
    assert (sheet.freeze_panes, sheet.auto_filter.ref, sheet.print_title_rows) == ("A2", "A1:B4", "$1:$1")
    head, body, total = sheet["A1"], sheet["A2"], sheet["A5"]
    assert (head.font.b, head.fill.fgColor.rgb, body.font.b, total.font.b) == (True, "FFF3F6FA", False, True)
    assert (head.font.name, sheet["B1"].alignment.horizontal) == ("Calibri", "right")


def test_looks_are_those_of_the_theme(tmp_path):
    dark = book(SALES, tmp_path, theme="dark").sheet()
    assert (dark["A2"].fill.fgColor.rgb, dark["A2"].font.color.rgb) == ("FF10161F", "FFE6EBF3")
    assert book(SALES, tmp_path, theme="paper").sheet()["A2"].font.name == "Cambria"


def test_spans_are_merged_cells_and_a_head_of_two_rows_stays(tmp_path):
    html = (
        "<table><thead><tr><th rowspan=2>D<th colspan=2>H<tr><th>Q1<th>Q2<tbody><tr><td rowspan=2>IT<td>1<td>2"
        "<tr><td>3<td>4<tr><td>HR<td colspan=2>none</table>"
    )
    sheet = book(html, tmp_path, source_format="html").sheet()
    assert {str(cells) for cells in sheet.merged_cells.ranges} == {"A1:A2", "B1:C1", "A3:A4", "B5:C5"}
    assert (sheet.freeze_panes, sheet.auto_filter.ref, sheet["B1"].alignment.horizontal) == ("A3", None, "center")


def test_columns_are_as_wide_as_their_content_and_long_text_is_wrapped(tmp_path):
    sheet = book(f"| a | b | c |\n|---|---|---|\n| {'word ' * 60} | 1 | {'x' * 30} |\n", tmp_path).sheet()
    widths = [sheet.column_dimensions[name].width for name in "ABC"]
    assert (widths[0] > 50, widths[1] < 12, 30 < widths[2] < 40) == (True, True, True)
    assert (sheet["A2"].alignment.wrap_text, bool(sheet["C2"].alignment.wrap_text)) == (True, False)


def test_lines_links_alignment_and_bold_of_a_cell_are_kept(tmp_path):
    source = (
        "| a | b | c | d |\n|---|:-:|---|---|\n| x<br>y | mid | [site](https://example.org/a) | **bold** |\n"
        "| 1 | 2 | [bad](file:///etc/passwd) | plain |\n"
    )
    made = book(source, tmp_path)
    first = made.sheet()[2]
    assert first[0].value == "x\ny"
    assert first[0].alignment.wrap_text
    assert first[1].alignment.horizontal == "center"
    assert first[2].hyperlink.target == "https://example.org/a"
    assert (first[3].font.b, made.sheet()["D3"].font.b, made.sheet()["C3"].hyperlink) == (True, False, None)


CHART = "```chart\ntype: {}\ntitle: Sales\ncategories: [Q1, Q2]\nseries:\n  - name: A\n    values: [1, 2.5]\n```\n"


@pytest.mark.parametrize(
    ("kind", "found"),
    [("bar", "BarChart"), ("hbar", "BarChart"), ("line", "LineChart"), ("pie", "PieChart"), ("area", "AreaChart"),
     ("scatter", "ScatterChart")],
)  # fmt: skip
def test_a_chart_is_native_beside_its_figures(tmp_path, kind, found):
    made = book(CHART.format(kind), tmp_path)
    assert made.names == ["Sales"]
    assert made.values() == [[None, "A"], ["Q1", 1], ["Q2", 2.5]]
    (chart,) = made.sheet()._charts
    assert type(chart).__name__ == found
    figures = chart.series[0].yVal if kind == "scatter" else chart.series[0].val
    assert figures.numRef.f == "Sales!$B$2:$B$3"


def test_a_table_that_is_a_chart_is_both(tmp_path):
    html = (
        "<table data-chart=line><caption>Visits</caption><tr><th>Month<th>A<th>Note<tr><td>Jan<td>1<td>x"
        "<tr><td>Feb<td>2<td>y<tr><td>Total<td>=SUM(B2:B3)<td></table>"
    )
    made = book(html, tmp_path, source_format="html")
    assert made.values()[3] == ["Total", "=SUM(B2:B3)", None]
    (chart,) = made.sheet("Visits")._charts
    assert [series.val.numRef.f for series in chart.series] == ["Visits!$B$2:$B$3"]


def test_charts_of_mermaid_are_charts_and_other_diagrams_a_warning(tmp_path):
    made = book(
        '```mermaid\npie title P\n  "a" : 1\n  "b" : 2\n```\n\n```mermaid\ngraph TD\nA-->B\n```\n', tmp_path
    )
    assert (made.names, made.facts["charts"], made.codes) == (["P"], 1, ["picture_left_out"])


def test_a_chart_that_cannot_be_drawn_is_a_warning_and_its_text_a_note(tmp_path):
    made = book(SALES + "\n```chart\n{]\n```\n", tmp_path)
    assert (made.codes, made.values("Notes")) == (["chart_failed"], [["{]"]])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n1,2\n", [["a", "b"], [1, 2]]),
        ("a;b\nx;1,5\n", [["a", "b"], ["x", 1.5]]),
        ("a\tb\n1\t2\n", [["a", "b"], [1, 2]]),
        ("sep=|\na|b\n1|2\n", [["a", "b"], [1, 2]]),
        ('a,b\n"x, y","1\n2"\n', [["a", "b"], ["x, y", "1\n2"]]),
        ("```csv\na,b\n1,2\n```\n", [["a", "b"], [1, 2]]),
        ("\ufeffa,b\r\n1\r\n3,4,5\r\n", [["a", "b", None], [1, None, None], [3, 4, 5]]),
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("a\n01\n", [["a"], ["01"]]),
    ],
)
def test_csv_is_a_table(tmp_path, text, expected):
    made = book(text, tmp_path, source_format="csv", target="out.xlsx")
    assert (made.values(), made.codes) == (expected, [])


def test_a_fence_of_csv_in_markdown_is_a_table(tmp_path):
    made = book("## Costs\n\n```csv\na,b\n1,2\n```\n", tmp_path)
    assert (made.names, made.values()) == (["Costs"], [["a", "b"], [1, 2]])


@pytest.mark.parametrize(
    ("content", "given", "codes"),
    [
        ("a,b\n1,2\n3,4\n", "markdown", ["format_recognised"]),
        ("a,b\n1,2\n3,4\n", "html", ["format_recognised"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "csv", ["format_recognised"]),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", "html", ["format_recognised"]),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "csv", ["format_recognised"]),
        ("<!DOCTYPE html><table><tr><th>a<th>b<tr><td>1<td>2</table>", "markdown", ["format_recognised"]),
        ("<table><tr><th>a<th>b<tr><td>1<td>2</table>", "markdown", []),
    ],
)
def test_a_content_is_read_as_what_it_is(tmp_path, content, given, codes):
    made = book(content, tmp_path, source_format=given)
    assert (made.values()[:2], made.codes) == ([["a", "b"], [1, 2]], codes)


@pytest.mark.parametrize(
    "content",
    ["# Title\n\nOnly words, and more.\n", "Dear all, hello.\nBye, then.\n", "- a\n- b\n", "<p>x</p>", ","],
)
def test_a_document_without_a_table_is_refused_with_the_way_out(tmp_path, content):
    with pytest.raises(RenderError) as refused:
        book(content, tmp_path)
    assert refused.value.code == "no_tables"
    assert "write_docx" in refused.value.message


@pytest.mark.parametrize(
    ("content", "source_format", "code", "limit"),
    [
        (
            "| a |\n|---|\n| 1 |\n\ntext\n\n" * (limits.SHEETS_MAX + 1),
            "markdown",
            "too_many_sheets",
            "limit 100, got 101",
        ),
        ("1\n" * (limits.ROWS_MAX + 1), "csv", "too_many_rows", "limit 200,000, got 200,001"),
        (",".join("1" * 1_001), "csv", "too_many_columns", "limit 1,000, got 1,001"),
        (f"{','.join('1' * 1_000)}\n" * 501, "csv", "too_many_cells", "limit 500,000, got 501,000"),
        (f"<table><tr>{'<td>1' * 1_001}</table>", "html", "too_many_columns", "limit 1,000, got more than 1,000"),
    ],
    ids=["sheets", "rows", "columns", "cells", "columns-html"],
)
def test_past_a_limit_the_error_names_it_and_the_way_out(tmp_path, content, source_format, code, limit):
    with pytest.raises(RenderError) as refused:
        book(content, tmp_path, source_format=source_format)
    assert refused.value.code == code
    assert refused.value.message.startswith("content: ")
    assert limit in refused.value.message


def test_pictures_are_a_warning(tmp_path):
    assert book(SALES + "\n![logo](x.png)\n", tmp_path).codes == ["picture_left_out"]


def test_cited_sources_are_listed_on_the_sheet_of_notes(tmp_path):
    sources = (Source(7, "The figures", "https://example.org/f"), Source(8, "Not cited"))
    made = book(SALES + "\nSee [[S:7]].\n", tmp_path, sources=sources)
    assert [row[0] for row in made.values("Notes")] == [
        "See [1].",
        "Sources",
        "1. The figures https://example.org/f",
    ]


def test_title_and_author_are_properties_of_the_file(tmp_path):
    made = book("---\ntitle: Costs\nauthor: Ann\n---\n\n" + SALES, tmp_path)
    assert (made.opened.properties.title, made.opened.properties.creator) == ("Costs", "Ann")


def test_a_file_has_neither_links_to_others_nor_macros(tmp_path):
    made = book(TWO + "\n" + CHART.format("bar"), tmp_path)
    with zipfile.ZipFile(made.path) as package:
        names = package.namelist()
        relations = "".join(package.read(name).decode() for name in names if name.endswith(".rels"))
    assert [name for name in names if "external" in name.lower() or "vba" in name.lower()] == []
    assert "External" not in relations


@pytest.mark.parametrize("blank", ["", ",", " , "])
def test_blank_rows_of_csv_are_rows_as_formulas_count_them(tmp_path, blank):
    source = f"\n,\na,b\n1,2\n{blank}\n3,=SUM(A2:A4)\n{blank}\n,\n"
    made = book(source, tmp_path, source_format="csv")
    assert made.values() == [["a", "b"], [1, 2], [None, None], [3, "=SUM(A2:A4)"]]
    assert made.facts["rows"] == 4
