"""Pictures that an endpoint makes: what it is asked, where a picture may come from, what is stored of it."""

import base64
import json

import pytest

from proofbox.service.sandbox.port import Inspection
from tests.support.gateway_client import opened_loop
from tests.support.llm_server import IMAGES, KEY, Held, json_response, paints, points, says
from tests.support.web_server import redirect, response

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
MIB = 1024 * 1024


def image(schema=None, **execution):
    given = {"provider": "default", "model": IMAGES, "size": "512x512", **execution}
    tool = {"name": "paint", "description": "Paints.", "executionType": "gateway", "execution": given}
    tool["visibility"] = "hidden"
    return tool if schema is None else {**tool, "inputSchema": schema}


def copy_picture(run):
    """What the program in the sandbox does."""
    folder = f"{run.job.turn_id}/files"
    (name,) = [expected.rel for expected in run.wanted.files]
    run.write(name, run.files[f"{folder}/received"])


@pytest.fixture
async def asking(asking):
    """The same, whose pictures open as 512 x 511 px in its sandbox."""
    open_pictures(asking)
    return asking


def open_pictures(loop):
    loop.pipeline.engine.program = copy_picture
    for extension, mime in (("png", "image/png"), ("jpg", "image/jpeg")):
        facts = {"width": 512, "height": 511}
        loop.pipeline.engine.inspections[f"picture.{extension}"] = Inspection(ok=True, mime=mime, facts=facts)


async def test_a_picture_in_the_answer_is_opened_and_stored_for_the_user(asking, llm):
    llm.answers = [paints(PNG, "A red cat, sitting.")]
    await asking.begin(image(quality="hd", style="vivid"))
    answer = await asking.call("paint", {"prompt": "A cat"})
    (request,) = llm.requests
    assert request.line == "POST /v1/images/generations HTTP/1.1"
    assert request.headers()["authorization"] == f"Bearer {KEY}"
    asked = {"model": IMAGES, "prompt": "A cat", "n": 1, "size": "512x512", "quality": "hd", "style": "vivid"}
    assert json.loads(request.body) == asked
    turn = f"turn_{asking.run['run_id']}"
    (made,) = answer["ret"]["images"]
    assert answer["ret"]["revised_prompt"] == "A red cat, sitting."
    assert (made["artifact_path"], made["mime"]) == (f"fi:{turn}.files/call-1.png", "image/png")
    assert (made["width"], made["height"], made["size_bytes"]) == (512, 511, len(PNG))
    (artifact,) = answer["artifacts"]
    assert (artifact["visibility"], artifact["sha256"]) == ("external", made["sha256"])
    path = f"/v1/conversations/{asking.run['conversation_id']}/artifacts/{made['artifact_path']}"
    assert (await asking.web.get(path)).content == PNG
    (line,) = asking.pipeline.audit_lines()
    assert (line.gateway.execution, line.sandbox.engine) == ("image", "fake")
    assert asking.pipeline.engine.open_sandboxes == 0


async def test_options_that_are_not_configured_are_not_sent_and_the_first_model_is_the_default(asking, llm):
    llm.answers = [paints(b"\xff\xd8\xff" + b"0" * 90)]
    given = {"provider": "default"}
    await asking.begin({**image(), "execution": given})
    answer = await asking.call("paint", {"prompt": "x"})
    assert llm.bodies() == [{"model": "small-1", "prompt": "x", "n": 1, "size": "1024x1024"}]
    assert answer["ret"]["images"][0]["artifact_path"].endswith("call-1.jpg")
    assert "revised_prompt" not in answer["ret"]


async def test_a_picture_elsewhere_is_fetched_without_the_key(asking, llm, elsewhere):
    elsewhere.answers = [redirect("/b.png"), response(PNG, "image/png")]
    llm.answers = [points(elsewhere.url("/a.png?sig=1"))]
    await asking.begin(image())
    answer = await asking.call("paint", {"prompt": "x"})
    assert answer["ret"]["images"][0]["size_bytes"] == len(PNG)
    assert [request.line for request in elsewhere.requests] == ["GET /a.png?sig=1 HTTP/1.1", "GET /b.png HTTP/1.1"]
    assert all("authorization" not in request.headers() for request in elsewhere.requests)
    effects = asking.pipeline.audit_lines()[-1].gateway.effects
    assert [(effect.method, effect.status) for effect in effects] == [("POST", 200), ("GET", 302), ("GET", 200)]
    assert "sig" not in json.dumps([effect.model_dump() for effect in effects])


