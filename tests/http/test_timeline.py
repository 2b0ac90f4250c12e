"""The timeline's services: what a loop adds, what is read, as blocks and as text."""

import base64
import json

import pytest

BLOCK = {
    "type": "user.prompt",
    "author": "user",
    "turn_id": "turn_1",
    "ts": "2026-11-22T10:00:00.000Z",
    "mime": "text/markdown",
    "path": "ar:turn_1.user.prompt",
    "text": "How much did it rain?",
    "meta": {},
}
SUMMARY = {
    **BLOCK,
    "type": "conv.range.summary",
    "path": "su:turn_2.conv.range.summary",
    "meta": {"covered_turn_ids": ["turn_1"]},
}
HERE = "/v1/conversations/c1/timeline"


async def append(client, *blocks, **fields):
    return await client.post(HERE, json={"blocks": list(blocks), **fields})


async def test_what_a_loop_adds_is_read_back_in_pages(client):
    for number in range(5):
        answer = await append(client, {**BLOCK, "text": str(number)}, if_last=number)
        assert (answer.status_code, answer.json()) == (201, {"last": number + 1})
    page = (await client.get(HERE, params={"limit": 2})).json()
    assert ([block["text"] for block in page["blocks"]], page["last"], page["more"]) == (["0", "1"], 2, True)
    page = (await client.get(HERE, params={"after": 4})).json()
    assert ([block["text"] for block in page["blocks"]], page["last"], page["more"]) == (["4"], 5, False)


async def test_a_conversation_that_nobody_knows_has_an_empty_timeline(client):
    assert (await client.get(HERE)).json() == {"blocks": [], "last": 0, "more": False}
    assert (await client.get(HERE, params={"view": "rendered"})).text == ""


async def test_a_path_that_is_only_read_is_kept_in_its_canonical_spelling(client):
    given = {**BLOCK, "type": "react.tool.result", "call_id": "c", "path": "tc:turn_1.tool_calls.c.out.json"}
    await append(client, given)
    assert (await client.get(HERE)).json()["blocks"][0]["path"] == "tc:turn_1.c.result"


async def test_blocks_that_cannot_be_are_refused_by_field_and_none_is_added(client):
    for wrong, field in (
        ({**BLOCK, "type": "user.secret"}, "blocks[1].type"),
        ({**BLOCK, "turn_id": "1"}, "blocks[1].turn_id"),
        ({**BLOCK, "path": "../etc"}, "blocks[1].path"),
        ({**BLOCK, "path": "ar:turn_1.something"}, "blocks[1].path"),
        ({**BLOCK, "meta": [1]}, "blocks[1].meta"),
        ({**BLOCK, "base64": "QUJD"}, "blocks[1]"),
        ({**BLOCK, "type": None}, "blocks[1].type"),
        ({"type": "user.prompt", "text": "a"}, "blocks[1].turn_id"),
        ("text", "blocks[1]"),
        ({**SUMMARY, "path": ""}, "blocks[1].path"),
        ({**SUMMARY, "meta": None}, "blocks[1].meta.covered_turn_ids"),
        ({**SUMMARY, "meta": {"covered_turn_ids": ["turn_1", "1"]}}, "blocks[1].meta.covered_turn_ids[1]"),
        ({**SUMMARY, "text": " "}, "blocks[1].text"),
    ):
        answer = await append(client, BLOCK, wrong)
        assert answer.status_code == 422
        assert [error["field"] for error in answer.json()["errors"]] == [field]
        assert answer.json()["detail"].startswith(f"{field}: ")
    assert (await client.get(HERE)).json()["blocks"] == []


async def test_a_path_that_has_no_form_is_quoted_once(client):
    answer = await append(client, {**BLOCK, "path": "ar:turn_1.something"})
    assert answer.json()["detail"] == (
        "blocks[0].path: 'ar:turn_1.something' has no form of a logical path (fi:, ar:, tc:, so:, su:, sk:); "
        "leave the path out for a block that has none"
    )


LOOP_TYPES = [
    "turn.header",
    "agent.log.header",
    "react.completion",
    "react.note",
    "stage.gate",
    "stage.coordinator",
    "stage.feedback",
    "stage.clarification",
    "stage.clarification.resolved",
]


