"""Requests that ask for the same have the same hash, however their JSON was written."""

import json

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.registration import payload_sha256

BLOCK = {
    "type": "note",
    "author": "react",
    "turn_id": "turn_1",
    "ts": "2026-07-04T13:18:14Z",
    "mime": "text/plain",
    "path": "ar:turn_1.notes",
}
BODY = {
    "tool_id": "exec_tools.execute_code_python",
    "tool_call_id": "t1",
    "conversation_id": "c1",
    "params": {"contract": [{"filename": "a", "description": "b", "checks": {"x": 1, "y": 2}}], "timeout_s": 5},
    "timeline": [{**BLOCK, "meta": {"a": 1, "b": {"c": 2, "d": 3}}}],
}


def hash_of(**changes):
    return payload_sha256(ToolCallRequest.model_validate({**BODY, **changes}))


def reversed_keys(value):
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


def test_the_order_of_keys_does_not_count_at_any_depth():
    turned = reversed_keys(BODY)
    assert json.dumps(turned) != json.dumps(BODY)
    assert payload_sha256(ToolCallRequest.model_validate(turned)) == hash_of()


@pytest.mark.parametrize(
    "default",
    [
        {"sources_pool": []},
        {"assets": []},
        {"limits": {}},
        {"limits": {"wall_s": None}},
        {"code": None, "notes": None, "turn_id": None},
    ],
)
def test_an_absent_field_is_its_default(default):
    assert hash_of(**default) == hash_of()


def test_an_empty_timeline_is_none_and_a_block_without_text_has_none():
    assert hash_of(timeline=[]) == hash_of(timeline=None)
    assert hash_of(timeline=[{**BLOCK, "text": None, "meta": {}}]) == hash_of(timeline=[BLOCK])


def test_a_whole_number_is_the_same_as_an_integer_and_as_a_float():
    assert hash_of(params={"timeout_s": 5.0}) == hash_of(params={"timeout_s": 5})
    assert hash_of(limits={"wall_s": 5.0}) == hash_of(limits={"wall_s": 5})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"params": {"a": [1, 2]}}, {"params": {"a": [2, 1]}}),
        ({"params": {"a": 1}}, {"params": {"a": True}}),
        ({"params": {"a": 1}}, {"params": {"a": "1"}}),
        ({"params": {"a": 1.5}}, {"params": {"a": 1}}),
        ({"params": {"a": None}}, {"params": {}}),
        ({"params": {"a": ""}}, {"params": {}}),
        ({"code": ""}, {"code": None}),
        ({"code": "print(1)"}, {"code": "print(2)"}),
        ({"limits": {"wall_s": 5}}, {"limits": {"wall_s": 6}}),
        ({"timeline": [BLOCK]}, {"timeline": [BLOCK, BLOCK]}),
        ({"timeline": [{**BLOCK, "meta": {"a": 1}}]}, {"timeline": [{**BLOCK, "meta": {"a": 2}}]}),
        ({"turn_id": "turn_1"}, {"turn_id": "turn_2"}),
    ],
)
def test_what_asks_for_something_else_is_another_payload(one, other):
    assert hash_of(**one) != hash_of(**other)


def test_the_hash_of_a_request_is_the_same_in_every_release():
    """Calls are stored with it: a change here makes each repeated request of an earlier release a 409."""
    assert hash_of() == "b13821e8193bc24d08de02e830ef6955673c629065eeffa10dcc56c53b0d2072"
