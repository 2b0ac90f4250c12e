import json
import math

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.api import strict_json as json_body
from proofbox.service.api.strict_json import DEPTH_MAX, INLINE_BYTES_MAX
from proofbox.service.calls.validation import ERRORS_MAX
from proofbox.service.errors import InvalidRequestError

ROUTE = "/v1/tool-calls"
JSON = {"Content-Type": "application/json"}


def nested(levels: int) -> str:
    """An object whose params are nested so deep."""
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "no JSON at line 1"),
        (b'{"a":\n,', "no JSON at line 2, column 1"),
        (b'{"a":1,}', "no JSON"),
        (b"\xef\xbb\xbf{}", "no JSON"),
        (b'{"a":"\xff"}', "no UTF-8 at byte 6"),
        (b'{"a":1,"a":2}', "the key 'a' twice"),
        (b'{"x":[{"b":1,"\\u0062":2}]}', "the key 'b' twice"),
        (b'{"a":NaN}', "not finite"),
        (b'{"a":[-Infinity]}', "not finite"),
        (b'{"a":1e999}', "not finite"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'{"a":' + b"9" * 5_000 + b"}", "too many digits"),
        (b'{"a":' + nested(10_000).encode() + b"}", "deeper than 64"),
        (b'{"a":' + b'{"a":' * 80 + b"1" + b"}" * 81, "deeper than 64"),
    ],
)
@pytest.mark.parametrize("padding", [b"", b" " * INLINE_BYTES_MAX])
@pytest.mark.shares_fixtures
async def test_json_that_is_broken_or_ambiguous_is_refused(client, raw, message, padding):
    answer = await client.post(ROUTE, content=raw + padding, headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    [error] = answer.json()["errors"]
    assert (error["field"], error["code"]) == ("body", "json_invalid")
    assert message in error["message"]


@pytest.mark.parametrize(
    "filling",
    [b"0,", b"[],", b'"",', b'"\\",",', b'{"a":1},', b"1 , "],
    ids=["numbers", "lists", "texts", "quotes", "objects", "spaces"],
)
def test_a_million_values_are_refused_before_any_is_made(filling):
    count = json_body.VALUES_MAX
    raw = bytearray(b'{"a":[' + filling * count + b"0]}")
    with pytest.raises(InvalidRequestError, match="has more than 1000000 values"):
        json_body.parse_model(raw, ToolCallRequest)


def test_a_text_may_have_as_many_commas_as_it_likes(call_body):
    text = ",:[{" * json_body.VALUES_MAX + '"\\'
    raw = bytearray(json.dumps({**call_body, "code": text}).encode())
    assert json_body.parse_model(raw, ToolCallRequest).code == text


async def test_the_deepest_params_that_are_taken_are_taken(client, call_body):
    fits = {**call_body, "params": {"x": json.loads(nested(DEPTH_MAX - 2))}}
    over = {**call_body, "params": {"x": json.loads(nested(DEPTH_MAX - 1))}}
    assert (await client.post(ROUTE, json=fits)).status_code == 200
    assert (await client.post(ROUTE, json=over)).status_code == 422


@pytest.mark.parametrize(
    "declared", [None, "text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"]
)
async def test_a_body_that_a_web_page_could_send_unasked_is_refused(client, call_body, declared):
    headers = {} if declared is None else {"Content-Type": declared}
    answer = await client.post(ROUTE, content=json.dumps(call_body), headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Content-Type")


async def test_a_media_type_with_parameters_and_capitals_is_json(client, call_body):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert (await client.post(ROUTE, content=json.dumps(call_body), headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"limits": {"wall_s": 0}}, "limits.wall_s", "greater_than"),
        ({"limits": {"gpus": 1}}, "limits.gpus", "extra_forbidden"),
        ({"privileged": True}, "privileged", "extra_forbidden"),
        ({"assets": [{"physical_path": "turn_1/files/a", "base64": "a!"}]}, "assets[0].base64", "base64_decode"),
        ({"assets": [{"physical_path": "../a", "text": ""}]}, "assets[0].physical_path", "value_error"),
        ({"assets": [{"physical_path": "turn_1/files/a"}]}, "assets[0]", "value_error"),
        ({"sources_pool": [{"sid": 0, "source_type": "web"}]}, "sources_pool[0].sid", "greater_than_equal"),
        ({"params": []}, "params", "dict_type"),
        ({"turn_id": "1"}, "turn_id", "value_error"),
    ],
)
@pytest.mark.shares_fixtures
async def test_a_field_that_the_schema_does_not_allow_is_named(client, call_body, change, field, code):
    answer = await client.post(ROUTE, json={**call_body, **change})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    [error] = answer.json()["errors"]
    assert (error["field"], error["code"]) == (field, code)
    assert answer.json()["detail"] == f"{field}: {error['message']}"


async def test_a_source_row_may_have_fields_of_its_runtime_and_blank_ones(client, call_body):
    row = {"sid": 7, "source_type": "file", "title": None, "url": "", "content": "long", "score": 0.8}
    paths = {"physical_path": "turn_1/files/a.csv", "artifact_path": "", "turn_id": "", "filename": "a.csv"}
    body = {**call_body, "sources_pool": [row | paths]}
    assert (await client.post(ROUTE, json=body)).status_code == 200
    [kept] = ToolCallRequest.model_validate(body).sources_pool
    expected = {"sid": 7, "source_type": "file", "physical_path": "turn_1/files/a.csv"}
    assert kept.model_dump(exclude_unset=True) == expected


async def test_a_body_that_is_no_object_is_refused_as_a_whole(client):
    answer = await client.post(ROUTE, json=[1])
    assert [error["field"] for error in answer.json()["errors"]] == ["body"]


async def test_the_errors_of_a_body_are_bounded_in_number_and_length(client, call_body):
    many = {f"{number}{'x' * 500}": 1 for number in range(300)}
    answer = await client.post(ROUTE, json={**call_body, **many})
    errors = answer.json()["errors"]
    assert len(errors) == ERRORS_MAX
    assert max(len(error["field"]) for error in errors) == 100


@pytest.mark.parametrize("code", ["a\x00b", "\ufeffprint(1)", "\U0001f600" * 1_000, "x" * 200_000, "\u202e"])
async def test_odd_text_in_code_reaches_the_call_byte_for_byte(client, call_body, code):
    answer = await client.post(ROUTE, json={**call_body, "code": code})
    assert answer.json()["ret"]["request"]["code"] == code


async def test_numbers_and_order_of_params_are_kept(client, call_body):
    params = {"z": 1, "a": 1.5, "m": 2**63, "e": -0.0, "t": True, "n": None}
    answer = await client.post(ROUTE, json={**call_body, "params": params})
    read = answer.json()["ret"]["request"]["params"]
    assert list(read.items()) == list(params.items())
    assert math.copysign(1, read["e"]) == -1


def test_the_model_itself_would_let_an_infinite_number_in_params_pass():
    """Why the body is walked: if this fails one day, the walk can go."""
    body = '{"tool_id":"t","tool_call_id":"t","conversation_id":"c","params":{"x":1e999}}'
    assert ToolCallRequest.model_validate_json(body).params == {"x": math.inf}
