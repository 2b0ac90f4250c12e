"""react.read against the real local stores: what comes back into view, in which order, and what does not."""

import base64
import json
import os
import re
from pathlib import Path

import pytest

from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.artifacts.port import NewPage
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_text import rendered
from tests.support.conversations import (
    BOB,
    EVE,
    PNG,
    SCOPE,
    TOKENS,
    block,
    call_block,
    meta_block,
    opened_conversation,
    sha256,
    status,
    told,
)

PAGE = NewPage("https://example.org", "A page", "It says so.", None, "turn_1")
GOLDEN = Path(__file__).parent / "golden"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
_HOSTED_ROOT = re.compile(r"file://[^\"]*?/cb/tenants/")
PDF = b"%PDF-1.7 not really"
PPTX_MIME = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


@pytest.fixture
async def conversation(tmp_path):
    async with opened_conversation(tmp_path) as opened:
        yield opened


def digests(response):
    found = (json.loads(item.text) for item in response.blocks if item.mime == "application/json")
    return [payload for payload in found if "artifact_path" in payload]


# ---- the documents' example ----


async def read_mixed(conversation, notes=None):
    """A file, a page, two attachments and a deck, none of them in view."""
    report = await conversation.save("turn_1/files/report.pdf", PDF, "application/pdf")
    await conversation.sources.add_file(SCOPE, report)
    await conversation.sources.add_pages(SCOPE, [PAGE])
    await conversation.attach("turn_2", "notes.txt", b"some notes")
    await conversation.attach("turn_2", "image.png", PNG)
    # The loop compacted what the uploads showed.
    covered = {"covered_turn_ids": ["turn_1", "turn_2"]}
    await conversation.append(
        block("su:turn_3.conv.range.summary", "s", type="conv.range.summary", turn_id="turn_3", meta=covered)
    )
    await conversation.save("turn_3/files/board.pptx", b"PK", PPTX_MIME)
    asked = [
        "so:sources_pool[1,10001]",
        "fi:turn_2.user.attachments/notes.txt",
        "fi:turn_2.user.attachments/image.png",
        "fi:turn_3.files/board.pptx",
    ]
    return asked, await conversation.read(*asked, call_id="rd", notes=notes)


async def test_mixed_inputs_come_back_block_for_block_as_the_document_says(conversation):
    asked, response = await read_mixed(conversation)
    result = "tc:turn_9.rd.result"
    assert told(response) == [
        ("react.tool.call", "tc:turn_9.rd.call", "text"),
        ("react.tool.result", result, "text"),
        ("react.tool.result", result, "text"),
        ("react.tool.result", "fi:turn_1.files/report.pdf", "base64"),
        ("react.tool.result", "so:sources_pool[1]", "text"),
        ("react.tool.result", result, "text"),
        ("react.tool.result", "fi:turn_2.user.attachments/notes.txt", "text"),
        ("react.tool.result", result, "text"),
        ("react.tool.result", "fi:turn_2.user.attachments/image.png", "base64"),
        ("react.tool.result", result, "text"),
        ("react.tool.result", "fi:turn_3.files/board.pptx", None),
    ]
    shown = [item.text for item in response.blocks[2:] if item.text is not None]
    assert status(response) == {
        "paths": asked,
        "missing": [],
        "missing_skills": [],
        "exists_in_visible_context": [],
        "total_tokens": sum(TOKENS.count(text) for text in shown),
    }
    assert [digest["artifact_path"] for digest in digests(response)] == [
        "fi:turn_1.files/report.pdf",
        *asked[1:],
    ]
    assert response.blocks[4].text == "[S:1] A page\nurl: https://example.org\nIt says so.\n"
    assert response.blocks[3].base64 == base64.b64encode(PDF).decode()
    assert {item.meta["hidden"] for item in response.blocks[2:]} == {False}
    assert {item.meta["tool_call_id"] for item in response.blocks} == {"rd"}
    assert (response.ok, response.ret) == (True, status(response))


