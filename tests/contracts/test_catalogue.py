"""The catalogue of tools: ids, parameters in order, and what their schema accepts."""

import pytest
from jsonschema import Draft202012Validator

from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.image_contents import MAIN_LIBRARIES, ImageContents, named_libraries
from proofbox.contracts.tools import LANGUAGES, Language, catalogue, exec_language, exec_tool_id

EXEC_TOOLS = [tool for tool in catalogue() if tool.takes_code]
RENDER_TOOLS = [tool for tool in catalogue() if tool.tool_id.startswith("rendering_tools.")]
FILE = {"filename": "a.csv", "description": "a table"}


def test_there_is_one_exec_tool_for_each_language():
    image = ImageContents(python="3.13.5", libraries={}, commands=[], languages=[*Language])
    assert [tool.tool_id for tool in catalogue(image) if tool.takes_code] == [
        "exec_tools.execute_code_python",
        "exec_tools.execute_code_bash",
        "exec_tools.execute_code_node",
    ]
    assert set(LANGUAGES) == set(Language)


def exec_tools(image=None):
    return {exec_language(tool.tool_id) for tool in catalogue(image) if tool.takes_code}


def test_a_language_that_not_every_image_has_is_offered_where_the_image_lists_it():
    everything = ImageContents(python="3.13.5", libraries={}, commands=[], languages=[*Language, "cobol"])
    nothing = everything.model_copy(update={"languages": []})
    assert exec_tools(everything) == set(Language)
    assert exec_tools(nothing) == exec_tools() == {Language.PYTHON, Language.BASH}


def test_the_tool_for_python_names_the_main_libraries_of_the_image_and_counts_the_others():
    libraries = {"numpy": "2.5.5", "zzz": "1.0", "pandas": "3.1.1", "tabulate": "0.9.0"}
    image = ImageContents(
        python="3.13.5", libraries=libraries, commands=["ls", "jq", "sqlite3"], languages=["bash"]
    )
    python, bash = catalogue(image)[:2]
    named = "numpy 2.5, pandas 3.1, tabulate 0.9 and 1 more (GET /v1/tools)."
    assert python.description.endswith(f" Python 3.13.5 with {named}")
    assert bash.description.endswith(" Commands beside the usual ones: jq, sqlite3.")


def test_without_an_inventory_nothing_is_claimed_of_the_image():
    python, bash = catalogue()[:2]
    assert "numpy" not in python.description
    assert "Commands" not in bash.description


def test_an_image_without_libraries_is_described_as_such():
    image = ImageContents(python="3.13.5", libraries={}, commands=[], languages=["python"])
    assert catalogue(image)[0].description.endswith(" Python 3.13.5 without further libraries.")


def test_the_id_of_a_tool_names_its_language_and_nothing_else_does():
    assert {exec_language(exec_tool_id(language)) for language in Language} == set(Language)
    for other in ("", "python", "exec_tools.execute_code_", "exec_tools.execute_code_Python", "write_pdf"):
        assert exec_language(other) is None


@pytest.mark.parametrize("tool", EXEC_TOOLS, ids=lambda tool: tool.tool_id)
def test_params_stand_in_the_order_of_the_protocol_and_say_their_defaults(tool):
    properties = tool.params_schema["properties"]
    assert list(properties) == ["contract", "prog_name", "timeout_s", "explore", "stdin", "args", "env", "cwd"]
    assert (properties["prog_name"]["default"], properties["timeout_s"]["default"]) == ("main", 600)
    assert "required" not in tool.params_schema  # a contract, or explore in its place
    # The loop decides about the workspace, and the operator about packages.
    assert list(ExecParams.model_fields) == [*properties, "workspace", "packages"]


def test_packages_are_a_parameter_of_python_and_bash_where_the_operator_has_an_index():
    image = ImageContents(python="3.13.5", libraries={}, commands=[], languages=[*Language])
    python, bash, node = catalogue(image, has_packages=True)[:3]
    assert python.params_schema["properties"]["packages"]["description"].startswith("Further Python packages")
    assert "packages" in bash.params_schema["properties"]
    assert "packages" not in node.params_schema["properties"]
    assert "Other packages: name them in packages" in python.description
    assert not any("packages" in tool.params_schema["properties"] for tool in catalogue(image)[:3])


