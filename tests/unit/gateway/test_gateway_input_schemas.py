"""Whether a schema lets an input have the value of a placeholder: the work is bounded, whatever the references."""

import pytest

from proofbox.service.gateway.agents.input_schemas import can_have

CIRCLE = {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a", "title": "y"}]}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
def test_references_in_a_circle_exclude_nothing_and_end(keyword):
    circle = {keyword: CIRCLE["allOf"]}
    schema = {"type": "object", "$ref": "#/$defs/a", "$defs": {"a": circle}}
    assert can_have(schema, ["x"])
    closed = {**schema, "properties": {"y": {"type": "string"}}, "additionalProperties": False}
    assert not can_have(closed, ["x"])
    assert can_have(closed, ["y"])


def test_a_schema_of_too_many_parts_excludes_nothing():
    assert not can_have({"anyOf": [{"type": "string"}] * 2}, ["x"])
    assert can_have({"anyOf": [{"type": "string", "title": str(at)} for at in range(10_001)]}, ["x"])
