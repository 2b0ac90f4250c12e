"""Whether a schema lets an input have the value of a placeholder: the work is bounded, whatever the references."""

import pytest

from proofbox.service.gateway.agents.input_schemas import InputPaths

CIRCLE = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a", "title": "y"}]}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_in_a_circle_exclude_nothing_and_end(keyword):
    circle = {keyword: CIRCLE["allOf"]}
    schema = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": circle}}
    assert InputPaths(schema).can_have(["x"])
    closed = {**schema, "properties": {"y": {"type": "string"}}, "additionalProperties": False}
    assert not InputPaths(closed).can_have(["x"])
    assert InputPaths(closed).can_have(["y"])


def test_a_schema_of_too_many_parts_excludes_nothing():
    assert not InputPaths({"anyOf": [{"type": "string"}] * 2}).can_have(["x"])
    assert InputPaths({"anyOf": [{"type": "string", "title": str(at)} for at in range(10_001)]}).can_have(["x"])


def test_all_paths_of_a_schema_share_its_steps():
    paths = InputPaths({"allOf": [True] * 100, "properties": {"a": True}, "additionalProperties": False})
    answers = [paths.can_have([f"k{at}"]) for at in range(1_000)]
    assert (answers[0], answers[-1]) == (False, True)
    assert [paths.can_have(["k0"]), paths.can_have(["a"])] == [False, True]
