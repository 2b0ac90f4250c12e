"""Cells of a workbook have the types that people mean: figures count, ids stay as they were written."""

import zipfile
from datetime import datetime, time

import pytest
from render.model import Source
from xlsx_reading import book, column

LAKHS = r"[>=10000000]##\,##\,##\,##0.0;[>=100000]##\,##\,##0.0;#,##0.0"


def moment(*parts):
    """A moment as a cell holds it: without a zone."""
    return datetime(*parts)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["5", "-7", "0"], [(5, "0"), (-7, "0"), (0, "0")]),
        (["1,200", "900"], [(1200, "#,##0"), (900, "#,##0")]),
        (["1.5", "2", "2.25"], [(1.5, "0.00"), (2, "0.00"), (2.25, "0.00")]),
        (["12%", "8.5 %"], [(0.12, "0.0%"), (0.085, "0.0%")]),
        (["$5.20", "-$1,000"], [(5.2, '"$"#,##0.00'), (-1000, '"$"#,##0.00')]),
        (["1.234,50 €", "2,5 €"], [(1234.5, '#,##0.00 "€"'), (2.5, '#,##0.00 "€"')]),
        (["USD 5", "7 EUR"], [(5, '"USD "#,##0'), (7, '#,##0 "EUR"')]),
        (["(1,200)", "900"], [(-1200, "#,##0_);(#,##0)"), (900, "#,##0_);(#,##0)")]),
        (["+5", "-3"], [(5, "+0;-0;0"), (-3, "+0;-0;0")]),
        (["\u22125"], [(-5, "0")]),
        (["1.5e-10"], [(1.5e-10, "0.0E+00")]),
        (["3.14159265358979"], [(3.14159265358979, "0." + "0" * 10)]),
        (["$(1,234.50)", "$7"], [(-1234.5, '"$"#,##0.00_);("$"#,##0.00)'), (7, '"$"#,##0.00_);("$"#,##0.00)')]),
        (["\u20135", "\u2013$1,000.5"], [(-5, "0"), (-1000.5, '"$"#,##0.0')]),
        (["1,23,456.5", "1,23,45,678"], [(123456.5, LAKHS), (12345678, LAKHS)]),
        (["1.234 \u20ac"], [(1234, '#,##0 "\u20ac"')]),
        (["\u20ac1.234"], [(1234, '"\u20ac"#,##0')]),
        (["A$1,200"], [(1200, '"A$"#,##0')]),
        (["1.234 \u20ac", "$1,200"], [(1234, '#,##0 "\u20ac"'), (1200, '"$"#,##0')]),
        (["$3.499", "$2.5"], [(3.499, '"$"#,##0.000'), (2.5, '"$"#,##0.000')]),
        (["\u20ac0.125"], [(0.125, '"\u20ac"#,##0.000')]),
        (["1\u202f234,5", "3,5"], [(1234.5, "#,##0.0"), (3.5, "#,##0.0")]),
    ],
)
def test_figures_are_numbers_that_look_as_they_were_written(tmp_path, texts, expected):
    assert column(texts, tmp_path) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["007", "123"],
        ["12345678901234567890", "5"],
        ["+49 30 1234567", "555"],
        ["+4930123456789"],
        ["1.2.3", "v1.2"],
        ["2024-01"],
        ["12E5", "1e5"],
        ["1-2", "3/4", "MARCH1"],
        ["555 123 4567"],
        ["192.168.0.1"],
        ["(555) 123-4567"],
        ["(3)", "text", "more"],
        ["12 kg", "1.2M", "n/a", "\u2014"],
        ["0x1F", "1,2,3", "--5", "5-", "$", "%", "NaN", "inf"],
        ["2024-13-01", "31.02.2024", "1899-12-31"],
        ["2024-01-31T10:00:00+01:00"],
        ["1.5e400", "1.5e-400"],
        ["$(5", "(5", "$(5))", "(USD 5"],
        ["1,23,45", "12,3,456"],
    ],
)
def test_what_is_no_figure_stays_the_text_that_it_was(tmp_path, texts):
    assert column(texts, tmp_path) == [(text, "General") for text in texts]


@pytest.mark.parametrize("head", ["ZIP", "Postal code", "Phone", "SKU", "Version", "Order no.", "ISBN"])
def test_a_head_that_names_ids_makes_a_column_of_texts(tmp_path, head):
    assert column(["10115", "1.10"], tmp_path, head) == [("10115", "General"), ("1.10", "General")]


@pytest.mark.parametrize(
    "head", ["Mobile no.", "Fax number", "Postal code", "Product code", "Build id", "Release #"]
)
def test_a_word_that_measures_have_too_needs_one_that_names_ids(tmp_path, head):
    assert column(["10115", "1.10"], tmp_path, head) == [("10115", "General"), ("1.10", "General")]


