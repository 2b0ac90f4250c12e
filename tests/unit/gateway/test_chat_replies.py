"""What of a chat completion is read, whatever a server sends."""

import json

import pytest

from proofbox.service.gateway.llm.chat import TokenUsage, UnreadableReplyError, read_reply
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.web.client.outgoing import OutgoingResponse, ResponseHead


def read(value, key=""):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_reply(OutgoingResponse(ResponseHead(200, "application/json"), body), Redactor([key]))


def of_message(**message):
    return {"choices": [{"message": message}]}


def of_call(**call):
    return of_message(content=None, tool_calls=[call])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a\x00b\r\nc", "ab\nc"),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "x", {"text": 7}, {"text": "b"}], "ab"),
        (7, ""),
    ],
)
def test_the_text_may_come_in_parts_and_is_cleaned(content, text):
    assert read(of_message(content=content)).text == text


@pytest.mark.parametrize(
    ("arguments", "params"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", {}),
        (None, {}),
        ('{"a": ', None),
        ("[1]", None),
        ('"text"', None),
        ('{"a": NaN}', None),
        ('{"a": 1e999}', None),
        ("[" * 100_000, None),
        ('{"a": ' * 150 + "1" + "}" * 150, None),
        ([1], None),
    ],
)
def test_arguments_are_an_object_or_unreadable(arguments, params):
    (request,) = read(of_call(id="x", function={"name": "f", "arguments": arguments})).requests
    assert (request.request_id, request.name, request.params) == ("x", "f", params)


@pytest.mark.parametrize("call", [{}, {"function": 7}, {"function": {"name": 7}, "id": ["x"]}, {"id": "x" * 201}])
def test_a_call_without_name_or_id_gets_an_id_and_no_name(call):
    (request,) = read(of_call(**call)).requests
    assert (request.request_id, request.name, request.sent_name) == ("call_1", "", "unknown")


def test_a_name_is_shown_shortened_and_sent_only_if_servers_take_it():
    (request,) = read(of_call(id="x", function={"name": "a\u202eb " + "c" * 100})).requests
    assert (len(request.name), "\u202e" in request.name, request.sent_name) == (64, False, "unknown")


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}, TokenUsage(3, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 9}, TokenUsage(3, 6)),
        ({"total_tokens": 9}, TokenUsage(0, 9)),
        ({"prompt_tokens": -3, "completion_tokens": True}, None),
        ({"prompt_tokens": 10**30}, TokenUsage(10**9, 0)),
        ("many", None),
        (None, None),
    ],
)
def test_usage_is_what_the_endpoint_counted_or_unknown(usage, counted):
    assert read({**of_message(content="x"), "usage": usage}).usage == counted


@pytest.mark.parametrize(
    "value", [[], {}, {"choices": None}, {"choices": [7]}, {"choices": [{"message": []}]}, b"<html>", b"\xff", b""]
)
def test_anything_else_is_no_reply(value):
    with pytest.raises(UnreadableReplyError):
        read(value)


def test_the_key_is_removed_from_all_of_it():
    key = "sk-0123456789"
    reply = read(
        of_message(content=key, tool_calls=[{"id": key, "function": {"name": key, "arguments": key}}]), key
    )
    assert key not in repr(reply)
