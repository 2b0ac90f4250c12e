"""The committed schemas and examples are those of the models, and a difference is seen."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from proofbox.contracts.__main__ import HERE, MODELS, drifted_schemas, misjudged_examples

EXAMPLES = sorted((HERE / "examples").glob("*.json"))
# What only Python can say: that two fields exclude each other, what a path may be, that a text is not blank.
SAID_BY_THE_MODEL_ALONE = {
    "agent_configuration.invalid.hidden_space_tool.json",
    "agent_configuration.invalid.no_execution.json",
    "agent_configuration.invalid.visible_internal_tool.json",
    "result_submission.invalid.none.json",
    "result_submission.invalid.two.json",
    "artifact_spec.invalid.blank_description.json",
    "artifact_spec.invalid.counts_without_glob.json",
    "artifact_spec.invalid.file_and_glob.json",
    "timeline_append.invalid.path.json",
    "timeline_append.invalid.type.json",
    "tool_call_request.invalid.asset_not_base64.json",
    "tool_call_request.invalid.asset_outside_turn.json",
    "tool_call_request.invalid.asset_with_two_contents.json",
}


def test_the_committed_schemas_and_examples_are_in_step():
    assert (drifted_schemas(), misjudged_examples()) == ([], [])


def test_no_schema_is_left_of_a_model_that_is_gone():
    assert {path.name for path in (HERE / "schemas").iterdir()} == {f"{name}.schema.json" for name in MODELS}


def test_every_model_has_an_example_that_is_accepted():
    accepted = {path.name.split(".")[0] for path in EXAMPLES if ".invalid." not in path.name}
    assert accepted == set(MODELS)


def schema_of(name):
    return json.loads((HERE / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", MODELS)
def test_every_schema_is_a_valid_2020_12_schema(name):
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_schemas_judge_the_examples_as_the_models_do(path):
    validator = Draft202012Validator(schema_of(path.name.split(".")[0]))
    is_accepted = validator.is_valid(json.loads(path.read_text(encoding="utf-8")))
    assert is_accepted == (".invalid." not in path.name or path.name in SAID_BY_THE_MODEL_ALONE)


@pytest.mark.parametrize("name", MODELS)
def test_every_field_of_every_model_is_described(name):
    schema = schema_of(name)
    shapes = schema.get("$defs", {})
    silent = []
    for shape in [schema, *shapes.values()]:
        for field, value in shape.get("properties", {}).items():
            # A text that the referred shape has too is left to that shape.
            referred = shapes.get(value.get("$ref", "").rpartition("/")[2], {})
            if not (value.get("description") or referred.get("description")):
                silent.append(field)
    assert silent == []


@pytest.fixture
def copied(tmp_path):
    """A copy of the package, and its ``--check`` run on its own."""
    shutil.copytree(HERE, tmp_path / "proofbox" / "contracts", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "proofbox" / "__init__.py").touch()

    def check(*arguments):
        done = subprocess.run(
            [sys.executable, "-B", "-m", "proofbox.contracts", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()

    return Path(tmp_path / "proofbox" / "contracts"), check


def test_drift_of_a_schema_and_of_an_example_is_seen_and_named(copied):
    folder, check = copied
    schema = folder / "schemas" / "block.schema.json"
    schema.write_text(schema.read_text().replace('"author"', '"writer"', 1))
    (folder / "schemas" / "tool.schema.json").unlink()
    shutil.copy(folder / "examples" / "tool.invalid.no_schema.json", folder / "examples" / "tool.other.json")
    shutil.copy(folder / "examples" / "block.code.json", folder / "examples" / "block.invalid.other.json")
    assert check("--check") == (
        1,
        [
            "contracts: schemas/block.schema.json is out of date; run python -m proofbox.contracts",
            "contracts: schemas/tool.schema.json is out of date; run python -m proofbox.contracts",
            "contracts: examples/block.invalid.other.json is not judged as its name says",
            "contracts: examples/tool.other.json is not judged as its name says",
        ],
    )


def test_a_changed_model_is_drift_until_the_schemas_are_written(copied):
    folder, check = copied
    model = folder / "events.py"
    model.write_text(model.read_text().replace("    position: int\n", "    position: str\n"))
    status, lines = check("--check")
    assert (status, lines[0]) == (
        1,
        "contracts: schemas/event_queued.schema.json is out of date; run python -m proofbox.contracts",
    )
    check()
    assert json.loads((folder / "schemas" / "event_queued.schema.json").read_text())["properties"]["position"][
        "type"
    ] == ("string")
    assert (HERE / "schemas" / "event_queued.schema.json").read_text() != (
        folder / "schemas" / "event_queued.schema.json"
    ).read_text()


def test_a_check_that_finds_nothing_says_how_much_is_in_step(copied):
    _, check = copied
    assert check("--check") == (0, [f"contracts: {len(MODELS)} schemas, {len(EXAMPLES)} examples, all in step"])
