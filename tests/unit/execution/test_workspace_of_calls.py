"""The workspace of a conversation goes from call to call: what is stored, replaced, covered and merged."""

import asyncio
import json

import pytest

from proofbox.service.errors import NotRerunnableError
from proofbox.service.sandbox.port import ProcessOutcome
from proofbox.service.storage.artifacts.workspace_rows import STORED_MAX
from tests.support.pipeline import EXEC, SCOPE, opened_pipeline

FULL = {"explore": True, "workspace": "full"}
NOTES = "turn_1/files/notes.md"


@pytest.fixture(autouse=True)
def few_files_are_stored_by_themselves(monkeypatch):
    monkeypatch.setattr("proofbox.service.execution.tool.EXTRAS_MAX", 50)


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
    assert [job.cwd for job in pipeline.engine.jobs] == ["turn_1/files", "turn_1/files/work", "turn_1/files"]


async def test_a_removed_file_stays_removed(pipeline):
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


MANY = {f"f{number:05}": b"" for number in range(10_060)}


async def test_what_of_a_workspace_is_over_the_bounds_is_noted_and_the_one_before_stays(pipeline):
    await full(pipeline, writing(**{f"a{number:03}": b"" for number in range(60)}))
    pipeline.engine.program = writing(**MANY)
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert answer["ok"]
    assert "Note: of the working directory only the files that other tools see were stored" in answer["report"]
    assert "(limits 996 and 11019878)" in answer["report"]
    found = await full(pipeline, nothing)
    assert (len(found), "a059" in found, "f00049" in found, "f00050" in found) == (110, True, True, False)


async def test_a_failure_of_the_program_does_not_hide_what_was_not_stored(pipeline):
    def program(run):
        writing(**MANY)(run)
        return ProcessOutcome(exit_code=1)

    pipeline.engine.program = program
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert answer["error"]["code"] == "nonzero_exit"
    assert "Note: of the working directory only the files that other tools see were stored" in answer["report"]


async def test_a_lost_sandbox_leaves_the_workspace_as_it_was(pipeline):
    await full(pipeline, writing(a=b"1"))
    pipeline.engine.is_lost_at = "collect"
    await pipeline.answer(EXEC, FULL, code="pass")
    pipeline.engine.is_lost_at = ""
    assert await full(pipeline, nothing) == {"a": b"1"}


async def test_what_an_archive_cannot_hold_is_noted(pipeline):
    pipeline.engine.left_out = 2
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    assert "Note: 2 entries of the working directory cannot be stored" in answer["report"]


async def test_calls_of_one_conversation_run_side_by_side_and_lose_nothing(tmp_path):
    started, all_started = 0, asyncio.Event()

    def filling(number):
        return {f"d{number}/{at:03}": b"%d" % number for at in range(60)} | {"zz": b"%d" % number}

    async def program(run):
        nonlocal started
        number, started = started, started + 1
        if started == 6:
            all_started.set()
        await all_started.wait()
        if number == 0:
            del run.files["turn_1/files/old/059"]
        for rel, content in filling(number).items():
            run.write(rel, content)

    async with opened_pipeline(tmp_path, running_max=8) as pipeline:
        await full(pipeline, writing(**{f"old/{at:03}": b"0" for at in range(60)}))
        pipeline.engine.program = program
        tickets = [await pipeline.submit(EXEC, FULL, code="pass") for _ in range(6)]
        answers = [json.loads((await ticket.answer()).body) for ticket in tickets]
        found = await full(pipeline, nothing)
    assert all(answer["ok"] for answer in answers)
    assert found.pop("zz") in {b"%d" % number for number in range(6)}
    wanted = {f"old/{at:03}": b"0" for at in range(59)}
    for number in range(6):
        wanted |= {rel: content for rel, content in filling(number).items() if rel != "zz"}
    assert found == wanted
    assert sum("zz: another call wrote it while this one ran" in answer["report"] for answer in answers) == 5


