"""A name means the newest version of that name in the conversation; a path of another turn means that file."""

import pytest

from proofbox.contracts.blocks import Block
from proofbox.service.artifacts.port import NewSave
from tests.support.conversations import block, call_block, meta_block, opened_conversation
from tests.support.staging import save_together

SPELLINGS = [
    "{}", "./{}", "files/{}", "./files/{}", "attachments/{}", "/mnt/data/{}", "sandbox:/mnt/data/{}", "sandbox:{}",
    "~/{}", "/out/turn_9/files/{}", "$OUT_DIR/{}", "/mnt/user-data/uploads/{}", "/mnt/user-data/outputs/{}",
    "turn_9/files/{}", "/mnt/data/turn_9/files/{}", "fi:turn_9.files/{}", "`{}`",
]  # fmt: skip


@pytest.fixture
async def conversation(tmp_path):
    async with opened_conversation(tmp_path) as opened:
        yield opened


async def _meant(conversation, name, timeline=None):
    file = await conversation.files.of_call(conversation.scope, timeline).named(name, "turn_9")
    return None if file is None else file.path.physical


async def _workspace(conversation, timeline=None):
    found = await conversation.files.of_call(conversation.scope, timeline).newest_by_name("turn_9")
    return {name: file.path.physical for name, file in found.items()}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("name", ["x.csv", "sub/own file (1).csv", "Größe.csv"])
async def test_every_spelling_of_a_name_is_its_newest_version(conversation, spelling, name):
    await conversation.save(f"turn_1/files/{name}")
    assert await _meant(conversation, spelling.format(name)) == f"turn_1/files/{name}"
    await conversation.save(f"turn_2/files/{name}")
    assert await _meant(conversation, spelling.format(name)) == f"turn_2/files/{name}"
    await conversation.save(f"turn_1/files/{name}")
    assert await _meant(conversation, spelling.format(name)) == f"turn_1/files/{name}"


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_percent_signs_are_tried_as_they_stand_and_then_as_what_they_stand_for(conversation, spelling):
    await conversation.save("turn_1/files/own file.csv")
    assert await _meant(conversation, spelling.format("own%20file.csv")) == "turn_1/files/own file.csv"
    await conversation.save("turn_1/files/own%20file.csv")
    assert await _meant(conversation, spelling.format("own%20file.csv")) == "turn_1/files/own%20file.csv"


async def test_a_later_file_wins_over_an_attachment_and_a_later_attachment_over_a_file(conversation):
    await conversation.attach("turn_1", "x.csv", b"1")
    assert await _meant(conversation, "files/x.csv") == "turn_1/attachments/x.csv"
    await conversation.save("turn_2/files/x.csv")
    assert await _meant(conversation, "attachments/x.csv") == "turn_2/files/x.csv"
    await conversation.attach("turn_3", "x.csv", b"2")
    assert await _meant(conversation, "x.csv") == "turn_3/attachments/x.csv"
    assert await _workspace(conversation) == {"x.csv": "turn_3/attachments/x.csv"}


@pytest.mark.parametrize(
    "path",
    ["turn_1/files/x", "turn_1/attachments/x", "/out/turn_1/files/x", "fi:turn_1.files/x", "turn_9/attachments/x"],
)
async def test_a_path_of_another_turn_or_of_attachments_is_that_file(conversation, path):
    everything = ["turn_1/files/x", "turn_1/attachments/x", "turn_9/attachments/x", "turn_2/files/x"]
    for physical in everything:
        await conversation.save(physical)
    assert await _meant(conversation, path) == path.removeprefix("/out/").replace("fi:turn_1.", "turn_1/")


@pytest.mark.parametrize("path", ["turn_1/files/y", "turn_3/attachments/x", "/etc/pw", "../x", "", "fi:", "sub"])
async def test_what_is_not_there_means_nothing(conversation, path):
    await conversation.save("turn_2/files/x")
    await conversation.save("turn_2/files/sub/x")
    assert await _meant(conversation, path) is None


async def test_a_removal_in_a_later_turn_is_the_end_of_a_name_until_it_is_written_again(conversation):
    await conversation.attach("turn_1", "x", b"1")
    await conversation.save("turn_1/files/y")
    await conversation.save("turn_1/files/kept")
    gone = [await conversation.save(f"turn_2/files/{name}") for name in "xy"]
    await save_together(conversation.artifacts, NewSave(conversation.scope, (), removed=gone))
    assert await _workspace(conversation) == {"kept": "turn_1/files/kept"}
    assert [await _meant(conversation, name) for name in ("x", "attachments/x", "turn_9/files/y")] == [None] * 3
    assert await _meant(conversation, "turn_1/attachments/x") == "turn_1/attachments/x"
    await conversation.save("turn_3/files/y")
    assert await _meant(conversation, "y") == "turn_3/files/y"


async def test_nothing_lies_below_a_newer_file_or_in_place_of_a_newer_folder(conversation):
    for physical in ("turn_1/files/a", "turn_1/files/b/x", "turn_2/files/a/x", "turn_2/files/b"):
        await conversation.save(physical)
    assert await _workspace(conversation) == {"b": "turn_2/files/b", "a/x": "turn_2/files/a/x"}


async def test_other_conversations_have_other_names(conversation):
    await conversation.save("turn_1/files/x")
    other = conversation.of(conversation.scope.__class__(conversation.scope.principal, "conv-2"))
    assert await _workspace(other) == {}


# ---- files that only a timeline has ----


def _written(call_id: str, turn_id: str, name: str, ts: str) -> list[Block]:
    path = f"fi:{turn_id}.files/{name}"
    return [
        call_block(call_id, "react.write", turn_id),
        meta_block(call_id, {"artifact_path": path, "mime": "text/plain"}, turn_id, ts=ts),
        block(path, f"of {call_id}", mime="text/plain", turn_id=turn_id, call_id=call_id, ts=ts),
    ]


async def test_the_newest_of_the_store_and_of_a_timeline_that_a_call_brings(conversation):
    old, new = "2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
    await conversation.save("turn_2/files/stored")
    await conversation.save("turn_2/files/carried")
    timeline = [
        *_written("c1", "turn_1", "stored", old),
        *_written("c2", "turn_1", "carried", new),
        *_written("c3", "turn_1", "twice", new),
        *_written("c4", "turn_3", "twice", old),
        *_written("c5", "turn_3", "gone", new),
        block("tc:turn_4.c6.result", "ok", turn_id="turn_4", call_id="c6", meta={"removed": ["turn_4/files/gone"]}),
    ]
    assert await _workspace(conversation, timeline=timeline) == {
        "carried": "turn_1/files/carried",
        "stored": "turn_2/files/stored",
        "twice": "turn_3/files/twice",
    }
    assert await _meant(conversation, "~/twice", timeline=timeline) == "turn_3/files/twice"


async def test_blocks_of_the_turn_in_the_stored_timeline_are_its_files(conversation):
    await conversation.append(*_written("c1", "turn_9", "own", "2026-01-01T00:00:00Z"))
    assert await _meant(conversation, "own") == "turn_9/files/own"


async def test_an_older_version_that_was_read_is_not_the_newest(conversation):
    await conversation.save("turn_1/files/x")
    await conversation.save("turn_2/files/x")
    await conversation.read("turn_1/files/x")
    assert await _workspace(conversation) == {"x": "turn_2/files/x"}
