"""Whether a text can be read as its extension says, and that no text can stop the service over it."""

import pytest

from proofbox.service.react.syntax_check import CHECKED_CHARS_MAX, find_syntax_problem
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from proofbox.service.timeline.token_counter import count_tokens

GOOD = {
    "a.json": '{"a": [1, 2]}',
    "a.geojson": "{}",
    "a.jsonl": '{"a": 1}\n\n{"a": 2}\n',
    "a.yaml": "a: &x [1, 2]\nb: *x\nc: !anything {d: e}\n",
    "a.xml": '<?xml version="1.0" encoding="utf-8"?><a>\u00fc</a>',
    "a.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
    "a.csv": 'a,b\r\n"1\n2",3\r\n\r\n',
    "a.py": "async def f():\n    return 1\n",
    "a.toml": "[a]\nb = 1\n",
    "a.md": "{",
    "noextension": "{",
}
BAD = {
    "a.json": ('{"a": 1,}', "Expecting property name"),
    "A.JSON": ("{", "line 1 column 2"),
    "a.jsonl": ('{"a": 1}\n{"a"}\n', "line 2"),
    "a.yml": ("a: b: c\n", "line 1"),
    "a.xml": ("<a><b></a>", "mismatched tag"),
    "a.svg": ('<!DOCTYPE s [<!ENTITY x "y">]><svg>&x;</svg>', "entities"),
    "a.csv": ("a,b\n1,2,3\n", "line 2: 3 fields"),
    "a.py": ("def f(:\n", "(line 1)"),
    "a.toml": ("a = = 1\n", "line 1"),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_text_that_is_what_its_name_says_has_no_problem(name):
    assert find_syntax_problem(name, GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_what_keeps_a_text_from_being_read_is_said_with_its_place(name):
    text, said = BAD[name]

    problem = find_syntax_problem(name, text)

    assert problem is not None
    assert (problem.startswith("does not parse: "), said in problem) == (True, True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "[" * 500_000),
        ("a.toml", "a = " + "[" * 4_000),
        ("a.py", "-" * 500_000 + "1"),
        ("a.py", "a" + ".b" * 500_000),
        ("a.py", "f" + "(x)" * 300_000),
    ],
)
def test_what_is_nested_too_deep_is_told_and_stops_nothing(name, text):
    assert find_syntax_problem(name, text) == "is nested too deep"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.yaml", "[" * 200_000),
        ("a.yaml", "- " * 200_000),
        ("a.toml", "a." * 100_000 + "b = 1"),
        ("a.json", "{" + " " * CHECKED_CHARS_MAX),
    ],
)
def test_what_would_take_too_long_is_not_checked(name, text):
    assert find_syntax_problem(name, text) is None


def test_entities_of_a_document_type_are_never_expanded():
    bomb = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))

    assert find_syntax_problem("a.xml", f'<!DOCTYPE a [<!ENTITY l0 "x">{bomb}]><a>&l11;</a>') == (
        "does not parse: it defines entities, which are not read"
    )


def test_a_large_text_is_counted_in_pieces_to_within_a_token_for_each():
    counter = BpeTokenCounter()
    text = "The quick brown fox jumps over it, 12345. " * 6_000

    pieces = -(-len(text) // 16_384)
    assert abs(count_tokens(counter, text) - counter.count(text)) <= 2 * pieces
    assert count_tokens(counter, "one two") == counter.count("one two")
    assert count_tokens(counter, "") == 0
