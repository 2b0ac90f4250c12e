"""The body of a failed response: no part of a secret is shown, wherever the body is cut."""

import math

import httpcore
import pytest

from proofbox.service.gateway.http_exchange import ExchangePolicy, HttpRefusedError, exchange
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import (
    ERROR_CHARACTERS_MAX,
    clean_json,
    error_bytes_max,
    read_error,
    read_json,
)
from proofbox.service.web.client.outgoing import OutgoingClient, OutgoingRequest, OutgoingResponse, ResponseHead
from proofbox.service.web.client.tls import loaded_when_asked
from proofbox.service.web.urls import WebUrl

SECRET = "s3cr3t-vàlue-of-the-operator"
REDACTOR = Redactor([SECRET])


def failed(body, charset="utf-8"):
    """A response of which as much was read as a call reads."""
    raw = body.encode(charset)[: error_bytes_max(REDACTOR)]
    return OutgoingResponse(ResponseHead(500, "text/plain", charset), raw)


@pytest.mark.parametrize("charset", ["utf-8", "utf-16-le", "latin-1"])
@pytest.mark.parametrize("filler", ["x", "\0"])
def test_no_part_of_a_secret_is_shown_wherever_the_body_is_cut(charset, filler):
    for before in range(ERROR_CHARACTERS_MAX - 40, error_bytes_max(REDACTOR) + 1):
        shown = read_error(failed(filler * before + SECRET * 2, charset), REDACTOR)
        assert len(shown) <= ERROR_CHARACTERS_MAX
        assert "s3c" not in shown, before


def test_a_secret_with_controls_inside_is_removed():
    assert read_error(failed("a " + "\0".join(SECRET) + " b"), REDACTOR) == "a [redacted] b"


def test_a_short_body_keeps_its_end():
    assert read_error(failed("it begins as s3cr3t"), REDACTOR) == "it begins as s3cr3t"


@pytest.mark.parametrize("body", [b"NaN", b"1e999", b"[" * 200 + b"]" * 200, b"[" * 100_000, b"no json"])
def test_json_that_cannot_be_stored_is_refused(body):
    with pytest.raises(ValueError, match=r"JSON|nested|number|Expecting"):
        read_json(OutgoingResponse(ResponseHead(200, "application/json"), body), REDACTOR)


@pytest.mark.parametrize("value", [math.inf, {"a": [-math.inf]}, math.nan])
def test_a_parsed_number_that_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="not finite"):
        clean_json(value)
    assert clean_json({"a": [1.5, -0.0, 10**30]}) == {"a": [1.5, -0.0, 10**30]}


async def test_a_header_that_cannot_be_sent_is_a_failed_request():
    client = OutgoingClient(httpcore.AsyncNetworkBackend(), loaded_when_asked(None))
    request = OutgoingRequest("GET", WebUrl.parse("http://api.example.com/"), [("TE", "trailers")])
    policy = ExchangePolicy(timeout_s=1, attempts=2, bytes_max=10, error_bytes_max=10)
    effects = []
    with pytest.raises(HttpRefusedError, match=r"headers\.TE"):
        await exchange(client, request, policy, effects.append)
    assert effects == []