@pytest.mark.parametrize("head", ["Mobile", "Fax", "Lines of code", "Days to build", "Cost per release", "Serial"])
def test_measures_whose_heads_end_as_those_of_ids_are_numbers(tmp_path, head):
    assert column(["5000", "1.10"], tmp_path, head) == [(5000, "0.00"), (1.1, "0.00")]


def test_series_of_charts_are_never_ids(tmp_path):
    source = '<table data-chart="bar"><tr><th>Version<th>Phone<th>ZIP</tr><tr><td>1.10<td>40<td>5</tr></table>'
    assert book(source, tmp_path, source_format="html").values()[1] == ["1.10", 40, 5]


def test_columns_of_ids_say_nothing_of_the_marks_of_a_table(tmp_path):
    made = book("| Version | n | m |\n|---|---|---|\n| 1.10 | 1.234 | 3,5 |\n", tmp_path)
    assert made.values()[1] == ["1.10", 1234, 3.5]


@pytest.mark.parametrize(
    ("texts", "shown"),
    [(["1.234"], "n: 1.234 with decimals"), (["1.234", "900"], "n: 1.234"), (["1,200"], "n: 1,200 with thousands")],
)
def test_a_mark_that_was_guessed_is_reported(tmp_path, texts, shown):
    rows = "\n".join(f"| {text} | x |" for text in texts)
    assert shown in book(f"| n | x |\n|---|---|\n{rows}\n", tmp_path).message("ambiguous_numbers")


@pytest.mark.parametrize(
    "texts", [["1,200", "900"], ["1.234 \u20ac"], ["1.234", "3,5"], ["1,200", "2.5"], ["0.125"]]
)
def test_a_mark_with_evidence_is_not(tmp_path, texts):
    rows = "\n".join(f"| {text} | x |" for text in texts)
    assert book(f"| n | x |\n|---|---|\n{rows}\n", tmp_path).codes == []


def test_texts_with_digits_among_numbers_are_reported_once(tmp_path):
    rows = "| 5 | 1 |\n| 6 | ~2 |\n| 12 kg | 3 |\n| 7 | 4 |\n"
    made = book(f"| Weight | Count |\n|---|---|\n{rows}", tmp_path)
    assert made.codes == ["numbers_as_text"]
    assert "Weight: 12 kg; " in made.message("numbers_as_text")
    assert "Count: ~2." in made.message("numbers_as_text")


def test_texts_without_digits_and_columns_of_texts_are_not(tmp_path):
    rows = "| 5 | a1 |\n| n/a | b2 |\n| 7 | 3 |\n"
    assert book(f"| Weight | Name |\n|---|---|\n{rows}", tmp_path).codes == []


def test_a_head_that_only_begins_like_one_of_ids_does_not(tmp_path):
    assert column(["5000"], tmp_path, "Account balance") == [(5000, "0")]


def test_figures_that_stay_text_are_no_errors_to_excel(tmp_path):
    with zipfile.ZipFile(book("| ZIP | n |\n|---|---|\n| 01234 | 5 |\n", tmp_path).path) as package:
        page = package.read("xl/worksheets/sheet1.xml").decode()
    assert '<ignoredError sqref="A1:A2" numberStoredAsText="1"/>' in page


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-01-31"], [(moment(2024, 1, 31), "yyyy-mm-dd")]),
        (["2024-01-31 10:30"], [(moment(2024, 1, 31, 10, 30), "yyyy-mm-dd hh:mm")]),
        (["31.01.2024"], [(moment(2024, 1, 31), "dd.mm.yyyy")]),
        (
            ["03/04/2024", "31/01/2024"],
            [(moment(2024, 4, 3), "dd/mm/yyyy"), (moment(2024, 1, 31), "dd/mm/yyyy")],
        ),
        (
            ["03/04/2024", "01/31/2024"],
            [(moment(2024, 3, 4), "mm/dd/yyyy"), (moment(2024, 1, 31), "mm/dd/yyyy")],
        ),
        (["9999-12-31"], [(moment(9999, 12, 31), "yyyy-mm-dd")]),
        (["Jan 31, 2024"], [(moment(2024, 1, 31), "mmm d, yyyy")]),
        (["31 January 2024"], [(moment(2024, 1, 31), "d mmmm yyyy")]),
        (["2024-01-31T10:00:05Z"], [(moment(2024, 1, 31, 10, 0, 5), 'yyyy-mm-dd hh:mm:ss"Z"')]),
        (["2024-01-31T10:00:05.250Z"], [(moment(2024, 1, 31, 10, 0, 5, 250_000), 'yyyy-mm-dd hh:mm:ss.000"Z"')]),
        (["9:05", "17:00"], [(time(9, 5), "h:mm"), (time(17, 0), "hh:mm")]),
        (["09:30", "17:00"], [(time(9, 30), "hh:mm"), (time(17, 0), "hh:mm")]),
    ],
)
def test_dates_and_times_are_dates_and_times(tmp_path, texts, expected):
    assert column(texts, tmp_path) == expected