@pytest.mark.parametrize("addresses", [[["169.254.169.254"]], [["8.8.8.8", "127.0.0.1"]], [["::ffff:10.0.0.1"]]])
async def test_a_picture_at_an_address_inside_makes_no_connection(tmp_path, llm, elsewhere, monkeypatch, addresses):
    monkeypatch.setenv("LLM_KEY", KEY)
    # The endpoint itself may be there, for the operator chose it.
    async with opened_loop(tmp_path, gateway_networks=(), llm_endpoints=llm.settings()) as loop:
        open_pictures(loop)
        loop.pipeline.names.answers["inside.example"] = addresses
        llm.answers = [points(elsewhere.url("/a.png", "inside.example"))]
        await loop.begin(image())
        answer = await loop.call("paint", {"prompt": "x"})
    assert answer["error"]["code"] == "url_not_allowed"
    assert len(llm.requests) == 1
    assert elsewhere.connections == 0


async def test_a_redirect_to_another_origin_is_refused(asking, llm, elsewhere):
    elsewhere.answers = [redirect("http://169.254.169.254/latest")]
    llm.answers = [points(elsewhere.url("/a.png"))]
    await asking.begin(image())
    answer = await asking.call("paint", {"prompt": "x"})
    assert answer["error"]["code"] == "redirect_refused"
    assert len(elsewhere.requests) == 1


async def test_pictures_that_are_too_large_are_not_stored(asking, llm, elsewhere):
    large = PNG + bytes(30 * MIB)
    elsewhere.answers = [response(large, "image/png")]
    llm.answers = [paints(large), points(elsewhere.url("/a.png")), paints(PNG + bytes(10 * MIB))]
    await asking.begin(image())
    errors = [(await asking.call("paint", {"prompt": "x"}))["error"] for _ in range(3)]
    assert [error["code"] for error in errors] == ["response_too_large"] * 3
    assert "more than may be read" in errors[0]["message"]  # not even kept in memory
    assert asking.pipeline.engine.jobs == []


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        (paints(b"<html>no picture</html>"), "no PNG"),
        (json_response({"data": []}), "data[0]"),
        (json_response({"data": [{"b64_json": "%%%"}]}), "base64"),
        (json_response({"data": [{"url": "file:///etc/passwd"}]}), "http"),
        (json_response({"data": [{"url": 7}]}), "data[0]"),
        (json_response([]), "data[0]"),
        (response(b"{broken", "application/json"), "no JSON"),
        (response(b"[" * 990, "application/json"), "no JSON"),
        (response(b"[" * 100_000, "application/json"), "more than 1,000 values"),
        (json_response({"data": [{"b64_json": "AAAA"}], "usage": [1] * 1_001}), "more than 1,000 values"),
        (json_response({"error": {"message": f"policy {KEY}"}}, "400 Bad Request"), "policy [redacted]"),
        (says("hello"), "data[0]"),
    ],
)
async def test_what_is_no_picture_fails_and_nothing_is_stored(asking, llm, reply, part):
    llm.answers = [reply]
    await asking.begin(image())
    answer = await asking.call("paint", {"prompt": "x"})
    assert answer["error"]["code"] == "image_failed"
    assert part in answer["error"]["message"]
    assert (answer["artifacts"], asking.pipeline.engine.jobs) == ([], [])


async def test_a_page_in_the_place_of_a_picture_and_a_missing_picture_fail(asking, llm, elsewhere):
    elsewhere.answers = [response(b"<html>expired</html>"), response(b"gone", "text/plain", "410 Gone")]
    llm.answers = [points(elsewhere.url("/a.png"))]
    await asking.begin(image())
    answers = [await asking.call("paint", {"prompt": "x"}) for _ in range(2)]
    assert [answer["error"]["code"] for answer in answers] == ["image_failed"] * 2
    assert "410" in answers[1]["error"]["message"]


