import tempfile
from pathlib import Path

import pandas as pd
import pytest
from inspector_run import Case, compared, verdicts_of

NOT_BLANK = {"not_blank": True}


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
    Case(
        "refuses Latin-1",
        "a.csv",
        "a\nb\né\n".encode("latin-1"),
        "is not UTF-8: the byte at offset 4 does not belong there",
    ),
    Case("refuses a NUL", "a.csv", b"a,b\n1\x00,2\n", "is not text: it has a NUL byte at offset 5"),
    Case("refuses a cut character", "a.csv", "a\né".encode()[:-1], "is not UTF-8: its last character is cut off"),
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
