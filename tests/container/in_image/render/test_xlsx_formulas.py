"""Formulas of a workbook: what Excel opens and what stays inside is a formula, the rest text with a warning."""

import pytest
from xlsx_reading import book

TABLE = "| Item | Units | Price | Sum |\n|---|---|---|---|\n| a | 2 | $5.20 | {} |\n"


def formula(text, root):
    made = book(TABLE.format(text), root)
    return made.sheet()["D2"], made


@pytest.mark.parametrize(
    ("written", "in_the_file"),
    [
        ("=B2*C2", "=B2*C2"),
        ("=B2*C2+B2*C2", "=B2*C2+B2*C2"),
        (r"=B2\*C2", "=B2*C2"),
        ("=sum(b2:c2)", "=SUM(B2:C2)"),
        ('=IF(B2<C2,"_low_","*high*")', '=IF(B2<C2,"_low_","*high*")'),
        ("=STDEV.S(B2:C2)", "=_xlfn.STDEV.S(B2:C2)"),
        ('=XLOOKUP("a",A2:A9,B2:B9)', '=_xlfn.XLOOKUP("a",A2:A9,B2:B9)'),
        ("=FILTER(A2:A9,B2:B9>1)", "=_xlfn._xlws.FILTER(A2:A9,B2:B9>1)"),
        ("=SUM(UNIQUE(B2:B9))", "=SUM(_xlfn.UNIQUE(B2:B9))"),
        ("=$B$2*(1-10%)^2", "=$B$2*(1-10%)^2"),
        ("=IF(B2,,2)", "=IF(B2,,2)"),
        ("=TODAY()", "=TODAY()"),
        ("=ROW(D2)", "=ROW(D2)"),
        ('=HYPERLINK("https://example.org/a","a")', '=HYPERLINK("https://example.org/a","a")'),
        ("=true", "=TRUE"),
    ],
)
def test_a_formula_is_one(tmp_path, written, in_the_file):
    cell, made = formula(written, tmp_path)
    text = cell.value if isinstance(cell.value, str) else cell.value.text  # one of several cells is an object
    assert (cell.data_type, text, made.codes) == ("f", in_the_file, [])


@pytest.mark.parametrize(
    "text",
    [
        '=WEBSERVICE("http://example.org/?"&B2)',
        "='[other.xlsx]Sheet1'!A1",
        "=[1]Sheet1!A1",
        "='file:///etc/passwd'#$Sheet1.A1",
        "='\\\\\\\\host\\\\share\\\\[b.xlsx]S'!A1",
        '=HYPERLINK("file:///c:/x.exe","a")',
        '=HYPERLINK("https://example.org/"&B2,"a")',
        "=HYPERLINK(B2)",
        '=INDIRECT("A1")',
        '=DDE("cmd","/c calc","x")',
        '=RTD("x","","y")',
        '=IMAGE("https://example.org/a.png")',
        '=IMPORTXML("https://example.org","//a")',
        '=SUM(1,_xlfn.WEBSERVICE("http://example.org"))',
        "=cmd\\|'/c calc'!A0",
        '=CALL("urlmon","x")',
    ],
)
def test_a_formula_that_reaches_out_of_the_workbook_is_text_with_a_warning(tmp_path, text):
    cell, made = formula(text, tmp_path)
    assert (cell.data_type, cell.quotePrefix, made.codes) == ("s", True, ["formula_refused"])
    assert "D2" in made.message("formula_refused")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("=SUM(B2:C2", "a bracket or an operand is missing"),
        ("=B2+", "a bracket or an operand is missing"),
        ("=B2 C2", "an operator is missing"),
        ("=SUM(B2;C2)", "arguments stand apart by commas"),
        ("=SUMME(B2:C2)", "SUMME is not a function"),
        ("=LET(x,1,x)", "LET is not a function"),
        ("=Nowhere!B2", "there is no sheet Nowhere"),
        ("=SUM(B2:D2)", "it counts with its own cell in B2:D2"),
        ("=price*2", "price is neither a cell nor a figure"),
        ("=ZZZ1", "ZZZ1 is past the last cell"),
        ("`=B2*C2`", "it is marked as code"),
    ],
)
def test_what_excel_would_not_open_is_text_with_the_reason(tmp_path, text, reason):
    cell, made = formula(text, tmp_path)
    assert (cell.data_type, cell.value) == ("s", text.strip("`"))
    assert reason in made.message("formula_as_text")