@pytest.mark.parametrize("kind", LOOP_TYPES)
@pytest.mark.parametrize("more", ["", ".1", ".a-b.c_2"])
@pytest.mark.parametrize("turn", ["turn_1", "turn_2026-07-04.stage.1"])
async def test_the_path_of_a_block_of_the_loop_is_its_type_and_maybe_an_id(client, kind, more, turn):
    path = f"ar:{turn}.{kind}{more}"
    answer = await append(client, {"type": kind, "path": path, "text": "said"})
    assert answer.status_code == 201, answer.text
    [block] = (await client.get(HERE)).json()["blocks"]
    assert (block["path"], block["turn_id"], block["text"]) == (path, turn, "said")
    assert (await client.get(f"/v1/conversations/c1/artifacts/{path}")).text == "said"


async def test_only_the_type_and_a_turn_are_needed_and_other_fields_are_ignored(client):
    given = [
        {"type": "user.prompt", "path": "ar:turn_1.user.prompt", "text": "How much?", "meta": None, "ts": None},
        {"type": "react.plan", "turn_id": "turn_1", "text": '{"steps": ["look"]}', "reasoning": "why", "id": 7},
        {"type": "user.attachment", "path": "fi:turn_1.user.attachments/a.bin", "base64": "QUJD", "text": None},
    ]
    assert (await append(client, *given)).status_code == 201
    blocks = (await client.get(HERE)).json()["blocks"]
    assert [(block["author"], block["mime"], block["turn_id"], block["path"]) for block in blocks] == [
        ("user", "text/markdown", "turn_1", "ar:turn_1.user.prompt"),
        ("react", "application/json", "turn_1", ""),
        ("user", "application/octet-stream", "turn_1", "fi:turn_1.user.attachments/a.bin"),
    ]
    assert [sorted(block) for block in blocks] == [
        ["author", "meta", "mime", "path", "text", "ts", "turn_id", "type"],
        ["author", "meta", "mime", "path", "text", "ts", "turn_id", "type"],
        ["author", "base64", "meta", "mime", "path", "ts", "turn_id", "type"],
    ]
    assert [(len(block["ts"]), block["ts"][-1], block["meta"]) for block in blocks] == [(24, "Z", {})] * 3


async def test_an_end_that_has_moved_is_a_conflict(client):
    await append(client, BLOCK)
    answer = await append(client, BLOCK, if_last=0)
    assert (answer.status_code, answer.json()["code"]) == (409, "timeline_moved")


async def test_an_attachment_is_remembered_with_its_digest_and_a_pdf_or_picture_with_its_bytes(client):
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/a.png", content=b"\x89PNG picture")
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/a.csv", content=b"a,b\n")
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/a.csv", content=b"a,b\n")
    blocks = (await client.get(HERE)).json()["blocks"]
    assert [(block["type"], block["path"], block.get("base64")) for block in blocks] == [
        ("user.attachment.meta", "fi:turn_1.user.attachments/a.png", None),
        ("user.attachment", "fi:turn_1.user.attachments/a.png", base64.b64encode(b"\x89PNG picture").decode()),
        ("user.attachment.meta", "fi:turn_1.user.attachments/a.csv", None),
        ("user.attachment", "fi:turn_1.user.attachments/a.csv", None),
    ]
    digests = [json.loads(block["text"]) for block in blocks if "text" in block]
    assert [(said["sid"], said["size_bytes"]) for said in digests] == [(10_001, 12), (10_002, 4)]
    assert [json.loads(block["meta"]["digest"])["sid"] for block in blocks[1::2]] == [10_001, 10_002]
    view = (await client.get(HERE, params={"view": "rendered"})).text
    assert "[USER ATTACHMENT] a.png | image/png" in view
    assert "<image media_type=image/png b64_len=16>" in view
    assert [word for word in ("hosted_uri", "cb/tenants", "ef:acme") if word in view] == []


