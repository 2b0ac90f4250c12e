"""Expressions of configurations: placeholders are values, what is no expression is refused, results are JSON."""

import json
import math

import pytest

from proofbox.service.gateway.agents.checker import check_configuration
from proofbox.service.gateway.compute.expression import ExpressionError, is_own_expression, parse_expression
from proofbox.service.gateway.compute.program import DEPTH_MAX, RESULT_BYTES_MAX, evaluate
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.filling import MISSING, TemplateFiller
from proofbox.service.gateway_errors import InvalidToolError

CLOSED = {"type": "object", "properties": {"price": {"type": "number"}}, "additionalProperties": False}


def computed(template, **params):
    """What a call computes, as the sandbox's program does."""
    expression = parse_expression(template)
    filler = TemplateFiller(params, "call-1")
    filled = {name: filler.fill_part(part) for name, part in expression.values.items()}
    values = {name: None if value is MISSING else value for name, value in filled.items()}
    request = {"expression": expression.source, "input": params, "values": values}
    return evaluate(json.loads(json.dumps(request)))


def refused(expression, schema=None):
    tool = {
        "name": "t",
        "description": "d",
        "executionType": "gateway",
        "execution": {"operation": "evaluate", "expression": expression},
    }
    if schema is not None:
        tool["inputSchema"] = schema
    document = {"version": "2", "agent": {"name": "helper"}, "tools": [tool]}
    with pytest.raises(InvalidToolError) as caught:
        check_configuration(document, Environment(), "a/b")
    assert {error.field for error in caught.value.errors} == {"tools[0].execution.expression"}
    return [error.message for error in caught.value.errors]


def accepted(expression, schema):
    execution = {"operation": "evaluate", "expression": expression}
    tool = {"name": "t", "executionType": "internal", "inputSchema": schema, "execution": execution}
    document = {"version": "2", "agent": {"name": "helper"}, "tools": [tool]}
    return check_configuration(document, Environment(), "a/b").configuration


@pytest.mark.parametrize(
    ("template", "params", "result"),
    [
        ("{{input.price}} * 1.19", {"price": 100}, 119.0),
        ("len({{input.text}})", {"text": "it's \"quoted\"; __import__('os') {{input.x}} ${env.K}\n"}, 53),
        ("{{input.a}} + {{input.a}}", {"a": "1 + "}, "1 + 1 + "),
        ("[{{input}}, {{call.id}}]", {"a": 1}, [{"a": 1}, "call-1"]),
        ("{{input.missing}} or 7", {}, 7),
        ("price * count if price else 0", {"price": 2, "count": 3}, 6),
        ("sum([x * 2 for x in values])", {"values": [1, 2]}, 6),
        ('input["a b"] + input["class"]', {"a b": 1, "class": 2}, 3),
        ("avg({{input.n}}) + avg(1, 2, 3) + avg(4)", {"n": [1, 3]}, 8.0),
        ("round(math.sqrt(2), 3)", {}, 1.414),
        ("(lambda n: n + 1)(2)", {}, 3),
        ('f"{ {{input.a}} :>3}"', {"a": 5}, "  5"),
        ("  1 + 1\n", {}, 2),
        ("{{input.value0}} + value0", {"value0": 5}, 10),
        ('{"a": {{input.a}}}', {"a": None}, {"a": None}),
        (
            "[int('3'), float('1.5'), str(2), bool([]), abs(-1), min(2, 1), max([1, 2]), sorted([2, 1])]",
            {},
            [3, 1.5, "2", False, 1, 1, 2, [1, 2]],
        ),
    ],
)
def test_a_placeholder_is_a_value(template, params, result):
    assert computed(template, **params) == {"result": result}


def test_an_input_decides_no_meaning_of_an_expression():
    shadows = {"round": 1, "math": 2, "input": 3, "len": 4, "__builtins__": {"open": 1}, "value0": 5, "sum": None}
    answer = computed("[round(1.5), math.pi, input['input'], len('ab'), {{input.round}}]", **shadows)
    assert answer == {"result": [2, math.pi, 3, 2, 1]}
    assert computed("open", **shadows) == {"error": "NameError: name 'open' is not defined"}


