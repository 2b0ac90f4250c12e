"""The catalogue over HTTP, and calls as model APIs write them."""

import json
from dataclasses import replace

import httpx
import pytest

from proofbox.contracts.function_names import function_name
from proofbox.contracts.image_contents import ImageContents
from proofbox.contracts.tools import catalogue
from proofbox.service.api.app import create_app
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.support.printing_engine import PrintingEngine

TOKENS_MAX = 5_545
CONTENTS = ImageContents(
    python="3.13.5",
    libraries={"numpy": "2.5.5", "zopfli": "0.4.3"},
    commands=["jq", "ls"],
    languages=["bash", "python"],
)


@pytest.fixture
def engine():
    """An engine whose image lists what it has."""
    return PrintingEngine(CONTENTS.model_dump_json().encode())


async def test_the_catalogue_lists_what_the_image_has(client):
    answer = (await client.get("/v1/tools")).json()
    tools = [tool.model_dump() for tool in catalogue(CONTENTS)]
    assert answer == {"tools": tools, "image": CONTENTS.model_dump(), "absent": {}}
    assert "numpy 2.5" in answer["tools"][0]["description"]


async def test_a_catalogue_whose_image_cannot_be_asked_lacks_the_libraries_and_nothing_else(client, engine):
    engine.is_down = True
    answer = await client.get("/v1/tools")
    assert answer.status_code == 200
    tools = [tool.model_dump() for tool in catalogue()]
    assert answer.json() == {"tools": tools, "image": None, "absent": {}}


@pytest.mark.parametrize("form", ["proofbox", "openai", "anthropic"])
async def test_a_tool_whose_libraries_are_not_installed_is_absent_and_the_reason_is_given(services, form):
    reason = "memory search is not installed"
    app = create_app(replace(services, absent_tools={"react.memsearch": reason}))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://proofbox") as client:
        answer = await client.get("/v1/tools", params={"format": form})
    listed = answer.json()
    assert "memsearch" not in json.dumps(listed["tools"])
    assert len(listed["tools"]) == len(catalogue()) - 1
    assert listed.get("absent") == ({"react.memsearch": reason} if form == "proofbox" else None)


async def test_both_forms_for_model_apis_have_the_same_functions(client):
    openai = (await client.get("/v1/tools", params={"format": "openai"})).json()["tools"]
    anthropic = (await client.get("/v1/tools", params={"format": "anthropic"})).json()["tools"]
    listed = (await client.get("/v1/tools")).json()["tools"]
    assert [tool["function"]["name"] for tool in openai] == [function_name(tool["tool_id"]) for tool in listed]
    assert [tool["name"] for tool in anthropic] == [tool["function"]["name"] for tool in openai]
    assert [tool["input_schema"] for tool in anthropic] == [tool["function"]["parameters"] for tool in openai]
    assert "code" in anthropic[0]["input_schema"]["properties"]
    assert "numpy 2.5" in anthropic[0]["description"]


async def test_a_form_that_there_is_not_is_refused_with_those_that_there_are(client):
    answer = await client.get("/v1/tools", params={"format": "gemini"})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["errors"][0]["field"] == "format"
    assert answer.json()["detail"].endswith("Input should be 'proofbox', 'openai' or 'anthropic'")


@pytest.mark.parametrize("form", ["proofbox", "openai", "anthropic"])
async def test_the_catalogue_costs_a_model_at_most_half_of_what_it_did(client, form):
    tools = (await client.get("/v1/tools", params={"format": form})).json()["tools"]
    text = json.dumps(tools, ensure_ascii=False, separators=(",", ":"))
    assert BpeTokenCounter().count(text) <= TOKENS_MAX


async def made(client, body):
    """What the calls got of a request."""
    answer = await client.post("/v1/tool-calls", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["ret"]["request"]


async def test_a_call_by_the_function_name_with_its_code_among_the_params_is_the_same_call(client, call_body):
    as_function = {
        **call_body,
        "tool_id": function_name(call_body["tool_id"]),
        "params": {"code": call_body["code"], **call_body["params"]},
    }
    del as_function["code"]
    assert await made(client, as_function) == {**call_body}
    again = await client.post("/v1/tool-calls", json=call_body)
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_the_function_name_of_any_tool_of_the_catalogue_means_that_tool(client, call_body):
    for number, tool in enumerate(catalogue()):
        body = {**call_body, "tool_id": function_name(tool.tool_id), "tool_call_id": f"n{number}"}
        assert (await made(client, body))["tool_id"] == tool.tool_id


async def test_code_in_both_places_is_taken_if_it_is_the_same(client, call_body):
    params = {"code": call_body["code"], **call_body["params"]}
    assert await made(client, {**call_body, "params": params}) == call_body


async def test_code_that_differs_between_the_two_places_is_refused(client, call_body):
    answer = await client.post("/v1/tool-calls", json={**call_body, "params": {"code": "print(2)"}})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    [error] = answer.json()["errors"]
    assert error["field"] == "params.code"
    assert error["message"] == "differs from code; give the program in one of the two places"


@pytest.mark.parametrize("code", [5, ["print()"], None])
async def test_code_among_the_params_that_is_no_text_is_left_for_the_tool_to_refuse(client, call_body, code):
    body = {**call_body, "params": {"code": code}}
    assert (await made(client, body))["params"] == {"code": code}


async def test_code_among_the_params_of_a_tool_that_takes_none_stays_there(client, call_body):
    body = {**call_body, "tool_id": "react__read", "params": {"code": "print()"}, "code": None}
    assert (await made(client, body))["params"] == {"code": "print()"}
