"""The whole ``files/`` of a conversation goes from call to call: what is stored, replaced, covered and refused."""

import asyncio
import json
from hashlib import sha256

import pytest

from proofbox.service.errors import NotRerunnableError, QueueFullError
from proofbox.service.sandbox.port import ProcessOutcome
from proofbox.service.storage.artifacts.workspace_rows import STORED_MAX
from tests.support.pipeline import EXEC, SCOPE, opened_pipeline

FULL = {"explore": True, "workspace": "full"}
NOTES = "turn_1/files/notes.md"


def in_files(files, turn="turn_1"):
    """What a run finds or leaves in files/, by its relative paths."""
    own = f"{turn}/files/"
    return {path.removeprefix(own): data for path, data in files.items() if path.startswith(own)}


def writing(**contents):
    """A program that writes files, or removes those whose content is None."""

    def program(run):
        for rel, content in contents.items():
            if content is None:
                del run.files[f"{run.job.turn_id}/files/{rel}"]
            else:
                run.write(rel, content)

    return program


async def full(pipeline, program, code="pass", **fields):
    """Runs a program in a call with the whole workspace; what it found in files/."""
    pipeline.engine.program = program
    answer = await pipeline.answer(EXEC, FULL, code=code, **fields)
    assert answer["ok"], answer["report"]
    return in_files(pipeline.engine.inputs[-1], fields.get("turn_id", "turn_1"))


def nothing(run):
    del run  # the program changes nothing


async def test_more_files_than_are_stored_as_artifacts_reach_the_next_call(pipeline):
    names = {f"f{number:03}": b"%d" % number for number in range(80)}
    await full(pipeline, writing(**names))
    assert await full(pipeline, nothing) == names
    assert len(await pipeline.artifacts.of_turn(SCOPE, "turn_1")) == 50


async def test_the_program_starts_in_files_unless_the_call_names_a_folder(pipeline):
    await full(pipeline, nothing)
    await pipeline.answer(EXEC, {**FULL, "cwd": "work"}, code="pass")
    await pipeline.execute()
    assert [job.cwd for job in pipeline.engine.jobs] == ["turn_1/files", "turn_1/files/work", ""]


async def test_a_removed_file_stays_removed_and_so_it_is_for_calls_without_a_workspace(pipeline):
    await full(pipeline, writing(a=b"1", b=b"2"))
    pipeline.engine.program = writing(a=None)
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert "Deleted: turn_1/files/a" in answer["report"]
    assert await full(pipeline, nothing) == {"b": b"2"}
    await pipeline.execute()
    assert in_files(pipeline.engine.inputs[-1]) == {"b": b"2"}


async def test_the_next_turn_finds_the_workspace_in_its_own_files(pipeline):
    await full(pipeline, writing(a=b"1"))
    assert await full(pipeline, nothing, turn_id="turn_2") == {"a": b"1"}


async def test_a_file_that_another_tool_stored_later_replaces_the_one_in_the_workspace(pipeline):
    await full(pipeline, writing(**{"notes.md": b"old", "b": b"2"}))
    await pipeline.save(NOTES, b"new")
    assert await full(pipeline, nothing) == {"notes.md": b"new", "b": b"2"}


async def test_what_a_call_changes_is_newer_than_the_artifact_that_it_began_with(pipeline):
    await pipeline.save(NOTES, b"from the outside")
    many = {f"a{number:03}": b"x" for number in range(60)}
    await full(pipeline, writing(**many, **{"notes.md": b"changed, and not stored as an artifact"}))
    found = await full(pipeline, nothing)
    assert found["notes.md"] == b"changed, and not stored as an artifact"


async def test_a_file_that_is_stored_while_a_call_runs_is_in_the_next_call(pipeline):
    async def program(run):
        run.print("running\n")
        await pipeline.save(NOTES, b"meanwhile")

    await full(pipeline, nothing)
    await full(pipeline, program)
    assert await full(pipeline, nothing) == {"notes.md": b"meanwhile"}