@pytest.mark.parametrize(
    "expression",
    [
        "price *",
        "x = 1",
        "import os",
        "1; 2",
        "for x in y: x",
        "",
        "   ",
        "# nothing",
        "a\nb",
        "price ? 1 : 2",
        "a && b",
        "await x",
        "(yield 1)",
        "\0",
        "(" * 300 + ")" * 300,
        "-" * 19_000 + "1",
        "not " * 4_900 + "1",
    ],
)
def test_what_is_no_expression_is_refused_when_it_is_written(expression):
    assert refused(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "'{{input.price}}'",
        '"Total: {{input.price}}"',
        "1 # {{input.price}}",
        "round(2.5, {{input.price}}=1)",
        "input.{{input.price}}",
        "lambda {{input.price}}: 1",
        "[1 for {{input.price}} in [2]]",
        "({{input.price}} := 3)",
        "f'{1:{{input.price}}}'",
    ],
)
def test_a_placeholder_that_is_no_value_is_refused(expression):
    (message,) = refused(expression)
    assert "where it is no value" in message


@pytest.mark.parametrize(
    "expression", ["round{{input.price}}", "{{input.price}}{{input.price}}", "{{input.price}}5"]
)
def test_a_placeholder_joins_nothing_to_a_name(expression):
    (message,) = refused(expression)
    assert "not a Python expression" in message


def test_a_name_that_a_closed_input_cannot_have_is_refused():
    assert refused("price * rate + open", CLOSED) == [
        f"nothing has the name {name}; use keys of the input, input, math and round, sum, avg, min, max, abs, len, "
        "sorted, int, float, str, bool"
        for name in ("open", "rate")
    ]
    accepted("[x + price for x in [1]] and (lambda y: y)(len('a')) and (z := 1) and z", CLOSED)
    accepted("price * rate", {"type": "object"})


def test_only_the_whole_is_an_expression_of_the_model():
    assert is_own_expression("{{input.expression}}")
    assert is_own_expression(" {{ input.expression }}\n")
    for other in (
        "{{input.expression}} + 1",
        "{{input.formula}}",
        "{{input.expression.a}}",
        "({{input.expression}})",
    ):
        assert not is_own_expression(other)
        assert computed(other.replace(".a", ""), expression=1, formula=1).keys() == {"result"}
    assert computed("({{input.expression}})", expression="1 + 1") == {"result": "1 + 1"}
    with pytest.raises(ExpressionError):
        parse_expression("eval('{{input.expression}}')")


LOST = {
    "not a number": ("float('nan')", "the result has the number nan, which JSON does not have"),
    "infinite": ("[1e400]", "the result has the number inf, which JSON does not have"),
    "set": ("{1, 2}", "the result has a value of type set; give numbers, texts, lists and dicts"),
    "bytes": ("b'a'", "the result has a value of type bytes; give numbers, texts, lists and dicts"),
    "complex": ("1j", "the result has a value of type complex; give numbers, texts, lists and dicts"),
    "function": (
        "len",
        "the result has a value of type builtin_function_or_method; give numbers, texts, lists and dicts",
    ),
    "generator": (
        "(x for x in [1])",
        "the result has a value of type generator; give numbers, texts, lists and dicts",
    ),
    "huge integer": ("10 ** 5000", "the result has a whole number of more than 4300 digits; round it"),
    "key": ("{1: 2}", "the result has a dict with a key that is not a text; use str(key)"),
    "half of a character": (
        "'\\ud800'",
        "the result has a text with half of a surrogate pair; give whole characters",
    ),
    "circle": ("[a := [], a.append(a)]", f"the result is nested deeper than {DEPTH_MAX} levels"),
    "too large": (
        f"'x' * {RESULT_BYTES_MAX - 1}",
        f"the result is too large (limit {RESULT_BYTES_MAX} bytes as JSON, got {RESULT_BYTES_MAX + 1})",
    ),
    "division": ("1 / 0", "ZeroDivisionError: division by zero"),
    "name": ("nothing", "NameError: name 'nothing' is not defined"),
    "no built-in": ("open('/etc/passwd')", "NameError: name 'open' is not defined"),
    "no import": ("__import__('os')", "NameError: name '__import__' is not defined"),
}


@pytest.mark.parametrize(("expression", "error"), LOST.values(), ids=LOST)
def test_what_json_cannot_carry_is_an_error_with_its_last_line(expression, error):
    assert computed(expression) == {"error": error}


def test_the_largest_results_are_results():
    assert computed(f"'x' * {RESULT_BYTES_MAX - 2}").keys() == {"result"}
    assert computed("10 ** 4299") == {"result": 10**4299}
    assert computed("'ü' * 3") == {"result": "üüü"}
