"""The catalogue as function definitions of model APIs."""

import re

import pytest
from jsonschema import Draft202012Validator

from proofbox.contracts.function_names import anthropic_tool, function_name, openai_function, tool_id_of
from proofbox.contracts.react_tools import TOOL_ALIASES
from proofbox.contracts.tools import Language, catalogue, exec_tool_id

LEGAL = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
DESCRIPTION_CHARS_MAX = 1_024  # of OpenAI's API
TOOLS = catalogue()


def test_the_function_name_of_each_tool_is_legal_and_means_that_tool_alone():
    names = [function_name(tool_id) for tool_id in (*(t.tool_id for t in TOOLS), *map(exec_tool_id, Language))]
    assert all(LEGAL.match(name) for name in names)
    assert {tool_id_of(function_name(tool.tool_id)) for tool in TOOLS} == {tool.tool_id for tool in TOOLS}
    assert function_name("exec_tools.execute_code_python") == "exec_tools__execute_code_python"


def test_other_ids_of_a_tool_have_function_names_too():
    assert {tool_id_of(function_name(alias)) for alias in TOOL_ALIASES} == set(TOOL_ALIASES)


@pytest.mark.parametrize(
    "name", ["", "a__b", "exec_tools.execute_code_python", "react__", "react_read", "REACT__READ"]
)
def test_what_is_the_function_name_of_no_tool_stays_as_it_is(name):
    assert tool_id_of(name) == name


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.tool_id)
def test_the_definitions_have_the_fields_of_both_apis_and_a_valid_schema(tool):
    name = function_name(tool.tool_id)
    function = openai_function(tool)
    assert list(function) == ["type", "function"]
    assert function["type"] == "function"
    assert list(function["function"]) == ["name", "description", "parameters"]
    schema = function["function"]["parameters"]
    assert anthropic_tool(tool) == {"name": name, "description": tool.description, "input_schema": schema}
    assert (function["function"]["name"], schema["type"]) == (name, "object")
    Draft202012Validator.check_schema(schema)
    assert len(tool.description) <= DESCRIPTION_CHARS_MAX


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.tool_id)
def test_code_is_a_required_property_of_the_functions_that_take_it_and_of_no_other(tool):
    parameters = openai_function(tool)["function"]["parameters"]
    assert ("code" in parameters["properties"]) == tool.takes_code
    if tool.takes_code:
        assert (next(iter(parameters["properties"])), parameters["required"][0]) == ("code", "code")
        arguments = {"code": "print()", "contract": [{"filename": "a", "description": "a"}]}
        assert Draft202012Validator(parameters).is_valid(arguments)
        del arguments["code"]
        assert not Draft202012Validator(parameters).is_valid(arguments)
        assert "code" not in tool.params_schema["properties"]