@pytest.mark.parametrize("name", ["react_read_mixed.json", "react_read_mixed.txt"])
async def test_mixed_inputs_are_the_committed_blocks_and_the_committed_view(conversation, name):
    _, response = await read_mixed(conversation, notes="I look at all of it.")
    blocks = [item.model_dump(exclude_none=True) for item in response.blocks]
    view = rendered(response.blocks)
    actual = view if name.endswith(".txt") else json.dumps(blocks, ensure_ascii=False, indent=2) + "\n"
    actual = _TIME.sub("<time>", _HOSTED_ROOT.sub("file://<root>/cb/tenants/", actual))
    assert [word for word in ("hosted_uri", '"rn"', '"key"', "cb/tenants", "managed") if word in view] == []
    if os.environ.get("PROOFBOX_TEST_GOLDEN") == "write":
        (GOLDEN / name).write_text(actual, encoding="utf-8")
    assert actual == (GOLDEN / name).read_text(encoding="utf-8")


async def test_notes_come_first_and_the_status_right_after_the_call(conversation):
    await conversation.save("turn_1/files/a.txt")
    response = await conversation.read("fi:turn_1.files/a.txt", notes="Looking it up", call_id="rd")
    assert [kind for kind, _, _ in told(response)] == [
        "react.notes",
        "react.tool.call",
        "react.tool.result",
        "react.tool.result",
        "react.tool.result",
    ]
    assert json.loads(response.blocks[1].text)["params"] == {"paths": ["fi:turn_1.files/a.txt"]}


# ---- what is in view already ----


async def test_what_a_model_sees_already_is_not_shown_twice(conversation):
    await conversation.attach("turn_1", "image.png", PNG)
    first = await conversation.read("fi:turn_1.user.attachments/image.png")
    assert (len(first.blocks), first.ok) == (2, True)
    assert status(first)["exists_in_visible_context"] == ["fi:turn_1.user.attachments/image.png"]


@pytest.mark.parametrize("path", ["fi:turn_1.files/a.txt", "ar:turn_1.user.prompt", "so:sources_pool[1]", "sk:pdf"])
async def test_a_second_read_shows_nothing_until_what_was_read_is_hidden(conversation, path):
    await conversation.save("turn_1/files/a.txt")
    await conversation.sources.add_pages(SCOPE, [NewPage("https://example.org", "A page", None, None, "turn_1")])
    await conversation.append(block("ar:turn_1.user.prompt", "please", type="user.prompt"))
    await conversation.append(hiding("ar:turn_1.user.prompt"))
    (conversation.skills / "pdf.md").write_text("how to")
    first = await conversation.read(path)
    second = await conversation.read(path)
    await conversation.append(hiding(path))
    third = await conversation.read(path)
    found = [status(response)["exists_in_visible_context"] for response in (first, second, third)]
    assert found == [[], [path], []]
    assert told(third)[2:] == [(kind, at.replace("r1", "r3"), what) for kind, at, what in told(first)[2:]]


def hiding(path):
    meta = {"hides": path, "replacement_text": "gone"}
    return block("tc:turn_8.h.result", "{}", turn_id="turn_8", call_id="h", meta=meta)


async def test_a_newer_version_than_the_one_in_view_is_shown(conversation):
    await conversation.attach("turn_1", "a.txt", b"one")
    await conversation.read("fi:turn_1.user.attachments/a.txt")
    await conversation.save("turn_1/attachments/a.txt", b"the second")
    response = await conversation.read("fi:turn_1.user.attachments/a.txt")
    assert response.blocks[-1].text == "the second"
    [digest] = digests(response)
    assert (digest["sha256"], digest["size_bytes"], digest["edited"]) == (sha256(b"the second"), 10, True)


async def test_one_path_asked_for_twice_and_by_its_source_is_shown_once(conversation):
    stored = await conversation.save("turn_1/files/a.txt")
    await conversation.sources.add_file(SCOPE, stored)
    path = "fi:turn_1.files/a.txt"
    response = await conversation.read(path, path, "so:sources_pool[1]", "turn_1/files/a.txt")
    assert [at for _, at, _ in told(response)[2:]] == ["tc:turn_9.r1.result", path]


# ---- digests ----


