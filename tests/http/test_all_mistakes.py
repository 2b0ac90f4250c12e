"""All mistakes of a request are reported at once: envelope, turn, params, contract, code and limits."""

import json

import pytest

from tests.http.test_invalid_params import calls

__all__ = ["calls"]

RIGHT = {"filename": "a.csv", "description": "a table"}


async def send(client, **fields):
    body = {
        "tool_id": "exec_tools.execute_code_python",
        "tool_call_id": "t1",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": {"contract": [RIGHT]},
        "code": "print(1)\n",
        **fields,
    }
    return await client.post("/v1/tool-calls", json={k: v for k, v in body.items() if v is not None})


def fields_of(answer):
    return {error["field"]: error["message"] for error in answer.json()["errors"]}


async def test_a_wrong_envelope_is_listed_with_turn_params_contract_and_limits(client):
    answer = await send(
        client,
        conversation_id=None,
        turn_id=None,
        arguments={},
        params={"contract": [{"filename": "a.csv", "min_rowz": 3}], "timeOut": 3},
        code="```python",
        limits={"wall_sec": 3, "pids": 9},
        assets=[{"physical_path": "turn_1/files/a", "base_64": ""}],
        sources_pool=[{"sid": 0, "source_type": "web", "link": "x"}],
        network={"allowed": ["example.org"]},
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    found = fields_of(answer)
    assert found["conversation_id"] == "Field required"
    assert found["turn_id"] == "is required; give the current turn's id, such as turn_1"
    assert found["arguments"] == "is not a field of the request; did you mean params?"
    assert found["limits.wall_sec"] == "is not a field of the request; did you mean wall_s?"
    assert found["assets[0].base_64"].endswith("did you mean base64?")
    assert found["sources_pool[0].sid"] == "Input should be greater than or equal to 1"
    assert "network.allowed" in found
    assert found["params.timeOut"] == "is not a parameter of this tool; did you mean timeout_s?"
    assert "contract[0].min_rowz: there is no such field; did you mean min_rows?" in found["params"]
    assert "contract[0].description" in found["params"]
    assert "holds '```python'" in found["code"]


async def test_limits_of_the_operator_are_listed_all_and_with_the_rest(client):
    answer = await send(
        client,
        turn_id=None,
        params={"contract": [RIGHT], "timeout": 3},
        limits={"pids": 10**6, "files": 10**6},
        network={"allow": ["example.org:443"]},
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "limit_not_allowed")
    found = fields_of(answer)
    assert set(found) == {"limits.pids", "limits.files", "network.allow[0]", "params.timeout", "turn_id"}
    assert found["limits.pids"].startswith("is 1000000, the operator allows ")


async def test_an_envelope_that_is_right_but_for_the_turn_is_an_answer_with_all_that_is_wrong(client):
    answer = await send(client, turn_id=None, params={"contract": [{"filename": "a.csv"}]}, code=None)
    assert answer.status_code == 200
    error = answer.json()["error"]
    assert error["code"] == "missing_turn_id"
    for told in ("the call has no turn_id", "contract[0].description: Field required", "the call has no code"):
        assert told in error["message"]
    assert answer.json()["text"].count("Nothing was run") == 1


async def test_wrong_params_are_told_with_turn_contract_and_code(client):
    answer = await send(client, turn_id=None, params={"timeout_s": 0, "contract": []}, code="")
    error = answer.json()["error"]
    assert error["code"] == "invalid_params"
    for told in ("params.timeout_s: ", "turn_id: ", "not a non-empty list", "code: the call has no code"):
        assert told in error["message"], error["message"]


async def test_a_rendering_tells_path_content_and_turn(client):
    params = {"path": "a.md", "content": " "}
    answer = await send(client, tool_id="rendering_tools.write_pdf", turn_id=None, params=params, code=None)
    message = answer.json()["error"]["message"]
    for told in ("turn_id", "'a.md' does not end in .pdf", "params.content is blank"):
        assert told in message


async def test_a_tool_without_program_lists_code_and_params(client):
    answer = await send(client, tool_id="react.write", params={"path": "a"}, packages=["x"])
    assert {"code", "packages", "params.content", "params.kind", "params.channel"} == set(fields_of(answer))


@pytest.mark.parametrize("tool_id", ["exec_tools.execute_code_pyton", 7])
async def test_an_unknown_tool_is_one_of_the_mistakes(client, tool_id):
    answer = await send(client, tool_id=tool_id, conversation_id=None)
    assert {"tool_id", "conversation_id"} <= set(fields_of(answer))


async def test_a_contract_of_another_turn_is_no_mistake_where_the_turn_is_not_known(client):
    contract = [{"filename": "turn_5/files/a.csv", "description": "d"}]
    message = (await send(client, turn_id=None, params={"contract": contract})).json()["error"]["message"]
    assert message == "the call has no turn_id; give the current turn's id"


async def test_a_body_that_is_no_object_is_one_mistake(client):
    answer = await client.post("/v1/tool-calls", json=[1])
    assert (answer.status_code, len(json.loads(answer.text)["errors"])) == (422, 1)
