"""Commas and brackets of JSON, counted as its bytes come."""

import json

import pytest

from proofbox.service.mcp_sources.json_marks import JsonMarks


def count(body, size):
    marks = JsonMarks()
    return sum(marks.count(body[start : start + size]) for start in range(0, len(body), size))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([1, [2], {"a,[{": 3}], 5),
        (["a,b", "[", '"', '",', "\\", '\\",[', "\\\\,"], 7),
        ({"a": '\\"' * 20 + ",", "b": []}, 3),
        ("é,[", 0),
    ],
)
def test_marks_within_texts_are_not_counted_wherever_the_bytes_are_cut(value, expected, size):
    assert count(json.dumps(value).encode(), size) == expected
    assert count(json.dumps(value, ensure_ascii=False).encode(), size) == expected


@pytest.mark.parametrize("size", [1, 2, 5, 1_000])
@pytest.mark.parametrize("before", [b': "', b": \\", b': "\\', b'other: "\\"'])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_no_other_line_of_a_stream_hides_what_comes_after_it(size, before, end):
    assert count(before + end + b"data: [1,2,3]" + end, size) == 3
