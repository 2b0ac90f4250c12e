"""Hiding, plans and summaries through the application, on SQLite stores that are closed and opened in between."""

from contextlib import asynccontextmanager

import httpx
import pytest

from proofbox.service.app.bootstrap import build
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter

HERE = "/v1/conversations/c1/timeline"
TOKENS = BpeTokenCounter()


@asynccontextmanager
async def opened(folder):
    """One life of the service over the folder's data, without an engine: none of these tools runs anything."""
    settings = Settings(
        data_dir=folder, cache_point_min_rounds=4, cache_point_offset_rounds=3, editable_tail_tokens=300
    )
    service = build(settings)
    await service.database.open()
    await service.artifacts.open()
    transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
    await service.calls.close(1)
    await service.artifacts.close()
    await service.database.close()


@pytest.fixture
async def client(tmp_path):
    async with opened(tmp_path / "data") as client:
        yield client


def block(kind, text, path, turn="turn_1", **fields):
    return {
        "type": kind,
        "author": "react",
        "turn_id": turn,
        "ts": "2026-11-22T10:00:00.000Z",
        "mime": "text/markdown",
        "path": path,
        "text": text,
        "meta": {},
        **fields,
    }


def prompt(text, turn="turn_1"):
    return block("user.prompt", text, f"ar:{turn}.user.prompt", turn)


def note(text, name, turn="turn_1"):
    return block("react.note", text, f"ar:{turn}.artifacts.{name}", turn)


async def append(client, *blocks):
    answer = await client.post(HERE, json={"blocks": list(blocks)})
    assert answer.status_code == 201, answer.text
    return answer.json()["last"]