async def test_the_digest_is_the_one_that_the_file_came_with(conversation):
    stored = await conversation.save("turn_1/files/a.md", b"# A\n", "text/markdown")
    digest = {
        "artifact_path": "fi:turn_1.files/a.md",
        "physical_path": "turn_1/files/a.md",
        "mime": "text/markdown",
        "kind": "display",
        "visibility": "external",
        "tool_call_id": "w1",
        "tool_id": "react.write",
        "sources_used": [1, 2],
        "sha256": stored.sha256,
    }
    await conversation.append(
        call_block("w1", "react.write"),
        meta_block("w1", {**digest, "hosted_uri": "s3://secret", "rn": "ef:secret", "key": "secret"}),
    )
    response = await conversation.read("fi:turn_1.files/a.md")
    [shown] = digests(response)
    assert shown == {**shown, **digest, "size_bytes": 4, "tokens": TOKENS.count("# A\n")}
    seen = "".join(item.text or "" for item in response.blocks) + response.report + json.dumps(response.ret)
    assert "secret" not in seen
    assert str(conversation.folder) not in seen
    assert response.blocks[-1].meta["hosted_uri"] == stored.hosted_uri
    assert json.loads(response.blocks[-1].meta["digest"]) == shown


# ---- long texts and large files ----

LINES = [f"line {number} ä" for number in range(1, 5_001)]
LONG = ("\n".join(LINES) + "\n").encode()


async def test_a_long_text_is_cut_and_the_status_says_how_to_get_the_rest(conversation):
    await conversation.save("turn_1/files/log.txt", LONG)
    path = "fi:turn_1.files/log.txt"
    response = await conversation.read(path)
    assert response.blocks[-1].text == LONG[:20_480].decode(errors="ignore") + "\n...[truncated]"
    lines = LONG[:20_480].count(b"\n")
    said = f"the first 20480 of {len(LONG)} bytes, lines 1 to {lines}; read on with {path}#L{lines + 1}-"
    assert status(response)["partly_shown"] == {path: said}
    assert said in response.report


async def test_a_long_text_in_view_already_is_told_to_be_there_in_part_and_how_to_read_on(conversation):
    await conversation.save("turn_1/files/log.txt", LONG)
    path = "fi:turn_1.files/log.txt"
    first, second = await conversation.read(path), await conversation.read(path)
    assert status(second)["exists_in_visible_context"] == [path]
    assert status(second)["partly_shown"] == status(first)["partly_shown"] != {}
    assert "read on with" in second.report


async def test_reading_on_as_told_shows_every_line_of_a_text(conversation):
    await conversation.save("turn_1/files/log.txt", LONG)
    path, seen = "fi:turn_1.files/log.txt", ""
    for _ in range(10):
        response = await conversation.read(path)
        shown = response.blocks[-1].text.removesuffix("\n...[truncated]")
        body = shown.partition("\n")[2] if shown.startswith("[lines") else shown
        partly = status(response).get("partly_shown", {})
        seen += body if not partly else body[: body.rindex("\n") + 1]
        if not partly:
            break
        path = next(iter(partly.values())).rpartition("read on with ")[2]
    assert seen.encode() == LONG


async def test_reading_on_as_told_shows_every_byte_of_a_text_of_one_line(conversation):
    line = ("ä1" * 30_000).encode()
    await conversation.save("turn_1/files/one.json", line, "application/json")
    path, seen = "fi:turn_1.files/one.json", b""
    for _ in range(10):
        response = await conversation.read(path)
        body = response.blocks[-1].text.removesuffix("\n...[truncated]")
        body = body.partition("\n")[2] if body.startswith("[bytes") else body
        partly = status(response).get("partly_shown", {})
        assert all("#B" in how for how in partly.values())
        seen += body.replace("1", "").encode()
        if not partly:
            break
        path = next(iter(partly.values())).rpartition("read on with ")[2]
    # A character that is cut at the end of one part is left out of both.
    assert 30_000 - 4 <= seen.decode().count("ä") <= 30_000


async def test_bytes_of_a_binary_file_are_shown_in_hexadecimal(conversation):
    await conversation.save("turn_1/files/p.png", PNG, "image/png")
    response = await conversation.read("fi:turn_1.files/p.png#B1-3")
    assert response.blocks[-1].text == "[bytes 1-3 of 70]\n00000001: 50 4e 47"
    [digest] = digests(response)
    assert (digest["bytes"], digest["bytes_total"]) == ([1, 3], 70)
    assert status(await conversation.read("fi:turn_1.files/p.png#B1-3"))["exists_in_visible_context"] != []
    assert (await conversation.read("fi:turn_1.files/p.png")).blocks[-1].base64 is not None


