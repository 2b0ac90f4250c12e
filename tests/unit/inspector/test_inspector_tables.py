import csv
import io
import itertools
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspector_run import Case, compared, run_inspector, verdicts_of

from tests.support.examples import examples

NOT_BLANK = {"not_blank": True}
HINT = "; if another encoding is meant, give it as the check encoding"


def parquet(rows: int) -> bytes:
    frame = pd.DataFrame({"name": [f"n{row}" for row in range(rows)], "value": range(rows)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        frame.to_parquet(path, engine="pyarrow", index=False)
        return path.read_bytes()


def damaged(table: bytes) -> bytes:
    """The first page's bytes turned over; magic bytes and footer as they were."""
    return table[:8] + bytes(byte ^ 0xFF for byte in table[8:60]) + table[60:]


CASES = [
    Case(
        "reads a comma-separated table",
        "a.csv",
        b'name,value\r\n"a, b",1\r\nc,2\r\n',
        None,
        NOT_BLANK | {"min_rows": 2, "columns": ["value", "name"]},
        {"rows": 2, "columns": ["name", "value"]},
    ),
    *[
        Case(
            f"finds the delimiter {delimiter!r}",
            "a.csv",
            f"name{delimiter}value\n1,5{delimiter}2\n".encode(),
            None,
            {"columns": ["name", "value"]},
            {"rows": 1},
        )
        for delimiter in ";\t|"
    ],
    Case("cuts a TSV at tabs only", "a.tsv", b"a,b\tc\n1\t2\n", facts={"rows": 1, "columns": ["a,b", "c"]}),
    Case(
        "does not take a byte order mark for a name", "a.csv", b"\xef\xbb\xbfname\n1\n", None, {"columns": ["name"]}
    ),
    Case("does not count empty lines", "a.csv", b"\n\nname\n\n1\n\n", facts={"rows": 1, "columns": ["name"]}),
    Case("counts a record over several lines once", "a.csv", b'a,b\n"x\ny\nz",1\n', facts={"rows": 1}),
    Case("reads lines that end with a carriage return", "a.csv", b"a,b\r1,2\r3,4\r", facts={"rows": 2}),
    Case(
        "names the rows and the bound",
        "a.csv",
        b"a\n1\n",
        "has 1 row of data, the contract asks for at least 1,000",
        {"min_rows": 1000},
    ),
    Case(
        "names the columns that are missing and a few of those that are there",
        "a.csv",
        b"a,b,c,d,e,f,g\n",
        "lacks the column 'z'; it has 'a', 'b', 'c', 'd', 'e' and 2 more",
        {"columns": ["z"]},
        {"rows": 0},
    ),
    Case(
        "shows fifty columns and checks them all",
        "a.csv",
        ",".join(f"c{n}" for n in range(80)).encode(),
        None,
        {"columns": ["c79"]},
        {"columns": [f"c{n}" for n in range(50)]},
    ),
    Case("sees that a table is blank", "a.csv", b",,\n , \n", "is blank: no cell holds anything", NOT_BLANK),
    Case("sees a file of white space", "a.csv", b"\n \n", "is blank: no cell holds anything", NOT_BLANK),
    Case("reads Latin-1", "a.csv", "a\nb\né\n".encode("latin-1"), facts={"rows": 2, "columns": ["a"]}),
    *[
        Case(
            f"reads a table in {encoding}, with and without its name: {named}",
            "a.csv",
            f'{name};число\r\n"{name}; x";1\r\n'.encode(encoding),
            None,
            NOT_BLANK | {"columns": [name], "min_rows": 1} | named,
            {"rows": 1, "columns": [name, "число"]} if named else {"rows": 1},
        )
        for encoding, name in [
            ("cp1251", "имя"),
            ("koi8_u", "имя"),
            ("shift_jis", "名前"),
            ("gb18030", "名字"),
            ("utf-16", "名字"),
        ]
        for named in ({}, {"encoding": encoding})
    ],
    Case(
        "reads UTF-16 without a mark if it is named",
        "a.tsv",
        "a\tb\n1\t2\n".encode("utf-16-le"),
        None,
        {"encoding": "utf_16_le"},
        {"rows": 1},
    ),
    Case(
        "refuses what is not in the encoding that is named",
        "a.csv",
        "имя\n".encode("cp1251"),
        "is not 'shift_jis' text: the byte at offset 2 does not belong there",
        {"encoding": "shift_jis"},
    ),
    Case(
        "refuses UTF-8 where another one is named",
        "a.csv",
        "é\n".encode(),
        "is not 'ascii' text: …",
        {"encoding": "ascii"},
    ),
    Case(
        "refuses an encoding that there is none of",
        "a.csv",
        b"a\n",
        "cannot be checked: the encoding 'x' is …",
        {"encoding": "x"},
    ),
    Case(
        "refuses UTF-8 with a broken byte, and says what to give if another encoding is meant",
        "a.csv",
        "é,è,ê\n".encode() + b"\xff\n",
        "is not UTF-8: the byte at offset 9 does not belong there" + HINT,
    ),
    Case(
        "refuses bytes that are of no text", "a.csv", b"a,b\n\x01\xff,2\n", "is not UTF-8: the byte at offset 5 …"
    ),
    Case(
        "names the columns of an older encoding that are missing",
        "a.csv",
        "имя\n1\n".encode("cp1251"),
        "lacks the column 'x'; it …",
        {"columns": ["x"]},
    ),
    Case("refuses a NUL", "a.csv", b"a,b\n1\x00,2\n", "is not text: it has a NUL byte at offset 5"),
    Case(
        "refuses a cut character",
        "a.csv",
        "a\né".encode()[:-1],
        "is not UTF-8: its last character is cut off" + HINT,
    ),
    Case(
        "refuses a quotation mark that is never closed",
        "a.csv",
        b'a,b\n"1,2\n3,4\n',
        "is not a CSV table: unexpected end of data (near line 3)",
    ),
    Case(
        "refuses text after a closing quotation mark",
        "a.csv",
        b'a,b\n"1"x,2\n',
        "is not a CSV table: ',' expected…",
    ),
    Case(
        "refuses a field of 100 MB",
        "a.csv",
        b"a,b\n1," + b"x" * 100_000_000 + b"\n",
        "is not a CSV table: a field has more than 1,048,576 characters; is a quotation mark missing? (…",
    ),
    Case(
        "reads JSON lines",
        "a.jsonl",
        b'{"a": 1}\n\n{"b": "\xe2\x80\xa8"}\n',
        None,
        NOT_BLANK | {"min_rows": 2, "columns": ["b", "a"]},
        {"rows": 2, "columns": ["a", "b"]},
    ),
    Case(
        "names the line that is not JSON",
        "a.ndjson",
        b'{"a": 1}\n{"a": }\n',
        "is not JSON: Expecting value at line 2 column 7",
        facts={"rows": 1},
    ),
    Case(
        "holds every line to the schema",
        "a.jsonl",
        b'{"a": 1}\n{"a": "x"}\n',
        "does not satisfy the contract's json_schema: line 2: at $.a: 'x' is not of type 'integer'",
        {"json_schema": {"properties": {"a": {"type": "integer"}}}},
    ),
    Case(
        "names the line that has no columns",
        "a.jsonl",
        b'{"a": 1}\n[1]\n',
        "has no columns: line 2 is not an object",
        {"columns": ["a"]},
    ),
    Case(
        "names the lines that are missing",
        "a.jsonl",
        b"1\n",
        "has 1 row of data, the contract asks for at least 2",
        {"min_rows": 2},
    ),
    Case("sees that there is no line", "a.jsonl", b"\n \n", "is blank: it has no line", NOT_BLANK, {"rows": 0}),
    Case(
        "reads Parquet",
        "a.parquet",
        parquet(3),
        None,
        NOT_BLANK | {"min_rows": 3, "columns": ["value"]},
        {"rows": 3, "columns": ["name", "value"]},
    ),
    Case(
        "names the rows of a Parquet table",
        "a.parquet",
        parquet(3),
        "has 3 rows of data, the contract asks for at least 4",
        {"min_rows": 4},
    ),
    Case(
        "names the columns of a Parquet table",
        "a.parquet",
        parquet(3),
        "lacks the column 'x'; it has 'name', 'value'",
        {"columns": ["x"]},
    ),
    Case("sees that a Parquet table is blank", "a.parquet", parquet(0), "is blank: it has no row", NOT_BLANK),
    Case(
        "sees that text is no Parquet table", "a.parquet", b"a,b\n", "is not a Parquet table: it starts with 'a,b'"
    ),
    Case(
        "sees that a Parquet table is cut off",
        "a.parquet",
        parquet(3)[:-4],
        "is cut off: a Parquet table ends with PAR1",
    ),
    Case(
        "refuses a Parquet footer that is none",
        "a.parquet",
        b"PAR1" + b"\xff" * 50 + b"PAR1",
        "could not be opened…",
    ),
    Case("refuses a Parquet page that does not decode", "a.parquet", damaged(parquet(500)), "could not be opened…"),
]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    return verdicts_of(CASES, tmp_path_factory.mktemp("out"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_table(case, verdicts):
    actual, expected = compared(verdicts[case.claim], case)
    assert actual == expected


def read_by_the_library(text: str, delimiter: str) -> tuple[list[str], int]:
    """The header and the rows of data as Python's own reader sees them, one record after the other."""
    lines = io.StringIO(text, newline="")
    first = next((line for line in lines if line.strip()), "")
    records = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    header = next((record for record in records if record), [])
    return [name.strip() for name in header], sum(any(record) for record in records)


CELLS = st.text(alphabet=[*'ab "\n\r,;\t|é'], max_size=4)
ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@given(st.lists(st.lists(CELLS, max_size=4), max_size=6), ENDS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
@settings(max_examples=examples(60), deadline=None, derandomize=True)
def test_tables_of_any_cells_have_the_columns_and_rows_that_the_library_reads(records, end, quoting):
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator=end, quoting=quoting, delimiter="\t").writerows(records)
    text = out.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.tsv").write_text(text, encoding="utf-8", newline="")
        (verdict,) = run_inspector(Path(folder), [{"id": 0, "path": "a.tsv", "checks": {}}])
    # A line of a cell may end as any line does.
    columns, rows = read_by_the_library(text.replace("\r\n", "\n").replace("\r", "\n"), "\t")
    shown = [name.replace("\n", "\\n").replace("\t", "\\t") for name in columns]
    assert (verdict["problem"], verdict["facts"]) == (None, {"columns": shown, "rows": rows})


PLAIN_BLOCK = "1,2\n,\n\n3,x y\n" * 100_000  # more than is read at once; 200,000 rows


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("a,b\n" + PLAIN_BLOCK, 200_000),
        ("a,b\n" + PLAIN_BLOCK + "1,2", 200_001),
        ("a,b\r\n" + PLAIN_BLOCK.replace("\n", "\r\n"), 200_000),
        ("a,b\r" + PLAIN_BLOCK.replace("\n", "\r"), 200_000),
        ("a,b\n" + PLAIN_BLOCK + '1,"x\n\ny"\n' + PLAIN_BLOCK, 400_001),
        ('a,"b"\n' + PLAIN_BLOCK, 200_000),
        ("\n \n\na,b\n" + PLAIN_BLOCK, 200_000),
        ("a,b\n1," + "x" * 1_048_576 + "\n" + PLAIN_BLOCK, 200_001),
        ('a,b\n1,5" disk\n' + PLAIN_BLOCK, 200_001),
        ("a,b\n" + ",\n" * 1_000_000, 0),
    ],
    ids=range(10),
)
def test_rows_are_counted_alike_wherever_blocks_end_and_quotation_marks_begin(text, rows, tmp_path):
    (tmp_path / "a.csv").write_text(text, newline="")
    (verdict,) = run_inspector(tmp_path, [{"id": 0, "path": "a.csv", "checks": {"columns": ["b"]}}])
    assert (verdict["problem"], verdict["facts"]) == (None, {"rows": rows, "columns": ["a", "b"]})


LINES = 2_900_000  # 90 MB


@pytest.mark.parametrize(
    ("line", "cpu_s"),
    [("1234567,some name here,3.14159\n", 3), ('"1234567","some name here","3.14159"\n', 8)],
)
def test_a_table_of_90_megabytes_is_read_within_a_part_of_its_time(line, cpu_s, tmp_path):
    """The bound is the processor time that a file has, which no other process of the machine takes from it."""
    with (tmp_path / "a.csv").open("w") as file:
        file.write("id,name,value\n")
        file.writelines(itertools.repeat(line * 1_000, LINES // 1_000))
    file = {"id": 0, "path": "a.csv", "checks": {"min_rows": LINES, "columns": ["name"], "not_blank": True}}
    (verdict,) = run_inspector(tmp_path, [file], seconds_per_file=cpu_s, wall_seconds_per_file=200)
    assert (verdict["problem"], verdict["facts"]) == (
        None,
        {"rows": LINES, "columns": ["id", "name", "value"]},
    )