async def call(client, tool, call_id, turn="turn_1", **params):
    body = {"tool_id": tool, "tool_call_id": call_id, "conversation_id": "c1", "turn_id": turn, "params": params}
    answer = await client.post("/v1/tool-calls", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def view(client, after=0):
    answer = await client.get(HERE, params={"view": "rendered", "after": after})
    names = ("Timeline-Last", "Timeline-Revision", "Timeline-Cache-Points", "Timeline-Tokens")
    return answer.text, [answer.headers[name] for name in names]


async def test_the_whole_story_of_a_conversation_reads_the_same_after_every_restart(tmp_path):
    steps = [
        lambda c: append(c, prompt("what is there?"), note("a list of all things", "list")),
        lambda c: call(c, "react.plan", "p1", steps=["look", "tell"], status={"1": "in_progress"}),
        lambda c: call(c, "react.hide", "h1", path="ar:turn_1.artifacts.list", replacement="all things"),
        lambda c: call(c, "react.plan", "p2", steps=["look", "tell"], status={"1": "done"}),
        lambda c: c.put("/v1/conversations/c1/turns/turn_2/attachments/a.csv", content=b"a,b\n"),
        lambda c: append(c, prompt("and now?", "turn_2"), note("more things", "more", "turn_2")),
        lambda c: append(
            c,
            block(
                "conv.range.summary",
                "Two things were said.",
                "su:turn_3.conv.range.summary",
                "turn_3",
                meta={"covered_turn_ids": ["turn_1", "turn_2"]},
            ),
            prompt("go on", "turn_3"),
        ),
        lambda c: call(c, "react.hide", "h2", "turn_3", path="ar:turn_3.user.prompt", replacement="said"),
    ]
    seen, revisions = "", []
    for step in steps:
        async with opened(tmp_path / "data") as client:
            before, [last, revision, *_] = await view(client)
            assert before == seen
            await step(client)
            seen, [_, now, *_] = after = await view(client)
            assert (seen.startswith(before), now == revision) in {(True, True), (False, False)}
            if now == revision:
                assert seen == before + (await view(client, int(last)))[0]
            revisions.append(now)
        async with opened(tmp_path / "data") as client:
            assert await view(client) == after
    assert revisions == ["0", "0", "8", "8", "8", "8", "17", "20"]
    assert seen.startswith(
        "[SUMMARY OF EARLIER TURNS]\n[path: su:turn_3.conv.range.summary]\nTwo things were said.\n"
    )
    assert "HIDDEN — said. Retrieve with react.read(ar:turn_3.user.prompt)\n" in seen
    assert "\nfi:turn_2.user.attachments/a.csv | text/csv | 4 bytes | " in seen
    assert [word for word in ("all things", "look", "go on", "and now?") if f"\n{word}" in seen] == []


async def test_a_hidden_file_comes_back_when_it_is_read_and_can_be_hidden_again(client):
    path = "fi:turn_1.files/a.md"
    written = {"path": "a.md", "channel": "canvas", "content": "seventeen lines", "kind": "display"}
    assert (await call(client, "react.write", "w1", **written))["ok"]
    in_view = []
    for tool, call_id, params in (
        ("react.read", "r1", {"paths": [path]}),
        ("react.hide", "h1", {"path": path, "replacement": "a text"}),
        ("react.read", "r2", {"paths": [path]}),
        ("react.hide", "h2", {"path": path, "replacement": "the same text"}),
    ):
        assert (await call(client, tool, call_id, **params))["ok"]
        text, [_, revision, *_] = await view(client)
        in_view.append((text.count("\nseventeen lines\n"), text.count("\nHIDDEN — "), revision != "0"))
    assert in_view == [(1, 0, False), (0, 1, True), (1, 1, True), (0, 2, True)]
    assert "HIDDEN — the same text. Retrieve with react.read(fi:turn_1.files/a.md)\n" in text


async def test_hidden_blocks_say_so_as_blocks_page_by_page_and_keep_what_they_held(client):
    await append(client, prompt("hi"), note("long", "n"), note("longer", "n"))
    told = await call(client, "react.hide", "h1", path="ar:turn_1.artifacts.n", replacement="two notes")
    assert (told["ok"], told["ret"]["hidden_blocks"]) == (True, 2)
    pages = [
        (await client.get(HERE, params={"after": after, "limit": 1})).json()["blocks"][0] for after in range(5)
    ]
    assert [(item.get("text"), item["meta"]) for item in pages[:3]] == [
        ("hi", {}),
        ("long", {"hidden": True, "replacement_text": "two notes"}),
        ("longer", {"hidden": True}),
    ]
    whole = (await client.get(HERE)).json()["blocks"]
    assert whole == pages


async def test_the_headers_tell_cache_points_and_the_tokens_of_the_text(client):
    assert await view(client) == ("", ["0", "0", "0,0", "0"])
    last = await append(client, note("one", "a"), note("two", "b"), note("three", "c"), prompt("four"))
    text, told = await view(client)
    assert told == [str(last), "0", "1,3", str(TOKENS.count(text))]
    rest, [_, _, _, tokens] = await view(client, 3)
    assert tokens == str(TOKENS.count(rest))


async def test_the_real_tokenizer_and_the_cache_point_bound_what_is_hidden(client):
    await append(client, note("one", "a"), note("two", "b"), note("word " * 290, "c"))
    said = []
    # Each call is a round of its own: with the first one there are four, and the first note is before them.
    for number, name in enumerate("axabbc"):
        told = await call(client, "react.hide", f"h{number}", path=f"ar:turn_1.artifacts.{name}", replacement="r")
        said.append((name, (told["error"] or {}).get("code")))
    assert said == [
        ("a", "hide_too_old"),
        ("x", "hide_failed"),
        ("a", "hide_before_cache"),
        ("b", "hide_before_cache"),
        ("b", "hide_before_cache"),
        ("c", "hide_before_cache"),
    ]
    await append(client, note("near", "n"), note("nearer", "m"))
    told = await call(client, "react.hide", "h-n", path="ar:turn_1.artifacts.n", replacement="r")
    assert (told["ok"], told["error"]) == (True, None)


async def test_a_call_with_its_own_timeline_hides_in_that_one(client):
    body = {
        "tool_id": "react.hide",
        "tool_call_id": "h1",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": {"path": "ar:turn_1.artifacts.mine", "replacement": "r"},
    }
    answers = [
        (await client.post("/v1/tool-calls", json={**body, **more})).json()
        for more in ({}, {"tool_call_id": "h2", "timeline": [note("mine", "mine")]})
    ]
    assert [answer["ok"] for answer in answers] == [False, True]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"meta": {}}, "blocks[0].meta.covered_turn_ids"),
        ({"meta": {"covered_turn_ids": []}}, "blocks[0].meta.covered_turn_ids"),
        ({"meta": {"covered_turn_ids": "turn_1"}}, "blocks[0].meta.covered_turn_ids"),
        ({"meta": {"covered_turn_ids": ["turn_1", 2]}}, "blocks[0].meta.covered_turn_ids[1]"),
        ({"meta": {"covered_turn_ids": ["1"]}}, "blocks[0].meta.covered_turn_ids[0]"),
        ({"path": "ar:turn_1.user.prompt"}, "blocks[0].path"),
        ({"text": " "}, "blocks[0].text"),
    ],
)
async def test_a_summary_that_cannot_be_is_refused_by_field(client, wrong, field):
    sound = block("conv.range.summary", "s", "su:turn_1.conv.range.summary", meta={"covered_turn_ids": ["turn_1"]})
    answer = await client.post(HERE, json={"blocks": [{**sound, **wrong}]})
    assert answer.status_code == 422
    assert f"{field}:" in answer.json()["detail"]
    assert (await client.post(HERE, json={"blocks": [sound]})).status_code == 201


async def test_a_patched_file_is_read_whole_though_its_patch_is_in_view(client):
    text = "\n".join(str(number) for number in range(50)) + "\n"
    await call(client, "react.write", "w1", path="a.md", channel="canvas", content=text, kind="file")
    patch = "@@ -1,2 +1,2 @@\n-0\n+zero\n 1\n"
    patched = await call(client, "react.patch", "p1", path="a.md", channel="canvas", patch=patch, kind="file")
    first = await call(client, "react.read", "r1", paths=["fi:turn_1.files/a.md"])
    again = await call(client, "react.read", "r2", paths=["fi:turn_1.files/a.md"])
    assert (patched["ok"], first["ret"]["exists_in_visible_context"]) == (True, [])
    assert first["blocks"][-1]["text"] == text.replace("0", "zero", 1)
    assert again["ret"]["exists_in_visible_context"] == ["fi:turn_1.files/a.md"]