@pytest.mark.parametrize("mime", ["image/svg+xml", "application/octet-stream", "application/xhtml+xml"])
async def test_every_text_has_lines_whatever_its_media_type(conversation, mime):
    await conversation.save("turn_1/files/x", b"<svg>\n<g/>\n</svg>\n", mime)
    response = await conversation.read("fi:turn_1.files/x#L2")
    assert response.blocks[-1].text == "[lines 2-2 of 3]\n<g/>\n"


async def test_a_text_of_an_unknown_type_is_shown_and_a_binary_is_not(conversation):
    await conversation.save("turn_1/files/main.go", b"package main\n", "application/octet-stream")
    await conversation.save("turn_1/files/data.bin", b"\x00\x01", "application/octet-stream")
    response = await conversation.read("fi:turn_1.files/main.go", "fi:turn_1.files/data.bin")
    texts = {item.path: item.text for item in response.blocks if item.path.startswith("fi:")}
    assert texts == {"fi:turn_1.files/main.go": "package main\n", "fi:turn_1.files/data.bin": None}


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("a.txt", "fi:turn_9.files/a.txt"),
        ("./a.txt", "fi:turn_9.files/a.txt"),
        ("files/a.txt", "fi:turn_9.files/a.txt"),
        ("turn_9/files/a.txt", "fi:turn_9.files/a.txt"),
        ("b.txt", "fi:turn_9.user.attachments/b.txt"),
        ("attachments/b.txt", "fi:turn_9.user.attachments/b.txt"),
        ("a.txt#L1", "fi:turn_9.files/a.txt#L1-1"),
        ("ar:turn_9.artifacts.a.txt", "fi:turn_9.files/a.txt"),
        ("ar:turn_9.artifacts.files/a.txt", "fi:turn_9.files/a.txt"),
        ("ar:turn_9.artifacts.b.txt", "fi:turn_9.user.attachments/b.txt"),
        ("ar:turn_9.artifacts.a.txt#L1-1", "fi:turn_9.files/a.txt#L1-1"),
        ("fi:turn_9.files/c%23d.txt", "fi:turn_9.files/c#d.txt"),
        ("c#d.txt", "fi:turn_9.files/c#d.txt"),
    ],
)
async def test_a_path_of_the_current_turn_may_be_written_in_many_ways(conversation, asked, path):
    await conversation.save("turn_9/files/a.txt")
    await conversation.save("turn_9/files/c#d.txt")
    await conversation.save("turn_9/attachments/b.txt")
    response = await conversation.read(asked)
    assert response.blocks[-1].path == path


async def test_a_read_has_a_bound_of_tokens_and_lists_what_did_not_fit(conversation):
    conversation.tokens_max = 600
    paths = [f"fi:turn_1.files/{name}.txt" for name in "abcd"]
    for path in paths:
        await conversation.save(f"turn_1/files/{path[-5]}.txt", b"one two three four\n" * 50)
    response = await conversation.read(*paths)
    found = status(response)
    assert [item.path for item in response.blocks if item.path.startswith("fi:")] == paths[:1]
    assert (found["left_out"], found["left_out_reason"]) == (
        paths[1:],
        "one read shows 600 tokens; read these in further calls",
    )
    assert found["total_tokens"] <= 600
    assert "Left out, read in further calls: fi:turn_1.files/b.txt" in response.report
    again = status(await conversation.read(*paths))
    assert (again["exists_in_visible_context"], again["left_out"]) == (paths[:1], paths[2:])


async def test_the_first_path_is_shown_whatever_it_has(conversation):
    conversation.tokens_max = 100
    await conversation.save("turn_1/files/log.txt", LONG)
    response = await conversation.read("fi:turn_1.files/log.txt", "fi:turn_1.files/none")
    assert status(response)["total_tokens"] > 100
    assert "left_out" not in status(response)


async def test_a_stretch_of_lines_is_shown_with_its_place_in_the_whole(conversation):
    await conversation.save("turn_1/files/log.txt", LONG)
    path = "fi:turn_1.files/log.txt#L4999-6000"
    response = await conversation.read(path)
    assert response.blocks[-1].text == "[lines 4999-5000 of 5000]\nline 4999 ä\nline 5000 ä\n"
    assert response.blocks[-1].path == path
    [digest] = digests(response)
    assert (digest["artifact_path"], digest["lines"], digest["lines_total"]) == (
        "fi:turn_1.files/log.txt",
        [4999, 5000],
        5000,
    )
    assert status(await conversation.read(path))["exists_in_visible_context"] == [path]