async def test_a_picture_that_does_not_open_fails(asking, llm):
    asking.pipeline.engine.inspections["picture.png"] = Inspection(
        ok=False, mime="image/png", problem="is truncated", facts={"width": 512, "height": 512}
    )
    llm.answers = [paints(PNG)]
    await asking.begin(image())
    answer = await asking.call("paint", {"prompt": "x"})
    assert (answer["error"]["code"], answer["artifacts"]) == ("image_failed", [])
    assert "is truncated" in answer["error"]["message"]


async def test_a_sandbox_that_is_lost_fails_the_call(asking, llm):
    asking.pipeline.engine.is_lost_at = "run"
    llm.answers = [paints(PNG)]
    await asking.begin(image())
    assert (await asking.call("paint", {"prompt": "x"}))["error"]["code"] == "image_failed"


async def test_the_key_comes_back_nowhere(asking, llm, caplog):
    caplog.set_level("DEBUG")
    coded = base64.b64encode(KEY.encode())
    llm.answers = [paints(PNG + KEY.encode() + b" " + coded, f"{KEY} as a cat")]
    await asking.begin(image())
    answer = await asking.post_call("paint", {"prompt": "x"})
    made = answer.json()["ret"]
    assert made["revised_prompt"] == "[redacted] as a cat"
    path = f"/v1/conversations/{asking.run['conversation_id']}/artifacts/{made['images'][0]['artifact_path']}"
    content = (await asking.web.get(path)).content
    lines = "".join(line.model_dump_json() for line in asking.pipeline.audit_lines())
    everything = answer.text + lines + caplog.text + content.decode("latin-1")
    assert KEY not in everything
    assert coded.decode()[2:-4] not in everything


async def test_a_slow_endpoint_takes_no_longer_than_the_timeout(asking, llm):
    held = Held()
    llm.answers = [held]
    await asking.begin(image(timeout=1_000))
    answer = await asking.call("paint", {"prompt": "x"})
    assert (answer["error"]["code"], "in time" in answer["error"]["message"]) == ("image_failed", True)
    await held.closed.wait()


async def test_a_prompt_is_needed(asking, llm):
    refused = {"version": "2", "agent": {"name": "Helper"}}
    closed = {"type": "object", "properties": {"text": {"type": "string"}}, "additionalProperties": False}
    answer = await asking.web.put("/v1/agents/helper", json={**refused, "tools": [image(closed)]})
    assert [error["field"] for error in answer.json()["errors"]] == ["tools[0].inputSchema"]
    await asking.begin(image({"type": "object"}))
    for params in ({}, {"prompt": " "}, {"prompt": 7}):
        assert (await asking.call("paint", params))["error"]["code"] == "invalid_input"
    await asking.begin(image())
    assert (await asking.call("paint", {"prompt": "x", "size": "1x1"}))["error"]["code"] == "invalid_input"
    assert llm.requests == []


async def test_endpoints_that_cannot_make_pictures_are_refused(tmp_path, llm, monkeypatch):
    monkeypatch.setenv("LLM_KEY", KEY)
    async with opened_loop(tmp_path, llm_endpoints=llm.settings(can=["chat"])) as loop:
        for tool, field in ((image(), "provider"), (image(model="big"), "provider")):
            document = {"version": "2", "agent": {"name": "Helper"}, "tools": [tool]}
            answer = await loop.web.put("/v1/agents/helper", json=document)
            assert [error["field"] for error in answer.json()["errors"]] == [f"tools[0].execution.{field}"]
        await loop.begin(image(provider="dall-e"))  # the operator may still add it
        assert (await loop.call("paint", {"prompt": "x"}))["error"]["code"] == "endpoint_not_configured"
    assert llm.requests == []


async def test_a_model_that_the_endpoint_does_not_have_is_refused(asking):
    document = {"version": "2", "agent": {"name": "Helper"}, "tools": [image(model="big")]}
    answer = await asking.web.put("/v1/agents/helper", json=document)
    (error,) = answer.json()["errors"]
    assert error["field"] == "tools[0].execution.model"
    assert "its models are small-1, picture-1" in error["message"]
