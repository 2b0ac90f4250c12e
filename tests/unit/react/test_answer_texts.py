"""The text of an answer, which is all that a loop without our timeline gives its model."""

import base64

import pytest

from proofbox.contracts.tool_call_response import ANSWER_BYTES_MAX, ToolCallResponse
from tests.support.conversations import PNG, opened_conversation


@pytest.fixture
async def conversation(tmp_path):
    async with opened_conversation(tmp_path) as opened:
        yield opened


async def test_a_read_gives_the_content_each_time(conversation):
    await conversation.save("turn_1/files/a.txt", b"first\nsecond")
    first = await conversation.read("files/a.txt", turn_id="turn_1")
    again = await conversation.read("files/a.txt", turn_id="turn_1")
    assert first.text == again.text == "Loaded: fi:turn_1.files/a.txt\n\nfirst\nsecond"
    assert again.report == "In view already: fi:turn_1.files/a.txt"


async def test_a_loop_that_sends_its_timeline_is_told_what_is_in_view(conversation):
    await conversation.save("turn_1/files/a.txt", b"first")
    await conversation.save("turn_1/files/b.txt", b"other")
    seen = (await conversation.read("files/a.txt", turn_id="turn_1", keep=False)).blocks
    given = [block.model_dump(exclude_none=True) for block in seen]
    read = await conversation.read("files/a.txt", "files/b.txt", turn_id="turn_1", timeline=given)
    assert read.text == "Loaded: fi:turn_1.files/b.txt\nIn view already: fi:turn_1.files/a.txt\n\nother"


async def test_several_paths_have_heads_and_what_is_missing_comes_first(conversation):
    await conversation.save("turn_1/files/a.txt", b"one")
    await conversation.save("turn_1/files/p.png", PNG, "image/png")
    read = await conversation.read("fi:turn_1.files/a.txt", "fi:turn_1.files/p.png", "fi:turn_1.files/no.txt")
    assert read.text == (
        "Loaded: fi:turn_1.files/a.txt, fi:turn_1.files/p.png\n"
        "Missing: fi:turn_1.files/no.txt (the conversation has nothing at this path; the conversation has "
        "files/p.png, files/a.txt)\n\n"
        "[fi:turn_1.files/a.txt]\none\n\n"
        "[fi:turn_1.files/p.png]\n[image/png: no text; a program can open it]"
    )
    assert base64.b64encode(PNG).decode() not in read.text


async def test_a_long_text_is_cut_and_says_how_to_read_on(conversation):
    rows = "".join(f"row {number}\n" for number in range(10_000)).encode()
    await conversation.save("turn_1/files/long.txt", rows)
    for _ in range(2):
        read = await conversation.read("fi:turn_1.files/long.txt")
        assert "read on with fi:turn_1.files/long.txt#L" in read.text.split("\n\n")[0]


async def test_what_has_no_room_in_the_text_is_named(conversation):
    paths = [f"fi:turn_1.files/{number}.txt" for number in range(5)]
    for number in range(5):
        await conversation.save(f"turn_1/files/{number}.txt", b"a b " * 5_000)
    for path in paths:
        await conversation.read(path)  # all are in view: the bound of tokens leaves none out
    read = await conversation.read(*paths)
    assert len(read.text.encode()) <= ANSWER_BYTES_MAX
    assert "\nLeft out, read in further calls: fi:turn_1.files/3.txt, fi:turn_1.files/4.txt\n\n" in read.text
    assert read.ret["exists_in_visible_context"] == paths
    assert "left_out" not in read.ret


async def test_a_read_of_nothing_says_why_once(conversation):
    read = await conversation.read("fi:turn_1.files/no.txt")
    assert read.text == (
        "react.read failed: missing — nothing could be loaded: "
        "fi:turn_1.files/no.txt (the conversation has nothing at this path; the conversation has no files yet)"
    )


def test_a_text_that_is_too_long_is_cut_once():
    answer = ToolCallResponse(ok=True, report="r", text="é" * ANSWER_BYTES_MAX, blocks=[])
    assert len(answer.text.encode()) <= ANSWER_BYTES_MAX
    assert answer.text.endswith("react.read shows a part of a file: <path>#L1-200 …]")
    assert ToolCallResponse.model_validate_json(answer.model_dump_json()).text == answer.text


def test_an_answer_that_an_earlier_release_stored_has_its_report_as_text():
    assert ToolCallResponse.model_validate({"ok": True, "report": "Hidden: a", "blocks": []}).text == "Hidden: a"