async def test_a_stretch_that_is_too_long_is_cut_and_says_where(conversation):
    await conversation.save("turn_1/files/log.txt", LONG)
    response = await conversation.read("fi:turn_1.files/log.txt#L2-5000")
    shown = response.blocks[-1].text
    last = int(shown.split(" of ")[0].rpartition("-")[2])
    body = shown.partition("\n")[2].removesuffix("\n...[truncated]")
    assert body == "\n".join(LINES[1 : last - 1]) + "\n" + LINES[last - 1][: len(body.rpartition("\n")[2])]
    assert 20_470 < len(body.encode()) <= 20_480


async def test_a_file_whose_name_ends_like_a_stretch_is_that_file(conversation):
    await conversation.save("turn_1/files/log.txt", LONG)
    await conversation.save("turn_1/files/log.txt#L1-2", b"itself")
    response = await conversation.read("fi:turn_1.files/log.txt#L1-2")
    assert response.blocks[-1].text == "itself"


async def test_a_long_prompt_is_cut_once_and_is_in_view_then(conversation):
    path = "ar:turn_1.user.prompt"
    await conversation.append(block(path, "ä" * 20_000, type="user.prompt"))
    assert status(await conversation.read(path))["exists_in_visible_context"] == [path]
    await conversation.append(hiding(path))
    first, second = await conversation.read(path), await conversation.read(path)
    assert first.blocks[-1].text == "ä" * 10_240 + "\n...[truncated]"
    assert status(second)["exists_in_visible_context"] == [path]


async def test_lines_of_a_prompt_of_a_result_and_of_sources_are_shown_too(conversation):
    await conversation.append(block("ar:turn_1.user.prompt", "a\nb\nc", type="user.prompt"))
    await conversation.sources.add_pages(SCOPE, [NewPage("https://e.org", "T", "x\ny", None, "turn_1")])
    response = await conversation.read("ar:turn_1.user.prompt#L2-3", "so:sources_pool[1]#L3-3")
    shown = {item.path: item.text for item in response.blocks[2:]}
    assert shown == {
        "ar:turn_1.user.prompt#L2-3": "[lines 2-3 of 3]\nb\nc",
        "so:sources_pool[1]#L3-3": "[lines 3-3 of 4]\nx\n",
    }


@pytest.mark.parametrize(
    ("stretch", "reason"),
    [
        ("a.txt#L4-9", "it has 3 lines, none from 4 on"),
        ("a.txt#B5-", "it has 5 bytes, none from 5 on"),
        ("p.png#L1-2", "image/png has no lines; give the path without #L, or #B0- for its bytes"),
        ("a.txt#L2-1", "the first line is after the last; give #L1-2"),
        ("a.txt#L0-1", "lines count from 1"),
    ],
)
async def test_lines_that_are_not_there_are_missing_and_the_reason_is_told(conversation, stretch, reason):
    await conversation.save("turn_1/files/a.txt", b"1\n2\n3")
    await conversation.save("turn_1/files/p.png", PNG, "image/png")
    path = f"fi:turn_1.files/{stretch}"
    found = status(await conversation.read(path))
    assert (found["missing"], found["reasons"]) == ([path], {path: reason})


async def test_pictures_are_carried_up_to_the_bound_of_one_answer(conversation):
    conversation.inline_bytes_max = 2 * len(PNG)
    for name in "abc":
        await conversation.save(f"turn_1/files/{name}.png", PNG + name.encode(), "image/png")
    conversation.inline_bytes_max += 2
    response = await conversation.read(*(f"fi:turn_1.files/{name}.png" for name in "abc"))
    assert [what for _, at, what in told(response) if at.startswith("fi:")] == ["base64", "base64", None]
    size = len(PNG) + 1
    said = f"its {size} bytes are too many to show; code can open it at turn_1/files/c.png"
    assert status(response)["partly_shown"] == {"fi:turn_1.files/c.png": said}


# ---- blocks ----


