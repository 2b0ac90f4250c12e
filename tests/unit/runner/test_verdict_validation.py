"""Which answers of an inspector count: a hostile file may have taken it over."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

RUNNER = Path(__file__).parents[3] / "sandbox_images" / "runner"
LINE_BYTES_MAX = 4 * 65_536
# In an interpreter of its own, as its modules have the names of others.
PROGRAM = f"""
import json, sys
sys.path[:0] = [{str(RUNNER)!r}, {str(RUNNER.parent)!r}]
import verdict_validation
files = [{{"id": 10 + number}} for number in range(3)]
lines = [line.encode("latin-1") for line in json.load(sys.stdin)]
print(json.dumps(list(verdict_validation.validate_verdicts(files, lines).items())))
"""
FILE = {"id": 10, "mime": "text/plain"}


def said(**more):
    return json.dumps({**FILE, "ok": True, "problem": None, "facts": {}, **more}).encode()


def without(name):
    verdict = json.loads(said())
    del verdict[name]
    return json.dumps(verdict).encode()


def judged(*lines):
    """The verdicts that are taken of so many lines, by the ids of their files."""
    text = json.dumps([line.decode("latin-1") for line in lines])
    done = subprocess.run([sys.executable, "-c", PROGRAM], input=text, capture_output=True, check=True, text=True)
    return dict(json.loads(done.stdout))


def taken(mime, **more):
    return {"ok": True, "problem": None, "facts": {}, "mime": mime, **more}


def of_bytes(count):
    """A verdict in a line of so many bytes."""
    return said(facts={"a": "x" * (count - len(said(facts={"a": ""})))})


def test_verdicts_are_taken_by_the_ids_of_files_in_any_order_and_the_first_of_each():
    bad = {"id": 12, "mime": "text/csv", "ok": False, "problem": "is\nempty"}
    assert judged(said(**bad), said(facts={"lines": 3}), said(ok=False, problem="no")) == {
        12: taken("text/csv", ok=False, problem="is empty"),
        10: taken("text/plain", facts={"lines": 3}),
    }


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
        said(id=9),
        said(id="10"),
        said(mime=None),
        said(more=1),
        *(without(name) for name in ("id", "mime", "ok", "problem", "facts")),
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
        *(said(facts={"a": 0}).replace(b": 0}", b": %b}" % number) for number in (b"NaN", b"Infinity", b"1e999")),
        of_bytes(LINE_BYTES_MAX + 1),
        b"[" * 100_000,
        said(facts={"a": 0}).replace(b": 0}", b": " + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        said(facts={"a": 0}).replace(b": 0}", b": " + b"[" * 60_000 + b"}"),
        b'{"ok":' * 10_000,
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_a_line_that_is_not_a_verdict_is_passed_over(line):
    assert judged(line, said(id=11)) == {11: taken("text/plain")}


def test_a_verdict_may_fill_its_line():
    verdicts = judged(of_bytes(LINE_BYTES_MAX), said(id=11))
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
