"""Entities, spaces, members and messages: who may do what, and what is refused."""

import asyncio
import json

import pytest

from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent
from proofbox.contracts.gateway.spaces import Entity, Space, SpacePage


async def _code(answer):
    return answer.status_code, answer.json()["code"]


async def test_an_entity_has_64_kib_at_most(people):
    body = json.dumps({"type": "human", "handle": "eve", "display_name": "Eve"}).ljust(64 * 1024 + 1)
    answer = await people.admin.put("/v1/entities/eve", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


async def test_a_person_is_made_changed_and_read(office):
    body = {"type": "human", "handle": "Ann", "display_name": "Ann", "user": "ann"}
    made = await office.ann.put("/v1/entities/ann", json=body)
    changed = await office.ann.put("/v1/entities/ann", json={**body, "display_name": "Ann B."})
    read = await office.bob.get("/v1/entities/ann")
    assert (made.status_code, changed.status_code, read.status_code) == (201, 200, 200)
    assert Entity.model_validate(read.json()).display_name == "Ann B."


async def test_a_handle_is_unique_and_case_is_ignored(people):
    body = {"type": "human", "handle": "BOB", "display_name": "X"}
    assert await _code(await people.admin.put("/v1/entities/x", json=body)) == (409, "name_taken")
    body["handle"] = "Helper"  # the agent's
    assert await _code(await people.admin.put("/v1/entities/x", json=body)) == (409, "name_taken")


async def test_a_key_makes_its_own_person_only(people):
    body = {"type": "human", "handle": "eve", "display_name": "Eve"}
    assert await _code(await people.bob.put("/v1/entities/eve", json={**body, "user": "ann"})) == (403, "forbidden")
    assert await _code(await people.bob.put("/v1/entities/ann", json=body)) == (403, "forbidden")
    assert await _code(await people.admin.put("/v1/entities/eve", json={**body, "user": "ann"})) == (
        422,
        "invalid_request",
    )
    assert await _code(await people.admin.put("/v1/entities/agent:eve", json=body)) == (422, "invalid_request")


async def test_entities_are_listed_page_by_page(people):
    first = (await people.bob.get("/v1/entities?limit=2")).json()
    rest = (await people.bob.get(f"/v1/entities?limit=2&before={first['next']}")).json()
    assert [item["entity_id"] for item in first["items"] + rest["items"]] == ["agent:helper", "bob", "ann"]
    assert rest["next"] is None


async def test_a_space_is_its_members_only(people, kitchen):
    space = Space.model_validate((await people.ann.get(f"/v1/spaces/{kitchen}")).json())
    assert [member.entity_id for member in space.members] == ["ann", "agent:helper"]
    for client in (people.bob, people.foreigner):
        for request in (
            client.get(f"/v1/spaces/{kitchen}"),
            client.get(f"/v1/spaces/{kitchen}/messages"),
            client.get(f"/v1/spaces/{kitchen}/messages/msg_1"),
            client.get(f"/v1/spaces/{kitchen}/events"),
            client.get(f"/v1/spaces/{kitchen}/messages/msg_1/artifacts/fi:turn_1.files/a"),
            client.post(f"/v1/spaces/{kitchen}/messages", json={"text": "hello"}),
            client.patch(f"/v1/spaces/{kitchen}", json={"name": "x"}),
            client.delete(f"/v1/spaces/{kitchen}"),
            client.put(f"/v1/spaces/{kitchen}/members/bob"),
            client.delete(f"/v1/spaces/{kitchen}/members/ann"),
        ):
            assert await _code(await request) == (404, "unknown_space")
    assert (await people.admin.get(f"/v1/spaces/{kitchen}")).status_code == 200
    unknown = await people.ann.get("/v1/spaces/spc_0")
    other = await people.bob.get(f"/v1/spaces/{kitchen}")
    assert unknown.json()["detail"].replace("spc_0", "") == other.json()["detail"].replace(kitchen, "")


async def test_spaces_are_listed_to_their_members(people, kitchen):
    await people.admin.post("/v1/spaces", json={"name": "Hall", "members": ["bob"]})
    for client, expected in ((people.ann, ["Kitchen"]), (people.bob, ["Hall"]), (people.foreigner, [])):
        page = SpacePage.model_validate((await client.get("/v1/spaces")).json())
        assert [space.name for space in page.items] == expected
    everything = SpacePage.model_validate((await people.admin.get("/v1/spaces?limit=1")).json())
    assert [space.name for space in everything.items] == ["Hall"]
    rest = SpacePage.model_validate((await people.admin.get(f"/v1/spaces?before={everything.next}")).json())
    assert [space.space_id for space in rest.items] == [kitchen]


async def test_an_unknown_first_member_is_named_with_its_field(people):
    answer = await people.ann.post("/v1/spaces", json={"name": "Hall", "members": ["bob", "nobody"]})
    assert await _code(answer) == (404, "unknown_entity")
    assert answer.json()["detail"].startswith("members: the project has no entity 'nobody'")


async def test_members_join_and_leave(people, kitchen):
    joined = await people.ann.put(f"/v1/spaces/{kitchen}/members/bob")
    assert [member["entity_id"] for member in joined.json()["members"]] == ["ann", "agent:helper", "bob"]
    assert (await people.ann.put(f"/v1/spaces/{kitchen}/members/bob")).status_code == 200
    assert (await people.bob.get(f"/v1/spaces/{kitchen}")).status_code == 200
    assert (await people.ann.delete(f"/v1/spaces/{kitchen}/members/bob")).status_code == 204
    assert (await people.bob.get(f"/v1/spaces/{kitchen}")).status_code == 404
    unknown = await people.ann.put(f"/v1/spaces/{kitchen}/members/nobody")
    assert await _code(unknown) == (404, "unknown_entity")


async def test_an_archived_space_is_read_only(people, kitchen):
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "before"})
    assert (await people.ann.delete(f"/v1/spaces/{kitchen}")).status_code == 204
    assert (await people.ann.delete(f"/v1/spaces/{kitchen}")).status_code == 204
    for request in (
        people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "after"}),
        people.ann.patch(f"/v1/spaces/{kitchen}", json={"name": "x"}),
        people.ann.put(f"/v1/spaces/{kitchen}/members/bob"),
        people.ann.delete(f"/v1/spaces/{kitchen}/members/ann"),
    ):
        assert await _code(await request) == (409, "space_archived")
    page = (await people.ann.get(f"/v1/spaces/{kitchen}/messages")).json()
    assert [message["text"] for message in page["items"]] == ["before"]
    assert (await people.ann.get(f"/v1/spaces/{kitchen}")).json()["archived"]