async def test_prompts_calls_notes_code_results_and_summaries_come_back_under_their_paths(conversation):
    paths = [
        "ar:turn_1.user.prompt",
        "ar:turn_1.assistant.completion",
        "ar:turn_1.react.notes.c1",
        "ar:turn_1.react.plan.p1",
        "fi:turn_1.code.c1",
        "tc:turn_1.c1.call",
        "tc:turn_1.c1.notice",
        "su:turn_1.conv.range.summary",
        "ar:turn_1.artifacts.notes",
    ]
    await conversation.append(*(block(path, f"at {path}", meta={"hidden": True}) for path in paths))
    response = await conversation.read(*paths)
    assert [(item.path, item.text) for item in response.blocks[2:]] == [(path, f"at {path}") for path in paths]


async def test_a_result_comes_back_with_its_report_and_its_digests_and_by_its_old_spelling(conversation):
    digest = {"artifact_path": "fi:turn_1.files/a.txt", "hosted_uri": "s3://secret"}
    await conversation.append(
        call_block("c1", "exec_tools.execute_code_python"),
        block("tc:turn_1.c1.result", "Produced files:", call_id="c1"),
        meta_block("c1", digest),
        block("fi:turn_1.files/a.txt", "a", call_id="c1"),
        block("su:turn_2.conv.range.summary", "s", type="conv.range.summary", turn_id="turn_2", meta=COVERS_1),
    )
    for expected in (["Produced files:", '{"artifact_path": "fi:turn_1.files/a.txt"}'], []):
        response = await conversation.read("tc:turn_1.tool_calls.c1.out.json")
        assert [item.text for item in response.blocks[2:]] == expected
        assert {item.path for item in response.blocks[2:]} <= {"tc:turn_1.c1.result"}


COVERS_1 = {"covered_turn_ids": ["turn_1"]}


async def test_the_latest_snapshot_of_a_plan_is_what_its_path_means(conversation):
    path = "ar:turn_1.react.plan.p1"
    await conversation.append(block(path, "one"), block(path, "two", meta={"hidden": True}))
    assert [item.text for item in (await conversation.read(path)).blocks[2:]] == ["two"]


# ---- sources ----


async def test_rows_that_come_with_the_call_complete_the_pool(conversation):
    row = SourceRow(sid=7, source_type="manual", title="By hand", text="words")
    response = await conversation.read("so:sources_pool[5-9]", sources_pool=[row.model_dump()])
    assert response.blocks[-1].text == "[S:7] By hand\nwords\n"
    assert response.blocks[-1].path == "so:sources_pool[7]"


async def test_ids_that_the_pool_does_not_have_are_missing_beside_those_that_it_has(conversation):
    await conversation.sources.add_pages(SCOPE, [NewPage("https://e.org", "T", "x", None, "turn_1")])
    found = status(await conversation.read("so:sources_pool[1,4,7-9]", "so:sources_pool[99]"))
    assert found["missing"] == ["so:sources_pool[4]", "so:sources_pool[7-9]", "so:sources_pool[99]"]


async def test_many_long_sources_share_the_room_of_one_block(conversation):
    pages = [NewPage(f"https://e.org/{n}", f"T{n}", "x" * 30_000, None, "turn_1") for n in range(10)]
    await conversation.sources.add_pages(SCOPE, pages)
    response = await conversation.read("so:sources_pool[1-10]")
    text = response.blocks[-1].text
    assert [f"[S:{sid}]" in text for sid in range(1, 11)] == [True] * 10
    assert len(text.encode()) <= 20_480 + len("\n...[truncated]")
    assert list(status(response)["partly_shown"]) == ["so:sources_pool[1-10]"]


async def test_a_source_whose_file_is_gone_is_shown_as_text(conversation):
    row = SourceRow(sid=1, source_type="file", title="gone.txt", artifact_path="fi:turn_1.files/gone.txt")
    response = await conversation.read("so:sources_pool[1]", sources_pool=[row.model_dump(exclude_none=True)])
    assert response.blocks[-1].text == "[S:1] gone.txt\npath: fi:turn_1.files/gone.txt\n"


# ---- skills ----


async def test_a_skill_comes_back_active(conversation):
    folder = conversation.skills / "office" / "slides"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Slides\ndescription: >\n  When a deck\n  is due.\n---\n# How\n")
    response = await conversation.read("sk:office/slides")
    [shown] = response.blocks[2:]
    assert (shown.type, shown.path) == ("react.tool.result", "sk:office/slides")
    assert shown.text == "[ACTIVE SKILL sk:office/slides] Slides: When a deck is due.\n\n# How"


# ---- what cannot be had ----