async def test_the_text_of_a_longer_timeline_begins_with_the_text_of_before(client):
    view = {"view": "rendered"}
    seen = ""
    call = {
        **BLOCK,
        "type": "react.tool.call",
        "call_id": "c1",
        "path": "tc:turn_1.c1.call",
        "text": '{"tool_id": "t"}',
    }
    result = {**BLOCK, "type": "react.tool.result", "call_id": "c1", "path": "tc:turn_1.c1.result", "text": "done"}
    plan = {
        **BLOCK,
        "type": "react.plan",
        "path": "ar:turn_1.react.plan.p1",
        "text": '{"plan_id": "p1", "steps": ["look", "tell"], "status": {"1": "done"}}',
    }
    for block in (BLOCK, call, result, plan, {**BLOCK, "turn_id": "turn_2", "path": "ar:turn_2.user.prompt"}):
        last = (await append(client, block)).json()["last"]
        text = (await client.get(HERE, params=view)).text
        rest = (await client.get(HERE, params={**view, "after": last - 1})).text
        assert text == seen + rest
        seen = text
    assert seen == (
        "[TURN turn_1] ts=2026-11-22T10:00:00.000Z\n\n"
        "[USER MESSAGE]\n[path: ar:turn_1.user.prompt]\nHow much did it rain?\n"
        '\n[react.tool.call] (JSON)\n{"tool_id": "t"}\n'
        "\n[TOOL RESULT c1].result t\n[path: tc:turn_1.c1.result]\ndone\n"
        "\n[REACT.PLAN]\nid=p1\n✓ 1) look\n□ 2) tell\n"
        "\n[TURN turn_2] ts=2026-11-22T10:00:00.000Z\n\n"
        "[USER MESSAGE]\n[path: ar:turn_2.user.prompt]\nHow much did it rain?\n"
    )


async def test_the_aligned_texts_together_are_the_rendered_timeline_with_hidings_and_summaries(client):
    turn_2 = {**BLOCK, "turn_id": "turn_2", "path": "ar:turn_2.user.prompt"}
    note = {
        **BLOCK,
        "turn_id": "turn_3",
        "type": "react.note",
        "path": "ar:turn_3.react.note.n1",
        "text": "remember",
    }
    hiding = {
        **note,
        "path": "ar:turn_3.react.note.n2",
        "meta": {"hides": note["path"], "replacement_text": "gone"},
    }
    summary = {**SUMMARY, "turn_id": "turn_2", "text": "It rained."}
    for block in (
        BLOCK,
        turn_2,
        summary,
        note,
        hiding,
        {**turn_2, "turn_id": "turn_4", "path": "ar:turn_4.user.prompt"},
    ):
        assert (await append(client, block)).status_code == 201
    rendered = await client.get(HERE, params={"view": "rendered"})
    entries, after, more = [], 0, True
    while more:
        page = (await client.get(f"{HERE}/aligned", params={"after": after, "limit": 2})).json()
        entries += page["entries"]
        after, more = page["last"], page["more"]
    assert [entry["position"] for entry in entries] == [1, 2, 3, 4, 5, 6]
    assert "".join(entry["text"] for entry in entries) == rendered.text
    assert all((entry["tokens"] > 0) == bool(entry["text"]) for entry in entries)
    assert "It rained." in rendered.text


async def test_an_aligned_block_has_the_length_of_its_base64_and_not_the_bytes(client):
    png = b"\x89PNG" + bytes(600)
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/a.png", content=png)
    entries = (await client.get(f"{HERE}/aligned")).json()["entries"]
    sizes = [(entry["base64_chars"], entry["block"].get("base64")) for entry in entries if entry["base64_chars"]]
    assert sizes == [(len(base64.b64encode(png)), None)]


async def test_the_sources_of_a_conversation_are_listed_by_sid(client):
    await client.put("/v1/conversations/c1/turns/turn_1/attachments/a.csv", content=b"a,b\n")
    rows = (await client.get("/v1/conversations/c1/sources")).json()["sources"]
    assert [(row["sid"], row["source_type"], row["artifact_path"]) for row in rows] == [
        (10_001, "attachment", "fi:turn_1.user.attachments/a.csv")
    ]
    assert (await client.get("/v1/conversations/c2/sources")).json() == {"sources": []}