async def test_a_new_attachment_is_copied_into_files_and_an_edited_copy_stays(pipeline):
    await pipeline.save("turn_1/attachments/data.csv", b"a,b\n")
    assert (await full(pipeline, writing(**{"data.csv": b"edited"})))["data.csv"] == b"a,b\n"
    assert (await full(pipeline, writing(**{"data.csv": None})))["data.csv"] == b"edited"
    assert await full(pipeline, nothing) == {}
    await pipeline.save("turn_1/attachments/data.csv", b"second upload\n")
    assert await full(pipeline, nothing) == {"data.csv": b"second upload\n"}


async def test_a_file_of_the_workspace_that_the_code_names_is_not_missing(pipeline):
    await full(pipeline, writing(a=b"1"))
    found = await full(pipeline, nothing, code="open('turn_1/files/a')")
    assert found == {"a": b"1"}


async def test_a_failed_program_leaves_its_workspace_too(pipeline):
    def program(run):
        run.write("half", b"done")
        return ProcessOutcome(exit_code=1)

    pipeline.engine.program = program
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert answer["error"]["code"] == "nonzero_exit"
    assert await full(pipeline, nothing) == {"half": b"done"}


async def test_a_workspace_over_its_bounds_fails_the_call_and_the_one_before_stays(pipeline):
    await full(pipeline, writing(a=b"1"))
    pipeline.engine.program = writing(**{f"f{number}": b"" for number in range(10_001)})
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert answer["error"]["code"] == "disk_limit"
    assert "(limit 996 files and folders, 11019878 bytes, got 10002 and" in answer["error"]["message"]
    assert await full(pipeline, nothing) == {"a": b"1"}


@pytest.mark.parametrize(
    "program",
    [writing(**{f"f{number}": b"" for number in range(1_010)}), writing(large=bytes(7_600_000))],
    ids=["entries", "bytes"],
)
async def test_a_workspace_that_the_next_call_could_not_begin_with_is_not_stored(pipeline, program):
    await full(pipeline, writing(a=b"1"))
    pipeline.engine.program = program
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert answer["error"]["code"] == "disk_limit"
    assert await full(pipeline, nothing, turn_id="turn_2") == {"a": b"1"}


async def test_the_largest_workspace_that_is_stored_reaches_the_next_call(pipeline):
    large = bytes(11_019_878 // 2 - 100)
    await full(pipeline, writing(large=large))
    assert await full(pipeline, nothing, turn_id="turn_2") == {"large": large}


async def test_a_failure_of_the_program_does_not_hide_that_the_workspace_was_not_stored(pipeline):
    def program(run):
        writing(**{f"f{number}": b"" for number in range(10_001)})(run)
        return ProcessOutcome(exit_code=1)

    pipeline.engine.program = program
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert answer["error"]["code"] == "nonzero_exit"
    assert "Note: workspace: it is too large and was not stored" in answer["report"]


async def test_a_lost_sandbox_leaves_the_workspace_as_it_was_and_the_report_has_it(pipeline):
    await full(pipeline, writing(a=b"1"))
    pipeline.engine.is_lost_at = "collect"
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert "Note: workspace: nothing was stored; the next call gets it as it was" in answer["report"]
    pipeline.engine.is_lost_at = ""
    assert await full(pipeline, nothing) == {"a": b"1"}


async def test_what_an_archive_cannot_hold_is_noted(pipeline):
    pipeline.engine.left_out = 2
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert "Note: workspace: 2 entries cannot be stored" in answer["report"]


async def test_calls_of_one_conversation_take_the_workspace_in_turn(tmp_path):
    running, most = 0, 0

    async def program(run):
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0.01)
        log = run.files.get("turn_1/files/log", b"")
        run.write("log", log + b"x")
        running -= 1

    async with opened_pipeline(tmp_path, running_max=8) as pipeline:
        pipeline.engine.program = program
        tickets = [await pipeline.submit(EXEC, FULL, code="pass") for _ in range(6)]
        answers = [json.loads((await ticket.answer()).body) for ticket in tickets]
        assert all(answer["ok"] for answer in answers)
        assert (most, await full(pipeline, nothing)) == (1, {"log": b"xxxxxx"})


