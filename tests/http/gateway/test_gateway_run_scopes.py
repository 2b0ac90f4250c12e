"""What a key may see and do through runs: nothing of spaces that are not open to it."""

import pytest


async def _begin(client, space_id):
    return await client.post("/v1/runs", json={"agent_id": "helper", "space_id": space_id})


@pytest.mark.parametrize(("who", "status"), [("ann", 201), ("bob", 404), ("admin", 201)])
async def test_a_run_begins_in_a_space_that_is_open_to_the_caller(people, kitchen, who, status):
    answer = await _begin(getattr(people, who), kitchen)
    assert answer.status_code == status, answer.text
    if status == 404:
        assert answer.json()["code"] == "unknown_space"
    else:  # relative, so that it holds below the prefix of a proxy
        assert answer.headers["location"] == f"../v1/runs/{answer.json()['run_id']}"


async def test_a_key_that_reads_no_spaces_sees_none_in_the_context_of_its_run(people, kitchen):
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "a secret"})
    run_id = (await _begin(people.ann, kitchen)).json()["run_id"]
    path = f"/v1/runs/{run_id}/context"
    full, bare = (await people.ann.get(path)).json(), (await people.blind.get(path)).json()
    assert [message["text"] for message in full["history"]] == ["a secret"]
    assert full["active_space"]["space_id"] == kitchen
    assert [bare.get(name) for name in ("active_space", "spaces", "history")] == [None, [], []]
    assert bare["agent"] == full["agent"]


async def test_a_run_is_its_holders_alone(people, kitchen):
    run_id = (await _begin(people.ann, kitchen)).json()["run_id"]
    lease = {"Run-Lease": "1"}
    answers = [
        await people.bob.get(f"/v1/runs/{run_id}/context"),
        await people.bob.post(f"/v1/runs/{run_id}/heartbeat", json={}, headers=lease),
        await people.bob.post(f"/v1/runs/{run_id}/release", headers=lease),
        await people.bob.post(f"/v1/runs/{run_id}/finish", json={"status": "completed"}, headers=lease),
    ]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "unknown_run")] * 4
    assert (await people.ann.get(f"/v1/runs/{run_id}")).json()["status"] == "running"
