"""Expressions of version 1 as proposals in Python; the proposals compute what the originals say."""

import pytest

from proofbox.service.gateway.compute.program import evaluate
from proofbox.service.gateway.imports.old_expressions import TEXT, is_python, propose_python

PROPOSALS = {
    "age >= 18 ? 'adult' : 'minor'": "'adult' if age >= 18 else 'minor'",
    "a && b || !c": "a and b or not c",
    "a !== b && a === b": "a != b and a == b",
    "a ? b ? 1 : 2 : 3": "(1 if b else 2) if a else 3",
    "a ? 1 : b ? 2 : 3": "1 if a else 2 if b else 3",
    "max(a ? 1 : 2, [b ? 3 : 4])": "max(1 if a else 2, [3 if b else 4])",
    "Math.max(a, 2) + Math.floor(b)": "max(a, 2) + math.floor(b)",
    "ok == true ? null : false": "None if ok == True else False",
    "'a && b ? c : true' + \"!x\" ": "'a && b ? c : true' + \"!x\"",
    "{{input.a}} && {{input.b}}": "{{input.a}} and {{input.b}}",
}


@pytest.mark.parametrize(("old", "new"), PROPOSALS.items())
def test_an_expression_has_a_proposal(old, new):
    assert not is_python(old) or old.strip() == new
    assert propose_python(old) == new


@pytest.mark.parametrize("old", ["a ? b", "a => b", "(a ? 1 : 2", "x++", "`text`", "a ?? b", "\0", "new Date()"])
def test_what_has_no_simple_form_has_no_proposal(old):
    assert propose_python(old) is None


def test_a_proposal_computes_the_same():
    for amount, expected in ((5, "auto"), (50_000, "director"), (None, "none")):
        text = propose_python("amount === null ? 'none' : amount > 10000 ? 'director' : 'auto'")
        assert evaluate({"expression": text, "input": {"amount": amount}, "values": {}}) == {"result": expected}


DEEP = {
    "brackets": "(" * 9_000 + ")" * 9_000,
    "choices": "a?" * 4_900 + "b" + ":c" * 4_900,
    "choices in brackets": "(a?" * 30 + "b" + ":c)" * 30 + "?",
    "open brackets": "(a?" * 6_000,
    "negations": "!" * 20_000,
    "too long": "a + " * 6_000 + "true",
}


@pytest.mark.parametrize("old", DEEP.values(), ids=DEEP)
def test_a_deep_or_long_expression_has_no_proposal(old):
    assert propose_python(old) is None  # the time of the test is bounded


def test_texts_that_are_not_closed_are_read_once():
    # Each \' could begin a text: a pattern that begins again at each of them takes hours here.
    assert [len(text) for text in TEXT.findall("'" + "\\'" * 500_000)] == [1_000_001]


def test_an_escaped_line_end_does_not_end_a_text():
    assert propose_python("a ? 'b\\\n c ? d' : e") == "'b\\\n c ? d' if a else e"


@pytest.mark.parametrize(
    ("old", "new"),
    {
        "{'a': b ? 1 : 2}": None,
        "a ? x[b ? 1 : 2] : f(c)(d ? 3 : 4)": "x[1 if b else 2] if a else f(c)(3 if d else 4)",
        "a ? b : c ? d ? 1 : 2 : 3": "b if a else (1 if d else 2) if c else 3",
        "f(a,b ? 1 : 2,[c]) + g()": "f(a,1 if b else 2,[c]) + g()",
    }.items(),
)
def test_choices_stay_within_their_brackets(old, new):
    assert propose_python(old) == new