async def test_too_many_waiting_calls_are_refused(pipeline):
    async def hold(entered):
        async with pipeline.artifacts.hold_workspace(SCOPE):
            entered.set()
            await asyncio.Event().wait()

    entered = asyncio.Event()
    holders = [asyncio.create_task(hold(entered)) for _ in range(33)]
    await entered.wait()
    await asyncio.sleep(0)
    with pytest.raises(QueueFullError, match="32 calls wait for the workspace of this conversation"):
        async with pipeline.artifacts.hold_workspace(SCOPE):
            pass
    for holder in holders:
        holder.cancel()
    await asyncio.gather(*holders, return_exceptions=True)
    async with pipeline.artifacts.hold_workspace(SCOPE):
        pass


async def test_the_ledger_and_the_audit_line_name_the_workspace_that_the_call_began_with(pipeline):
    await full(pipeline, writing(a=b"1"))
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    stored = await pipeline.artifacts.workspace(SCOPE, 1)
    assert [(line["asked"], line["physical_path"], line["sha256"]) for line in answer["rehosted"]] == [
        ("workspace", "turn_1/files", stored.sha256)
    ]
    (used,) = (await pipeline.audit("call_2")).inputs
    assert (used.path, used.version, used.sha256, used.size_bytes) == (
        "turn_1/files",
        1,
        stored.sha256,
        stored.size_bytes,
    )


async def test_a_rerun_gets_the_workspace_of_the_first_run_and_stores_none(pipeline):
    await full(pipeline, writing(a=b"1"))
    await full(pipeline, writing(b=b"2"))
    await full(pipeline, writing(c=b"3"))
    pipeline.engine.program = writing(b=b"2")
    report = await pipeline.rerun("call_2")
    assert report.identical
    assert in_files(pipeline.engine.inputs[-1]) == {"a": b"1"}
    assert await full(pipeline, nothing) == {"a": b"1", "b": b"2", "c": b"3"}


async def test_old_workspaces_and_their_bytes_are_removed_and_their_calls_cannot_be_run_again(pipeline):
    for number in range(STORED_MAX + 2):
        await full(pipeline, writing(a=b"%d" % number))
    blobs = {file.name for file in (pipeline.folder / "data").rglob("*") if file.is_file()}
    left = [await pipeline.artifacts.workspace(SCOPE, number) for number in range(1, STORED_MAX + 3)]
    assert [workspace is None for workspace in left] == [True, True, False, False, False]
    archives = [json.dumps({"a": (b"%d" % number).hex()}).encode() for number in range(STORED_MAX + 2)]
    assert [sha256(archive).hexdigest() in blobs for archive in archives] == [False, False, True, True, True]
    with pytest.raises(NotRerunnableError, match="the workspace that the call began with is not stored any more"):
        await pipeline.rerun("call_2")


async def test_a_workspace_counts_as_stored_bytes_and_is_no_file_of_the_conversation(pipeline):
    await full(pipeline, writing(a=b"1"))
    stored = await pipeline.artifacts.workspace(SCOPE)
    assert await pipeline.artifacts.stored_bytes("acme", "books") == 1 + stored.size_bytes
    assert [artifact.path.physical for _, artifact in await pipeline.artifacts.listed(SCOPE, 0, 10)] == [
        "turn_1/files/a"
    ]


async def test_a_call_without_a_workspace_stores_and_gets_none(pipeline):
    await pipeline.execute()
    assert await pipeline.artifacts.workspace(SCOPE) is None
    await full(pipeline, writing(a=b"1"))
    await pipeline.execute()
    assert (await pipeline.artifacts.workspace(SCOPE)).number == 1


async def test_another_word_than_full_is_refused(pipeline):
    answer = await pipeline.answer(EXEC, {"explore": True, "workspace": "half"}, code="pass")
    assert (answer["error"]["code"], "workspace" in answer["error"]["message"]) == ("invalid_params", True)