async def test_name_and_metadata_change_one_by_one(people, kitchen):
    await people.ann.patch(f"/v1/spaces/{kitchen}", json={"metadata": {"floor": 2}})
    space = (await people.ann.patch(f"/v1/spaces/{kitchen}", json={"name": "Bar"})).json()
    assert (space["name"], space["metadata"]) == ("Bar", {"floor": 2})
    large = await people.ann.patch(f"/v1/spaces/{kitchen}", json={"metadata": {"x": "y" * 17_000}})
    assert await _code(large) == (422, "invalid_request")
    assert "limit 16,384" in large.json()["detail"]


async def test_a_text_is_posted_with_its_mentions(people, kitchen):
    text = "Hi @HELPER and @nobody, not `@helper`, ann@helper.example; @ann too"
    answer = await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": text})
    assert answer.status_code == 201
    sent = MessageSent.model_validate(answer.json())
    assert sent.message.text == text
    assert sent.message.mentions == ["agent:helper"]
    assert sent.unknown_mentions == ["nobody"]
    assert (sent.message.seq, sent.message.sender.entity_id, sent.message.replyable) == (1, "ann", True)
    read = await people.ann.get(f"/v1/spaces/{kitchen}/messages/{sent.message.message_id}")
    assert Message.model_validate(read.json()) == sent.message


@pytest.mark.parametrize("text", ["", "x" * 20_001])
async def test_a_text_has_1_to_20_000_characters(people, kitchen, text):
    refused = await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": text})
    assert await _code(refused) == (422, "invalid_request")
    assert refused.json()["errors"][0]["field"] == "text"


async def test_a_reply_names_a_text_of_the_space(people, kitchen):
    first = (await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "one"})).json()["message"]
    body = {"text": "two", "reply_to": first["message_id"]}
    reply = await people.ann.post(f"/v1/spaces/{kitchen}/messages", json=body)
    assert reply.json()["message"]["reply_to"] == first["message_id"]
    body["reply_to"] = "msg_0"
    unknown = await people.ann.post(f"/v1/spaces/{kitchen}/messages", json=body)
    assert await _code(unknown) == (404, "unknown_message")


