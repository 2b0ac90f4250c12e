"""What the runner believes of an inspector that has opened hostile files itself."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
LINE_BYTES_MAX = 65_536
MIMES = ["text/plain", "text/csv", "application/json"]
# In an interpreter of its own, as its modules have the names of others.
PROGRAM = f"""
import json, sys
sys.path.insert(0, {str(RUNNER)!r})
import believing
files = [{{"id": 10 + number}} for number in range({len(MIMES)})]
lines = [line.encode("latin-1") for line in json.load(sys.stdin)]
print(json.dumps(list(believing.judged_here(files, {MIMES}, lines).items())))
"""


BY_ID = PROGRAM.replace(f"judged_here(files, {MIMES}, lines)", "by_id(files, lines)")


def said(**more):
    return json.dumps({"ok": True, "problem": None, "facts": {}, **more}).encode()


def judged(*lines, program=PROGRAM):
    """The verdicts that are taken of so many lines, by the ids of their files."""
    text = json.dumps([line.decode("latin-1") for line in lines])
    done = subprocess.run([sys.executable, "-c", program], input=text, capture_output=True, check=True, text=True)
    return dict(json.loads(done.stdout))


def taken(mime, **more):
    return {"ok": True, "problem": None, "facts": {}, "mime": mime, **more}


def of_bytes(count):
    """A verdict in a line of so many bytes."""
    return said(facts={"a": "x" * (count - len(said(facts={"a": ""})))})


def test_verdicts_are_taken_in_order_with_the_media_types_that_were_announced():
    bad = {"ok": False, "problem": "is empty"}
    assert judged(said(facts={"lines": 3}), said(**bad), said()) == {
        10: taken("text/plain", facts={"lines": 3}),
        11: taken("text/csv", **bad),
        12: taken("application/json"),
    }


def test_of_fewer_lines_there_are_fewer_verdicts_and_none_of_more_lines_than_files():
    assert [list(judged(*[said()] * lines)) for lines in (0, 1, 3, 5)] == [[], [10], [10, 11, 12], [10, 11, 12]]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b" ",
        b"no JSON",
        said()[:-1],
        said()[: len(said()) // 2],
        b"\xff\xfe" + said()[:20],
        said().replace(b"null", b'"\xc3"'),
        b"null",
        b"[]",
        b'["ok", "problem", "facts"]',
        b'"ok"',
        b"{}",
        said(id=11),
        said(mime="text/html"),
        b'{"ok": true, "problem": null}',
        b'{"ok": true, "facts": {}}',
        b'{"problem": null, "facts": {}}',
        said(ok=1),
        said(ok="true"),
        said(ok=None),
        said(ok=False),
        said(problem="but it is bad"),
        said(problem=""),
        said(ok=0, problem="is empty"),
        said(ok=False, problem=5),
        said(ok=False, problem=["is empty"]),
        said(facts=[]),
        said(facts=None),
        said(facts="{}"),
        *(said(facts={"a": fact}) for fact in (1.5, None, {}, [[]], [None], {"b": 1})),
        *(said(facts={"a": 0}).replace(b"0", b"%b" % number) for number in (b"NaN", b"Infinity", b"1e999")),
        of_bytes(LINE_BYTES_MAX + 1),
        b"[" * 100_000,
        said(facts={"a": 0}).replace(b"0", b"[" * 100_000 + b"]" * 100_000),
        said(facts={"a": 0}).replace(b"0", b"[" * 60_000),
        b'{"ok":' * 10_000,
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_nothing_is_believed_from_the_first_line_that_is_no_verdict(line):
    assert judged(said(), line, said()) == {10: taken("text/plain")}


def test_of_an_inspector_that_judges_in_children_the_first_sound_verdict_on_each_file_is_taken():
    row = {"id": 10, "mime": "text/plain"}
    no_verdicts = [
        b"no JSON",
        b"null",
        said(),
        said(**row | {"id": 9}),
        said(**row | {"mime": None}),
        said(**row, ok=1),
    ]
    no_verdicts += [said(**row | {"id": "10"}), said(**row, facts={"a": 0}).replace(b": 0}", b": NaN}")]
    bad = said(**row | {"id": 12}, ok=False, problem="is\nempty")
    assert judged(*no_verdicts, bad, said(**row), said(**row, ok=False, problem="no"), program=BY_ID) == {
        12: taken("text/plain", ok=False, problem="is empty"),
        10: taken("text/plain"),
    }


def test_a_verdict_may_fill_its_line():
    verdicts = judged(of_bytes(LINE_BYTES_MAX), said())
    assert [len(verdict["facts"]) for verdict in verdicts.values()] == [1, 0]


@pytest.mark.parametrize(
    ("problem", "shown"),
    [
        ("is empty", "is empty"),
        ("two\nlines\r\nof it", "two lines  of it"),
        ("a\x00b\x1b[31mc\x7fd\x85e\u2028f\u202eg\udc80h\u00a0i", "a b [31mc d e f g h i"),
        ("日本 é \U0001f600", "日本 é \U0001f600"),
        ("x" * 300 + "y", "x" * 300),
        ("\n" * 30_000, " " * 300),
        ("", ""),
    ],
)
def test_a_problem_is_one_printable_line_of_at_most_300_characters(problem, shown):
    assert judged(said(ok=False, problem=problem)) == {10: taken("text/plain", ok=False, problem=shown)}