def showing(*names, value=None):
    """A program that shows pictures, each of which has its own number in it."""

    def program(run):
        for name in names:
            run.write(name, b"%d" % len(pictures))
            pictures.append(name)
        return ProcessOutcome(exit_code=0, shown=names, last_value=value)

    pictures = []
    return program


def names_of(files):
    return [file["physical_path"].removeprefix("turn_1/files/") for file in files]


@pytest.mark.parametrize("workspace", ["full", "read", "none"])
@pytest.mark.parametrize("how", [{"explore": True}, {"contract": [{"glob": "*.png", "description": "a chart"}]}])
async def test_pictures_of_calls_side_by_side_have_names_of_their_own(tmp_path, workspace, how):
    began, all_began = 0, asyncio.Event()
    picture = showing("shown_1.png", "shown_2.png", value="<matplotlib.figure.Figure, shown as shown_2.png>")

    async def program(run):
        nonlocal began
        began += 1
        if began == 3:
            all_began.set()
        await all_began.wait()
        return picture(run)

    async with opened_pipeline(tmp_path, running_max=8) as pipeline:
        pipeline.engine.program = program
        tickets = [await pipeline.submit(EXEC, {**how, "workspace": workspace}, code="pass") for _ in range(3)]
        answers = [json.loads((await ticket.answer()).body) for ticket in tickets]
        stored = await pipeline.artifacts.of_turn(SCOPE, "turn_1")
    pairs = [[f"shown_{number}.png", f"shown_{number + 1}.png"] for number in (1, 3, 5)]
    assert sorted(names_of(answer["shown"]) for answer in answers) == pairs
    assert [(file.path.rel, file.version) for file in stored] == [(name, 1) for pair in pairs for name in pair]
    for answer in answers:
        first, second = names_of(answer["shown"])
        assert f"Shown: turn_1/files/{first}, turn_1/files/{second}" in answer["report"]
        assert answer["last_value"] == f"<matplotlib.figure.Figure, shown as {second}>"
        assert names_of(answer["artifacts"]) == [first, second]
        assert "another call wrote" not in answer["report"]


async def test_a_picture_takes_no_name_of_the_turn_that_its_program_could_not_see(pipeline):
    await pipeline.save("turn_1/files/shown_1.html", b"<p>")
    await pipeline.save("turn_1/files/shown_3.png", b"mine")
    pipeline.engine.program = showing("shown_1.png", "shown_2.png")
    answer = await pipeline.answer(EXEC, {"explore": True, "workspace": "none"}, code="pass")
    assert names_of(answer["shown"]) == ["shown_2.png", "shown_4.png"]


async def test_a_picture_whose_name_the_contract_has_keeps_it(pipeline):
    await pipeline.save("turn_1/files/shown_1.png", b"old")
    pipeline.engine.program = showing("shown_1.png", "plain.png")
    contract = [{"filename": "shown_1.png", "description": "a chart"}]
    answer = await pipeline.answer(EXEC, {"contract": contract, "workspace": "none"}, code="pass")
    assert names_of(answer["artifacts"]) == ["shown_1.png", "plain.png"]


async def test_a_call_that_is_run_again_has_its_pictures_under_the_names_that_they_got(pipeline):
    await pipeline.save("turn_1/files/shown_1.png", b"of another call")
    pipeline.engine.program = showing("shown_1.png", "shown_2.png")
    await pipeline.answer(EXEC, {"explore": True, "workspace": "none"}, code="pass")
    pipeline.engine.program = showing("shown_1.png", "shown_2.png")
    report = await pipeline.rerun("call_1")
    assert [(made.path[-11:], made.result) for made in report.outputs] == [
        ("shown_2.png", "identical"),
        ("shown_3.png", "identical"),
    ]
    pipeline.engine.program = showing("shown_1.png", "shown_2.png", "shown_3.png")
    report = await pipeline.rerun("call_1")
    assert [made.result for made in report.outputs] == ["identical", "identical", "new"]