def test_dates_that_can_be_read_in_two_ways_stay_text_with_a_warning(tmp_path):
    made = book("| Day | x |\n|---|---|\n| 03/04/2024 | 1 |\n", tmp_path)
    assert made.values()[1][0] == "03/04/2024"
    assert "Day: 03/04/2024" in made.message("ambiguous_dates")


def test_true_and_false_are_booleans(tmp_path):
    assert column(["true", "FALSE"], tmp_path) == [(True, "General"), (False, "General")]


def test_one_decimal_comma_decides_for_all_figures_of_a_table(tmp_path):
    made = book("| a | b |\n|---|---|\n| 1.234 | 3,5 |\n| 2.000 | 4,25 |\n", tmp_path)
    assert made.values()[1:] == [[1234, 3.5], [2000, 4.25]]


def test_years_above_columns_are_numbers_other_heads_are_texts(tmp_path):
    made = book("| Year | 2024 | 01 |\n|---|---|---|\n| a | 1 | 2 |\n", tmp_path)
    assert made.values()[0] == ["Year", 2024, "01"]


def test_text_that_begins_as_a_formula_does_is_marked_as_text(tmp_path):
    made = book("| a | b |\n|---|---|\n| @cmd | -x+y |\n", tmp_path)
    assert [(cell.value, cell.data_type, cell.quotePrefix) for cell in made.sheet()[2]] == [
        ("@cmd", "s", True),
        ("-x+y", "s", True),
    ]


def test_a_cell_past_what_the_format_holds_is_cut_with_a_warning(tmp_path):
    made = book(f"| a | b |\n|---|---|\n| {'x ' * 20_000} | 1 |\n", tmp_path)
    assert len(made.values()[1][0]) == 32_767
    assert "A2 has 39,999 characters" in made.message("content_lost")


@pytest.mark.parametrize(
    ("text", "expected", "comment"),
    [
        ("1,200[^1]", (1200, "#,##0"), "Notes: \u00b9"),
        ("$1,200 [[S:1]]", (1200, '"$"#,##0'), "Notes: [1]"),
        ("7% [[S:9]]", (0.07, "0%"), "Notes: [9?]"),
        ("2024-01-31[^1] [[S:1]]", (moment(2024, 1, 31), "yyyy-mm-dd"), "Notes: \u00b9 [1]"),
        ("about five[^1]", ("about five\u00b9", "General"), None),
        ("10<sup>6</sup>", ("10\u2076", "General"), None),
        ("1,5<sub>2</sub>", ("1,5\u2082", "General"), None),
        ("5<sup>th</sup>", ("5th", "General"), None),
    ],
)
def test_references_are_no_digits_of_a_figure(tmp_path, text, expected, comment):
    source = f"| n | x |\n|---|---|\n| {text} | 1 |\n| 2,345 | 1 |\n\n[^1]: Audited.\n"
    made = book(source, tmp_path, sources=[Source(1, "Report", "https://example.org/")])
    cell = made.sheet()["A2"]
    assert (cell.value, cell.number_format, cell.comment and cell.comment.text) == (*expected, comment)
    assert made.sheet()["A3"].value == 2345


def test_a_figure_that_is_a_link_counts(tmp_path):
    source = "| n | day |\n|---|---|\n| [$1,200](https://a.example/) | [2024-01-31](https://b.example/) |\n"
    made = book(source, tmp_path)
    figure, day = made.sheet()["A2"], made.sheet()["B2"]
    assert (figure.value, figure.number_format) == (1200, '"$"#,##0')
    assert (day.value, day.number_format) == (moment(2024, 1, 31), "yyyy-mm-dd")
    assert (figure.hyperlink.target, day.hyperlink.target) == ("https://a.example/", "https://b.example/")


def test_references_are_no_part_of_a_formula_raised_digits_make_it_a_text(tmp_path):
    note = '<sup><a href="#fn1">1</a></sup>'
    source = f"<table><tr><td>=1+1{note}</td><td>=10<sup>6</sup></td></tr></table>"
    made = book(source, tmp_path, source_format="html")
    first, second = made.sheet()["A1"], made.sheet()["B1"]
    assert (first.value, first.data_type, first.comment.text) == ("=1+1", "f", "Notes: \u00b9")
    assert (second.value, second.data_type, made.codes) == ("=10\u2076", "s", ["formula_as_text"])


def test_a_reference_alone_is_a_text_and_no_link_empty_scripts_are_nothing(tmp_path):
    source = "| a | b |\n|---|---|\n| [^1] | 5<sup></sup> |\n\n[^1]: Audited.\n"
    made = book(source, tmp_path)
    assert (made.values()[1], made.codes) == (["\u00b9", 5], [])