async def test_the_record_of_a_call_is_not_replyable(people, kitchen):
    tool = {"name": "show", "executionType": "gateway", "execution": {"output": "{{input}}"}}
    await people.loop.begin(tool, space_id=kitchen)
    answer = await people.loop.call("show", {"x": "@ann"})
    message_id = answer["posted"]["message_id"]
    body = {"text": "two", "reply_to": message_id}
    refused = await people.ann.post(f"/v1/spaces/{kitchen}/messages", json=body)
    assert await _code(refused) == (422, "not_replyable")
    record = Message.model_validate((await people.ann.get(f"/v1/spaces/{kitchen}/messages/{message_id}")).json())
    assert record.mentions == []
    assert record.tool.output == {"x": "@ann"}


async def test_messages_are_listed_in_both_directions(people, kitchen):
    for number in range(1, 8):
        await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": str(number)})

    async def page(query):
        answer = await people.ann.get(f"/v1/spaces/{kitchen}/messages?{query}")
        found = MessagePage.model_validate(answer.json())
        return [message.seq for message in found.items], found.next

    assert await page("limit=3") == ([5, 6, 7], 5)
    assert await page("limit=3&before=5") == ([2, 3, 4], 2)
    assert await page("limit=3&before=2") == ([1], None)
    assert await page("limit=3&after=0") == ([1, 2, 3], 3)
    assert await page("limit=3&after=4") == ([5, 6, 7], None)
    assert await page("after=2&before=5") == ([3, 4], None)


async def test_a_key_without_an_entity_posts_nothing(people, kitchen):
    refused = await people.admin.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x"})
    assert await _code(refused) == (422, "invalid_request")
    sent = await people.admin.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x", "entity_id": "ann"})
    assert sent.json()["message"]["sender"]["entity_id"] == "ann"


async def test_only_who_may_act_as_others_names_them(people, kitchen):
    await people.ann.put(f"/v1/spaces/{kitchen}/members/bob")
    named = await people.bob.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x", "entity_id": "ann"})
    assert await _code(named) == (403, "forbidden")
    own = await people.bob.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x", "entity_id": "bob"})
    assert own.status_code == 201
    unknown = await people.admin.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x", "entity_id": "zoe"})
    assert await _code(unknown) == (404, "unknown_entity")


async def test_the_same_request_with_an_idempotency_key_posts_once(people, kitchen):
    url, headers = f"/v1/spaces/{kitchen}/messages", {"Idempotency-Key": "k1"}
    answers = await asyncio.gather(
        *(people.ann.post(url, json={"text": "once"}, headers=headers) for _ in range(8))
    )
    assert {answer.text for answer in answers} == {answers[0].text}
    assert sorted(answer.headers.get("Idempotent-Replayed", "") for answer in answers) == [""] + ["true"] * 7
    other = await people.ann.post(url, json={"text": "twice"}, headers=headers)
    assert await _code(other) == (409, "id_reused")
    assert len((await people.ann.get(url)).json()["items"]) == 1
    first = await people.ann.post("/v1/spaces", json={"name": "A"}, headers={"Idempotency-Key": "k2"})
    again = await people.ann.post("/v1/spaces", json={"name": "A"}, headers={"Idempotency-Key": "k2"})
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"


async def test_numbers_of_messages_have_no_gaps_when_many_post(people, kitchen):
    url = f"/v1/spaces/{kitchen}/messages"
    await asyncio.gather(*(people.ann.post(url, json={"text": str(number)}) for number in range(30)))
    items = (await people.ann.get(f"{url}?limit=100")).json()["items"]
    assert [message["seq"] for message in items] == list(range(1, 31))


async def test_scopes_are_required(people, kitchen):
    assert await _code(await people.reader.post("/v1/spaces", json={"name": "x"})) == (403, "forbidden")
    await people.ann.put(f"/v1/spaces/{kitchen}/members/bob")
    assert (await people.reader.get(f"/v1/spaces/{kitchen}")).status_code == 200
    posted = await people.reader.post(f"/v1/spaces/{kitchen}/messages", json={"text": "x"})
    assert await _code(posted) == (403, "forbidden")
    nobody = await people.client()
    assert await _code(await nobody.get(f"/v1/spaces/{kitchen}")) == (401, "unauthorized")