REST = {f"f{number:03}": b"x" for number in range(51)}
"""So many files that the last goes with the workspace, and not by itself."""


async def test_the_ledger_and_the_audit_line_name_the_workspace_that_the_call_began_with(pipeline):
    await full(pipeline, writing(**REST))
    answer = await pipeline.answer(EXEC, FULL, code="pass")
    stored = await pipeline.artifacts.workspace(SCOPE, 1)
    (line,) = [line for line in answer["rehosted"] if line["physical_path"] == "turn_1/files"]
    assert (line["asked"], line["sha256"], len(answer["rehosted"])) == ("workspace", stored.sha256, 51)
    (used,) = [used for used in (await pipeline.audit("call_2")).inputs if used.path == "turn_1/files"]
    assert (used.version, used.sha256, used.size_bytes) == (1, stored.sha256, stored.size_bytes)


async def test_a_rerun_gets_the_workspace_of_the_first_run_and_stores_none(pipeline):
    await full(pipeline, writing(**REST))
    await pipeline.save("turn_0/attachments/in.csv", b"in")
    await full(pipeline, writing(b=b"2", f050=None))
    await full(pipeline, writing(c=b"3"))
    pipeline.engine.program = writing(b=b"2", f050=None)
    report = await pipeline.rerun("call_2")
    assert report.identical
    left = {rel: data for rel, data in REST.items() if rel != "f050"} | {"in.csv": b"in"}
    assert in_files(pipeline.engine.inputs[-1]) == REST | {"in.csv": b"in"}
    assert await full(pipeline, nothing) == left | {"b": b"2", "c": b"3"}


async def test_old_workspaces_and_their_bytes_are_removed_and_their_calls_cannot_be_run_again(pipeline):
    rests = [dict.fromkeys(REST, b"%d" % number) for number in range(STORED_MAX + 2)]
    for rest in rests:
        await full(pipeline, writing(**rest))
    blobs = {file.name for file in (pipeline.folder / "data").rglob("*") if file.is_file()}
    left = [await pipeline.artifacts.workspace(SCOPE, number) for number in range(1, STORED_MAX + 3)]
    assert [workspace is None for workspace in left] == [True, True, False, False, False]
    assert [workspace.sha256 in blobs for workspace in left[2:]] == [True] * 3
    with pytest.raises(NotRerunnableError, match="the workspace that the call began with is not stored any more"):
        await pipeline.rerun("call_2")


async def test_a_workspace_counts_as_stored_bytes_and_is_no_file_of_the_conversation(pipeline):
    await full(pipeline, writing(**REST))
    stored = await pipeline.artifacts.workspace(SCOPE)
    assert await pipeline.artifacts.stored_bytes("acme", "books") == 50 + stored.size_bytes
    assert len(await pipeline.artifacts.listed(SCOPE, 0, 100)) == 50


async def test_files_that_are_stored_by_themselves_need_no_workspace(pipeline):
    await full(pipeline, writing(a=b"1"))
    assert await pipeline.artifacts.workspace(SCOPE) is None
    assert await full(pipeline, nothing, turn_id="turn_2") == {"a": b"1"}


async def test_reading_stores_and_removes_nothing_and_none_gives_what_is_named(pipeline):
    await full(pipeline, writing(**REST))
    pipeline.engine.program = writing(f000=None, f050=None)
    await pipeline.answer(EXEC, {"explore": True, "workspace": "read"}, code="pass")
    assert await full(pipeline, nothing) == REST
    await pipeline.answer(EXEC, {"explore": True, "workspace": "none"}, code="open('f001')")
    assert in_files(pipeline.engine.inputs[-1]) == {"f001": b"x"}


async def test_another_word_than_full_is_refused(pipeline):
    answer = await pipeline.answer(EXEC, {"explore": True, "workspace": "half"}, code="pass")
    assert (answer["error"]["code"], "workspace" in answer["error"]["message"]) == ("invalid_params", True)