@pytest.mark.parametrize("text", ["=>", "===", "=", "=|="])
def test_arrows_and_rules_are_text_without_a_warning(tmp_path, text):
    _, made = formula(text.replace("|", "\\|"), tmp_path)
    assert made.codes == []


def test_a_formula_has_the_format_of_the_money_that_it_counts(tmp_path):
    source = (
        "## Sales\n\n| Item | Units | Price | Sum |\n|---|---|---|---|\n| a | 2 | $5.20 | =B2*C2 |\n"
        "| b | 3 | $1.00 | =B3*C3 |\n| Total | =SUM(B2:B3) | | =SUM(D2:D3) |\n\n"
        "## Summary\n\n| What | Value |\n|---|---|\n| Sum | ='Sales'!D4 |\n| Share | =Sales!D2/Sales!D4 |\n"
    )
    made = book(source, tmp_path)
    assert [made.cell(place, "Sales") for place in ("D2", "B4", "D4")] == [
        ("=B2*C2", '"$"#,##0.00'),
        ("=SUM(B2:B3)", "0"),
        ("=SUM(D2:D3)", '"$"#,##0.00'),
    ]
    assert made.cell("B2", "Summary") == ("='Sales'!D4", '"$"#,##0.00')
    assert made.codes == []


def test_formulas_of_csv_and_html_are_read_in_the_same_way(tmp_path):
    csv = 'a,b\n2,=A2*3\n3,"=IF(A3>2,""x"",1)"\n4,"=WEBSERVICE(""http://x"")"\n'
    made = book(csv, tmp_path, source_format="csv")
    assert [made.sheet()[f"B{row}"].data_type for row in (2, 3, 4)] == ["f", "f", "s"]
    html = "<table><tr><th>a<th>b<tr><td>2<td>=IF(A2&lt;3,1,2)</table>"
    assert book(html, tmp_path, source_format="html").values()[1][1] == "=IF(A2<3,1,2)"


@pytest.mark.parametrize(
    ("head", "formula", "shape"),
    [
        ("Change %", "=A2-B2", "0.0%"),
        ("Per cent", "=A2", "0.0%"),
        ("Gross margin", "=A2/B2", "0.0%"),
        ("Growth", "=A2/B2-1", "0.0%"),
        ("Margin", "=A2-B2", "0"),
        ("Margin (EUR)", "=A2/B2", "General"),
        ("Earnings per share", "=A2/B2", "General"),
        ("Share price", "=A2/B2", "General"),
        ("Hourly rate", "=A2/B2", "General"),
        ("Exchange rate", "=A2/B2", "General"),
    ],
)
def test_a_formula_is_a_percentage_only_if_its_head_and_it_show_that(tmp_path, head, formula, shape):
    made = book(f"| a | b | {head} |\n|---|---|---|\n| 6 | 3 | {formula} |\n", tmp_path)
    assert made.cell("C2") == (formula, shape)


@pytest.mark.parametrize(
    ("asked", "named", "written"),
    [
        ("Q1/Q2", "'Q1/Q2'", "Q1 Q2"),
        ("Sales: north", "'Sales: north'", "Sales north"),
        (
            "Sales  of all the regions of the North",
            "'Sales of all the regions of the North'",
            "Sales of all the regions of",
        ),
        ("Sales: north", "'Sales north'", "Sales north"),
    ],
)
def test_a_sheet_is_found_by_the_name_that_was_asked_for(tmp_path, asked, named, written):
    source = f"| a | b |\n|---|---|\n| 5 | 1 |\n\ntext\n\n| c | d |\n|---|---|\n| ={named}!A2 | 1 |\n"
    made = book(source, tmp_path, options={"sheets": [asked, "Sum"]})
    assert made.names[:2] == [written, "Sum"]
    assert made.cell("A2", "Sum")[0] == f"='{written}'!A2"
    assert made.codes == ["sheet_renamed"]
    assert made.message("sheet_renamed").endswith(f" is {written}.")


@pytest.mark.parametrize("named", ["'file:///a'", "'C:\\a'", "'[a]Sales'", "'Q1/Q3'", "'Sales:Sum'"])
def test_other_sheets_and_files_are_not_found(tmp_path, named):
    source = f"| a | b |\n|---|---|\n| 5 | ={named}!A2 |\n"
    made = book(source, tmp_path, options={"sheets": ["Sales"]})
    assert made.sheet()["B2"].data_type == "s"
    assert made.codes in (["formula_refused"], ["formula_as_text"])