async def test_what_is_missing_is_listed_beside_what_was_loaded(conversation):
    await conversation.save("turn_1/files/a.txt")
    asked = ["fi:turn_1.files/a.txt", "fi:turn_1.files/b.txt", "sk:none", "../etc/passwd", "fi:turn_1.files/../x"]
    response = await conversation.read(*asked)
    found = status(response)
    assert (response.ok, response.error) == (True, None)
    assert (found["missing"], found["missing_skills"]) == ([asked[1], asked[3], asked[4]], ["sk:none"])
    near = "the conversation has files/a.txt"
    assert found["reasons"][asked[1]] == f"the conversation has nothing at this path; {near}"
    assert found["reasons"]["sk:none"] == "there is no such skill"
    assert "has the segment '..'" in found["reasons"][asked[4]]


@pytest.mark.parametrize(
    ("paths", "code"),
    [
        (["fi:turn_1.files/b.txt"], "missing"),
        (["fi:turn_1.files/b.txt", "sk:none"], "missing"),
        (["sk:none"], "missing_skills"),
        (["nonsense"], "missing"),
    ],
)
async def test_a_call_of_which_nothing_can_be_loaded_fails_with_a_notice_and_its_status(conversation, paths, code):
    response = await conversation.read(*paths, call_id="rd")
    assert (response.ok, response.error.code) == (False, code)
    assert told(response) == [
        ("react.tool.call", "tc:turn_9.rd.call", "text"),
        ("react.notice", "tc:turn_9.rd.notice", "text"),
        ("react.tool.result", "tc:turn_9.rd.result", "text"),
    ]
    assert json.loads(response.blocks[1].text)["error"] == code
    for path, reason in status(response)["reasons"].items():
        # Once in the blocks: the notice and the error only say that nothing was loaded.
        assert sum((item.text or "").count(reason) for item in response.blocks) == len(
            [other for other in status(response)["reasons"].values() if other == reason]
        )
        assert f"{path} ({reason})" in response.report
    found = status(response)
    assert found["missing"] + found["missing_skills"] == paths
    assert "managed" not in json.dumps([item.text for item in response.blocks])


# ---- nobody else's ----


@pytest.mark.parametrize(
    "scope",
    [ConversationKey(BOB, "conv-1"), ConversationKey(EVE, "conv-1"), ConversationKey(SCOPE.principal, "conv-2")],
)
async def test_no_path_reaches_another_conversation_or_principal(conversation, scope):
    stored = await conversation.save("turn_1/files/a.txt")
    await conversation.attach("turn_1", "b.txt", b"b")
    await conversation.sources.add_file(SCOPE, stored)
    await conversation.append(
        block("ar:turn_1.user.prompt", "p", type="user.prompt"),
        block("fi:turn_1.files/c.txt", "c", call_id="c1"),
    )
    paths = [
        "fi:turn_1.files/a.txt",
        "fi:turn_1.files/a.txt#L1-1",
        "fi:turn_1.files/c.txt",
        "fi:turn_1.user.attachments/b.txt",
        "ar:turn_1.user.prompt",
        "so:sources_pool[1-9]",
    ]
    assert (await conversation.read(*paths)).ok
    other = await conversation.of(scope).read(*paths)
    assert status(other)["missing"] == paths
    _, gathered = await conversation.of(scope).gather("'turn_1/files/a.txt' 'turn_1/files/c.txt' [[S:1]]")
    assert (gathered.missing, gathered.files) == (["turn_1/files/a.txt", "turn_1/files/c.txt"], {})


async def test_a_hosted_uri_of_another_tenant_is_not_followed(conversation):
    stored = await conversation.save("turn_1/files/a.txt")
    timeline = [block("fi:turn_1.files/x.txt", None, meta={"hosted_uri": stored.hosted_uri})]
    shown = [item.model_dump() for item in timeline]
    own = await conversation.read("fi:turn_1.files/x.txt", timeline=shown, keep=False)
    foreign = await conversation.of(ConversationKey(EVE, "conv-1")).read("fi:turn_1.files/x.txt", timeline=shown)
    assert (own.ok, foreign.ok) == (True, False)
    _, gathered = await conversation.of(ConversationKey(EVE, "conv-1")).gather(
        "'turn_1/files/x.txt'", timeline=timeline
    )
    assert (gathered.missing, gathered.files) == (["turn_1/files/x.txt"], {})
