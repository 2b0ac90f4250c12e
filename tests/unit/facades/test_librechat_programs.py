"""The programs around a caller's program: its text, its lines and its imports stay what they are."""

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proofbox.service.facades.librechat.requests import ProgrammaticTool
from proofbox.service.facades.librechat.wrapping import (
    _literal,
    bash_name,
    bash_with_tools,
    python_name,
    python_with_tools,
    with_followed_link,
)
from proofbox.service.sandbox.preload import PreloadSet, flavour_of

TOOL = ProgrammaticTool(name="weather")


@given(st.text() | st.text("'\\\"\n\r\0a"))
@example("\x000")
def test_a_literal_is_the_text_and_has_its_lines(text):
    literal = _literal(text)
    assert ast.literal_eval(literal) == text
    assert literal.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    ("code", "flavour"),
    [
        ("import matplotlib.pyplot as plt\nplt.show()", PreloadSet.DATA),
        ("import pandas as pd\nimport seaborn\nimport matplotlib.pyplot as plt\nplt.show()", PreloadSet.SCIENCE),
    ],
)
def test_a_wrapped_program_gets_a_container_with_its_libraries(code, flavour):
    assert flavour_of("python", python_with_tools(code, [TOOL]).encode()) is flavour


class CountedName(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_the_parameters_of_a_tool_are_not_compared_with_each_other():
    count = 1_000
    parameters = {
        "properties": {CountedName(f"p{number}"): {} for number in range(count)},
        "required": [CountedName(f"p{number}") for number in reversed(range(count))],
    }
    tool = ProgrammaticTool.model_construct(name="weather", parameters=parameters)
    CountedName.compared = 0
    python_with_tools("print(1)", [tool])
    assert CountedName.compared < 10 * count


@pytest.mark.parametrize(
    ("required", "order"),
    [(["c", "a"], "['a', 'c', 'b']"), ([["a"], {}, None, "b"], "['b', 'a', 'c']"), ("b", "['a', 'b', 'c']")],
)
def test_the_required_parameters_of_a_tool_come_first(required, order):
    parameters = {"properties": {"a": {}, "b": {}, "c": {}}, "required": required}
    program = python_with_tools("print(1)", [ProgrammaticTool(name="weather", parameters=parameters)])
    assert f"_replay.function('weather', {order})" in program


@pytest.mark.parametrize("wrap", [python_with_tools, bash_with_tools])
def test_a_program_with_tools_needs_no_library(wrap):
    program = wrap("print(1)", [TOOL, ProgrammaticTool(name="a'b\"\\", parameters={"properties": {"x'": {}}})])
    ast.parse(program)
    assert flavour_of("python", program.encode()) is PreloadSet.BARE


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("ls -la /mnt/data", "ls -la /mnt/data/"),
        ("find /mnt/data -type f; ls '/mnt/data'", "find /mnt/data/ -type f; ls '/mnt/data/'"),
        ("x=$(ls /mnt/data)\n", "x=$(ls /mnt/data/)\n"),
        ("cat /mnt/data/a.csv /mnt/database", "cat /mnt/data/a.csv /mnt/database"),
        ("echo ${f#/mnt/data}", "echo ${f#/mnt/data}"),
    ],
)
def test_a_script_names_the_folder_with_a_slash(script, expected):
    assert with_followed_link(script) == expected


# As LibreChat's client derives them: it sends the tools whose functions it finds in the program.
@pytest.mark.parametrize(
    ("name", "python", "bash"),
    [
        ("get_weather", "get_weather", "get_weather"),
        ("get-weather", "get_weather", "get_weather"),
        ("get weather", "get_weather", "get_weather"),
        ("mcp.search", "mcpsearch", "mcp_search"),
        ("2nd", "_2nd", "_2nd"),
        ("for", "for_tool", "for_tool"),
        ("done", "done", "done_tool"),
        ("lambda", "lambda_tool", "lambda"),
        ("größe", "gre", "gre"),
        ("!!!", "", ""),
    ],
)
def test_functions_have_the_names_that_librechat_expects(name, python, bash):
    assert (python_name(name), bash_name(name)) == (python, bash)