@pytest.mark.parametrize(
    ("params", "is_accepted"),
    [
        ({"contract": [FILE]}, True),
        ({"contract": '[{"filename": "a.csv", "description": "d"}]'}, True),
        ({"contract": [FILE], "prog_name": "plot", "timeout_s": 0.5}, True),
        ({"contract": [{"glob": "*.png", "description": "d", "min_count": 2, "min_width": 5}]}, True),
        ({"contract": [FILE | {"visibility": "internal", "json_schema": {"type": "object"}}]}, True),
        ({"explore": True, "stdin": "a", "args": ["-v"], "env": {"MODE": "fast"}, "cwd": "work"}, True),
        ({"contract": [FILE], "args": "-v"}, False),
        ({"contract": [FILE], "env": {"MODE": 1}}, False),
        ({"contract": []}, False),
        ({"contract": None}, False),
        ({"contract": [5]}, False),
        ({"contract": [{"filename": "a"}]}, False),
        ({"contract": [FILE | {"visibility": "public"}]}, False),
        ({"contract": [FILE | {"min_rows": -1}]}, False),
        ({"contract": [FILE | {"rows": 1}]}, False),
        ({"contract": [FILE], "timeout_s": 0}, False),
        ({"contract": [FILE], "code": "print()"}, False),
    ],
)
def test_the_schema_of_params_accepts_what_a_model_should_write_and_nothing_else(params, is_accepted):
    for tool in EXEC_TOOLS:
        Draft202012Validator.check_schema(tool.params_schema)
        assert Draft202012Validator(tool.params_schema).is_valid(params) == is_accepted


@pytest.mark.parametrize(
    ("tool_id", "own_params"),
    [
        ("rendering_tools.write_pdf", "path content format title include_sources_section landscape"),
        ("rendering_tools.write_docx", "path content format title include_sources_section"),
        ("rendering_tools.write_pptx", "path content format title include_sources_slide"),
        (
            "rendering_tools.write_png",
            "path content format title fit selector padding_px background width height device_scale_factor",
        ),
        ("rendering_tools.write_xlsx", "path content format title sheets"),
    ],
)
def test_the_params_of_a_rendering_tool_begin_with_those_of_the_protocol_in_its_order(tool_id, own_params):
    (tool,) = [tool for tool in RENDER_TOOLS if tool.tool_id == tool_id]
    expected = own_params.split()
    Draft202012Validator.check_schema(tool.params_schema)
    assert list(tool.params_schema["properties"])[: len(expected)] == expected
    assert tool.params_schema["required"] == ["path", "content"]


@pytest.mark.parametrize(
    ("tool_id", "params", "required"),
    [
        ("react.read", "paths", "paths"),
        ("react.write", "path channel content kind", "path channel content kind"),
        ("react.stream", "path channel content kind", "path channel content kind"),
        ("react.file", "path content", "path content"),
        ("react.patch", "path channel patch kind", "path channel patch kind"),
        ("react.memsearch", "query targets top_k days", "query targets"),
        ("react.hide", "path replacement", "path replacement"),
        ("react.search_files", "name_regex content_regex max_hits", ""),
        ("react.plan", "steps status", "steps"),
        ("web_tools.web_search", "queries n", "queries"),
        ("web_tools.web_fetch", "urls", "urls"),
    ],
)
def test_the_params_of_a_react_tool_stand_in_the_order_of_the_protocol(tool_id, params, required):
    (tool,) = [tool for tool in catalogue() if tool.tool_id == tool_id]
    Draft202012Validator.check_schema(tool.params_schema)
    assert list(tool.params_schema["properties"]) == params.split()
    assert tool.params_schema.get("required", []) == required.split()


def test_every_main_library_is_named_and_the_first_with_their_versions():
    libraries = dict.fromkeys((*MAIN_LIBRARIES, "odd"), "1.2.3")
    text = named_libraries(libraries)
    assert text.startswith("with numpy 1.2, pandas 1.2, ")
    assert text.endswith(", tqdm, faker, sqlalchemy, scikit-image and 1 more (GET /v1/tools)")
    assert all(name in text for name in MAIN_LIBRARIES)
