"""Arguments of MCP tools: what models write is understood, and refusals name the argument."""

import pytest

from proofbox.service.mcp.arguments import (
    InvalidArgumentsError,
    ReadFileArguments,
    RunArguments,
    input_schema,
    parse_arguments,
)


def parsed(**given):
    return parse_arguments(RunArguments, {"code": "pass", **given})


@pytest.mark.parametrize(
    ("promised", "contract"),
    [
        (["a.csv"], [{"filename": "a.csv", "description": "a.csv"}]),
        ('["a.csv"]', [{"filename": "a.csv", "description": "a.csv"}]),
        ("a.csv", [{"filename": "a.csv", "description": "a.csv"}]),
        (["charts/*.png"], [{"glob": "charts/*.png", "description": "charts/*.png"}]),
        ([{"filename": "a.csv", "min_rows": 3}], [{"filename": "a.csv", "description": "a.csv", "min_rows": 3}]),
        ([{"glob": "*.md", "description": "d"}], [{"glob": "*.md", "description": "d"}]),
        ([], [{"glob": "**/*", "description": "a file that the program wrote", "min_count": 0}]),
        (None, [{"glob": "**/*", "description": "a file that the program wrote", "min_count": 0}]),
    ],
)
def test_promises_become_a_contract(promised, contract):
    assert parsed(files_promised=promised).contract() == contract


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "code: Field required"),
        ({"code": 1}, "code: Input should be a valid string"),
        ({"code": "x", "lang": "py"}, "lang: no such argument; leave it out"),
        ({"code": "x", "time_out_s": 3}, "time_out_s: no such argument; did you mean timeout_s?"),
        (
            {"code": "x", "foo": 1, "files_promised": [{"filenme": "a.csv"}]},
            "contract[0].filenme: there is no such",
        ),
        ({"code": "x", "wait_s": -1}, "wait_s:"),
        ({"code": "x", "wait_s": float("nan")}, "wait_s:"),
        ({"code": "x", "timeout_s": 0}, "timeout_s:"),
        ({"code": "x", "conversation": "../x"}, "conversation:"),
        ({"code": "x", "files": [{"name": "a"}]}, "files[0]: give either text or base64"),
        ({"code": "x", "files": [{"name": "a", "text": "b"}] * 21}, "files:"),
    ],
)
def test_a_refusal_names_the_argument_and_lists_all(given, said):
    with pytest.raises(InvalidArgumentsError) as caught:
        parse_arguments(RunArguments, given)
    assert said in str(caught.value)
    assert "code, files_promised, files, conversation, timeout_s, stdin, wait_s" in str(caught.value)


def test_a_list_of_paths_is_told_to_be_one_path():
    with pytest.raises(InvalidArgumentsError, match=r"paths: no such argument; did you mean path\?"):
        parse_arguments(ReadFileArguments, {"conversation": "c", "paths": ["a"]})


def test_what_is_no_base64_is_refused_with_the_name_of_the_file():
    [file] = parsed(files=[{"name": "a.bin", "base64": "%%%"}]).files
    with pytest.raises(InvalidArgumentsError, match=r"files: 'a\.bin' is not base64"):
        file.content()
    [file] = parsed(files=[{"name": "a.bin", "base64": "AAE\nC"}]).files
    assert file.content() == b"\0\1\2"


@pytest.mark.parametrize("lines", ["1", "a-b", "1-2\n", "-5"])
def test_lines_are_a_range(lines):
    with pytest.raises(InvalidArgumentsError, match="lines:"):
        parse_arguments(ReadFileArguments, {"conversation": "c", "path": "a", "lines": lines})


def test_the_schema_is_an_object_without_references_and_without_lists_of_types():
    schema = input_schema(RunArguments)
    text = str(schema)
    assert schema["type"] == "object"
    assert schema["required"] == ["code"]
    assert "$ref" not in text
    assert "null" not in text
    assert "'type': [" not in text
