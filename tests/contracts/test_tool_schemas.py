"""The schemas that a model reads accept and refuse what the parameter models do."""

import copy

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from proofbox.contracts.artifacts import ArtifactSpec
from proofbox.contracts.react_tools import REACT_TOOLS
from proofbox.contracts.render_tools import RENDER_PARAMS, RENDER_TOOL_PREFIX
from proofbox.contracts.tool_schemas import compact_schema
from proofbox.contracts.tools import catalogue

MODELS = {
    **{tool_id: tool.params for tool_id, tool in REACT_TOOLS.items()},
    **{RENDER_TOOL_PREFIX + output: model for output, model in RENDER_PARAMS.items()},
}
SCHEMAS = {tool.tool_id: tool.params_schema for tool in catalogue()}
# A value for each parameter of any tool, and values that are wrong in kind, in bounds or in their words. One text
# in place of a list is not among them: the service takes it as a list of one, and no schema offers that.
GOOD = {
    "paths": ["fi:turn_1.files/a"],
    "path": "a.md",
    "channel": "internal",
    "kind": "file",
    "content": "# a",
    "patch": "@@ -1 +1 @@\n-a\n+b\n",
    "query": "tides",
    "targets": ["user", "attachment"],
    "top_k": 50,
    "days": 100_000,
    "replacement": "short",
    "name_regex": r"\.csv$",
    "content_regex": "a|b",
    "max_hits": 1_000,
    "steps": ["a", "b"],
    "status": {"1": "done", "2": "in_progress"},
    "queries": ["a"],
    "n": 1,
    "urls": ["https://example.org/"],
    "theme": "dark",
    "author": "A",
    "subject": "",
    "keywords": ["a", "b"],
    "language": "de-AT",
    "strict": True,
    "page_size": "A3",
    "margins": {"top": "20mm", "left": "1.5in"},
    "header": {"left": "{title}", "right": "{page}"},
    "footer": "{page} of {pages}",
    "page_numbers": False,
    "toc": True,
    "numbered_sections": True,
    "title": "T",
    "include_sources_section": False,
    "include_sources_slide": True,
    "landscape": True,
    "pages": "1-3,7",
    "pdf_variant": "pdf/a-3b",
    "attachments": ["files/a.csv"],
    "fit": "page",
    "selector": "#a",
    "padding_px": 0,
    "background": "transparent",
    "width": 16,
    "height": 10_000,
    "device_scale_factor": 1.5,
}
BAD = {
    "paths": [[], [5]],
    "path": [5, ["a"]],
    "channel": ["chat", 1],
    "kind": ["text"],
    "content": [5, {}],
    "patch": [["a"]],
    "query": [5],
    "targets": [[], ["everybody"], ["user"] * 4],
    "top_k": [0, 51, "many", 1.5],
    "days": [0, "many"],
    "replacement": [[]],
    "name_regex": [5],
    "content_regex": [["a"]],
    "max_hits": [0, 1_001],
    "steps": [[], [5]],
    "status": [{"1": "finished"}, ["done"]],
    "queries": [[], ["a"] * 21],
    "n": [0, 51],
    "urls": [[], ["a"] * 21],
    "theme": [5],
    "author": [["A"]],
    "keywords": [[5]],
    "language": [5],
    "strict": [[], "perhaps"],
    "page_size": [210],
    "margins": [20, {"middle": "1mm"}, {"top": 20}],
    "header": [5, {"middle": "a"}, {"left": 5}],
    "footer": [["a"], {"top": "a"}],
    "toc": [[]],
    "title": [5],
    "landscape": ["perhaps"],
    "pages": [1, [1]],
    "pdf_variant": ["pdf/x-4"],
    "attachments": [["a"] * 21],
    "fit": ["paper"],
    "selector": [["a"]],
    "padding_px": [-1, 1_001],
    "width": [15, 10_001, "wide"],
    "height": [15, 10_001],
    "device_scale_factor": [0.5, 4.5],
}


def is_accepted(model, params):
    try:
        model.model_validate(params)
    except ValidationError:
        return False
    return True


def minimal(model):
    return {name: GOOD[name] for name, field in model.model_fields.items() if field.is_required()}


@pytest.mark.parametrize("tool_id", MODELS)
def test_a_schema_for_models_accepts_and_refuses_the_examples_that_the_parameter_model_does(tool_id):
    model, validator = MODELS[tool_id], Draft202012Validator(SCHEMAS[tool_id])
    known = {name: GOOD[name] for name in model.model_fields if name in GOOD}
    examples = [known, minimal(model), {**known, "unheard_of": 1}, {}]
    examples += [{key: value for key, value in known.items() if key != name} for name in known]
    examples += [{**known, name: bad} for name in known for bad in BAD.get(name, [])]
    judged = [(example, is_accepted(model, example)) for example in examples]
    assert [(example, validator.is_valid(example)) for example, _ in judged] == judged
    assert {accepted for _, accepted in judged} == {True, False}


@pytest.mark.parametrize(
    "entry",
    [
        {"filename": "a.csv", "description": "a", "min_rows": 1, "columns": ["a"], "visibility": "internal"},
        {"glob": "*.png", "description": "a", "min_count": 0, "max_count": 200, "min_width": 1, "min_height": 1},
        {"filename": "a.json", "description": "a", "json_schema": {"type": "object"}, "mime": "application/json"},
        {"filename": "a.pdf", "description": "a", "min_pages": 0, "max_pages": 3, "not_blank": True},
        {"filename": "a.csv"},
        {"filename": 5, "description": "a"},
        {"filename": "a", "description": "a", "visibility": "public"},
        {"filename": "a", "description": "a", "min_bytes": -1},
        {"filename": "a", "description": "a", "max_bytes": "10"},
        {"filename": "a", "description": "a", "columns": []},
        {"filename": "a", "description": "a", "columns": "a"},
        {"filename": "a", "description": "a", "rows": 1},
        {"glob": "*", "description": "a", "max_count": 201},
        {"filename": "a", "description": "a", "min_width": 0},
        {"filename": "a", "description": "a", "json_schema": "object"},
    ],
)
def test_an_entry_of_a_contract_is_judged_as_its_model_does_in_the_tool_of_each_language(entry):
    for tool in (tool for tool in catalogue() if tool.takes_code):
        accepted = Draft202012Validator(tool.params_schema).is_valid({"contract": [entry]})
        assert accepted == is_accepted(ArtifactSpec, entry)


@pytest.mark.parametrize("tool_id", SCHEMAS)
def test_a_schema_for_models_has_no_titles_no_nulls_and_no_references(tool_id):
    dropped = {"title", "$ref", "$defs"}
    found = keywords(SCHEMAS[tool_id])
    assert [key for key, value in found if key in dropped or value in (None, {"type": "null"})] == []
    Draft202012Validator.check_schema(SCHEMAS[tool_id])


def keywords(schema):
    """Every keyword of a schema and of those inside it, with its value."""
    for key, value in schema.items():
        yield key, value
        inner = [value] if key in {"items", "additionalProperties", "propertyNames"} else value
        for below in inner.values() if key == "properties" else inner if isinstance(inner, list) else ():
            if isinstance(below, dict):
                yield from keywords(below)


def test_making_a_schema_compact_leaves_the_original_as_it_is():
    schema = RENDER_PARAMS["pdf"].model_json_schema()
    before = copy.deepcopy(schema)
    compact_schema(schema)
    assert schema == before
