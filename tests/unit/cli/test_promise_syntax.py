"""The contract of a run as options write it."""

import json

import pytest

from proofbox.cli.shared.exit_codes import CommandError, ExitCode
from proofbox.cli.shared.promises import parse_promises


def parsed(*texts):
    return [{k: v for k, v in entry.items() if k != "description"} for entry in parse_promises(texts, "by x")]


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("report.pdf", {"filename": "report.pdf"}),
        ("my report.csv", {"filename": "my report.csv"}),
        ("charts/*.png", {"glob": "charts/*.png"}),
        ("a.csv: min_rows=3, columns=a,b", {"filename": "a.csv", "min_rows": 3, "columns": ["a", "b"]}),
        ("a.csv: columns=a, b , min_rows = 3", {"filename": "a.csv", "columns": ["a", "b"], "min_rows": 3}),
        ("a b.pdf: min_pages=2,max_pages=9", {"filename": "a b.pdf", "min_pages": 2, "max_pages": 9}),
        ("c.png: not_blank, min_width=800", {"filename": "c.png", "not_blank": True, "min_width": 800}),
        ("c.png: not_blank=false", {"filename": "c.png", "not_blank": False}),
        ("**/*.csv: min_count=0, max_count=5", {"glob": "**/*.csv", "min_count": 0, "max_count": 5}),
        ("a.txt: encoding=cp1251", {"filename": "a.txt", "encoding": "cp1251"}),
        ("a:b.txt", {"filename": "a:b.txt"}),
        ("a: b.txt", {"filename": "a: b.txt"}),
        ('{"filename": "a.csv", "columns": ["x=1", "y, z"]}', {"filename": "a.csv", "columns": ["x=1", "y, z"]}),
    ],
)
def test_a_promise_is_a_name_a_pattern_checks_or_json(text, entry):
    assert parsed(text) == [entry]


def test_a_schema_is_a_file(tmp_path):
    schema = tmp_path / "my schema.json"
    schema.write_text(json.dumps({"type": "array"}))
    assert parsed(f"a.json: json_schema={schema}") == [{"filename": "a.json", "json_schema": {"type": "array"}}]


def test_an_own_description_stays_and_another_one_is_made():
    entries = parse_promises(['{"filename": "a.csv", "description": "mine"}', "b.csv"], "promised by x")
    assert [entry["description"] for entry in entries] == ["mine", "promised by x"]
    described = parse_promises(["a.csv: description=all rows, min_rows=1"], "promised by x")
    assert described == [{"filename": "a.csv", "description": "all rows", "min_rows": 1}]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([" "], "the name is blank"),
        (["a.csv: min_row=3"], "'min_row=3' is not a check; the checks are columns, "),
        (["a.csv: min_rows=three"], "min_rows is a whole number (got 'three')"),
        (["a.csv: min_rows=-1"], "min_rows is a whole number (got '-1')"),
        (["a.csv: min_rows=3, 4"], "'4' is not a check"),
        (["c.png: not_blank=maybe"], "not_blank is true or false (got 'maybe')"),
        (["a.json: json_schema=nowhere.json"], "No such file or directory; give the file of a JSON Schema"),
        (['{"filename": "a.csv"'], "this is not JSON"),
        (['{"filename": "a.csv", "rows": 3}'], "rows"),
        (["a.csv", "a.csv"], "are the same file"),
        (["a.png: min_rows=3"], "min_rows does not apply to .png files"),
        (["../a.csv"], "../a.csv"),
    ],
)
def test_a_wrong_promise_is_refused_before_anything_is_sent(texts, message):
    with pytest.raises(CommandError) as raised:
        parse_promises(texts, "by x")
    assert message in raised.value.message
    assert (raised.value.exit_code, raised.value.field) == (ExitCode.USAGE, "--promise")
    assert "contract[" not in raised.value.message
