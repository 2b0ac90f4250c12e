"""The records of calls in spaces: which events they have, where they are, and what ends them."""

import asyncio
from dataclasses import replace

import pytest

from proofbox.contracts.gateway.messages import Message
from proofbox.contracts.gateway.spaces import SpaceCreation
from proofbox.service.gateway.posting import (
    EndRecord,
    LeftSpaceError,
    NoActiveSpaceError,
    Posting,
    RecordEnding,
    RecordError,
    ResumeRecord,
    WaitCard,
)
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.storage.gateway import call_records
from proofbox.service.storage.gateway.call_record_store import ABANDONED_AT_ONCE, SqlCallRecords
from tests.support.gateway_world import build_world, recorded_call, shown_tool

DONE = RecordEnding("done", output={"degrees": 3})
FAILED = RecordEnding("failed", error=RecordError("http_status", "the server answered 500"))
RESUMED = ResumeRecord("run_1", "call-1", "ann")
CARD = WaitCard("wait_1", "2030-01-01T00:00:00.000Z")


@pytest.fixture
async def world(database):
    return await build_world(database)


async def _write(world, work):
    return await world.database.write(work)


async def _start(world, call):
    return await _write(world, lambda connection: call_records.start_record(connection, call))


async def _end(world, call, posting, ending=DONE, *, left_warned=False):
    effect = EndRecord(call.run_id, call.tool_call_id, ending, call, posting, left_warned)
    return await _write(world, lambda connection: call_records.end_record(connection, effect))


@pytest.mark.parametrize(
    ("visibility", "ending", "expected"),
    [
        ("visible", DONE, ["tool-call.start", "tool-call.complete"]),
        ("visible", FAILED, ["tool-call.start", "tool-call.error"]),
        ("result-only", DONE, ["tool-call.complete"]),
        ("result-only", FAILED, ["tool-call.error"]),
        ("hidden", DONE, []),
        ("hidden", FAILED, []),
    ],
)
async def test_a_call_has_the_events_of_its_visibility(world, visibility, ending, expected):
    call = recorded_call(shown_tool(visibility))
    posting = await _start(world, call)
    await _end(world, call, posting, ending)
    assert await world.names() == expected
    assert posting.warning is None
    assert (posting.posted is None) == (visibility == "hidden")
    for _, name, data in await world.events():
        if name.startswith("tool-call"):
            message = Message.model_validate(data["message"])
            assert message.message_id == posting.message_id
            assert message.sender.entity_id == "agent:helper"
            assert not message.replyable


async def test_a_visible_record_is_changed_in_place_and_has_input_and_output(world):
    call = recorded_call()
    posting = await _start(world, call)
    [started] = await world.records()
    await _end(world, call, posting)
    [ended] = await world.records()
    assert started["tool"]["state"] == "running"
    assert started["tool"]["input"] == {"city": "Oslo"}
    assert (started["seq"], started["revision"]) == (ended["seq"], ended["revision"] - 1)
    assert ended["tool"]["state"] == "done"
    assert ended["tool"]["input"] == {"city": "Oslo"}
    assert ended["tool"]["output"] == {"degrees": 3}


async def test_a_result_only_record_has_no_input_and_takes_its_number_at_the_end(world):
    early, late = recorded_call(shown_tool("result-only"), "early"), recorded_call(call_id="late")
    early_posting, late_posting = await _start(world, early), await _start(world, late)
    await _end(world, late, late_posting)
    await _end(world, early, early_posting)
    first, second = await world.records()
    assert (first["tool"]["tool_call_id"], first["seq"]) == ("late", 1)
    assert (second["tool"]["tool_call_id"], second["seq"]) == ("early", 2)
    assert second["tool"]["input"] is None
    assert second["tool"]["output"] == {"degrees": 3}
    assert second["message_id"] == early_posting.message_id


@pytest.mark.parametrize("visibility", ["visible", "result-only"])
async def test_without_an_active_space_nothing_is_posted_and_there_is_a_warning(world, visibility):
    await world.set_active_space(None)
    call = recorded_call(shown_tool(visibility))
    posting = await _start(world, call)
    assert await _end(world, call, posting) is None
    assert posting == Posting(warning="no_active_space")
    assert await world.names() == []


async def test_an_agent_that_is_not_a_member_posts_nothing(world):
    await world.spaces.remove_member(world.actor, world.space_id, "agent:helper")
    posting = await _start(world, recorded_call())
    assert posting == Posting(warning="no_active_space")
    assert await world.names() == []


@pytest.mark.parametrize("visibility", ["visible", "result-only"])
@pytest.mark.parametrize("how", ["member removed", "space archived"])
async def test_a_call_whose_agent_left_ends_once_without_output(world, visibility, how):
    call = recorded_call(shown_tool(visibility))
    posting = await _start(world, call)
    if how == "member removed":
        await world.spaces.remove_member(world.actor, world.space_id, "agent:helper")
    else:
        await world.spaces.archive(world.actor, world.space_id)
    with pytest.raises(LeftSpaceError):
        await _end(world, call, posting)
    await _end(world, call, posting, left_warned=True)
    await _end(world, call, posting, left_warned=True)
    if visibility == "result-only":
        assert await world.names() == []
        return
    assert await world.names() == ["tool-call.start", "tool-call.error"]
    [record] = await world.records()
    assert record["tool"]["error"]["code"] == "left_space"
    assert record["tool"]["output"] is None
    assert "degrees" not in str(await world.events())


async def test_a_call_is_posted_where_it_began_although_the_run_entered_another_space(world):
    made, _ = await world.spaces.create(
        Actor(world.principal), SpaceCreation(name="Hall", members=["agent:helper"]), None
    )
    other = made.split('"space_id":"')[1].split('"')[0]
    visible, late = recorded_call(), recorded_call(shown_tool("result-only"), "late")
    postings = [await _start(world, visible), await _start(world, late)]
    await world.set_active_space(other)
    await _end(world, visible, postings[0])
    await _end(world, late, postings[1])
    assert await world.names() == ["tool-call.start", "tool-call.complete", "tool-call.complete"]
    assert await world.names(other) == []


async def test_a_record_that_waits_and_runs_again(world):
    call = recorded_call(shown_tool(execution_type="space"))
    posting = await _start(world, call)

    def suspend(connection):
        return call_records.suspend_record(connection, call, posting, CARD)

    assert await _write(world, suspend) == posting
    [record] = await world.records()
    assert (record["tool"]["state"], record["tool"]["expires"]) == ("waiting", CARD.expires)
    await _write(world, lambda connection: call_records.resume_record(connection, RESUMED))
    [record] = await world.records()
    assert (record["tool"]["state"], record["tool"]["answered_by"]) == ("running", "ann")
    await _end(world, call, posting)
    assert await world.names() == ["tool-call.start", "tool-call.waiting", "tool-call.complete"]


async def test_nobody_can_answer_without_an_active_space(world):
    await world.set_active_space(None)
    call = recorded_call(shown_tool(execution_type="space"))
    posting = await _start(world, call)
    with pytest.raises(NoActiveSpaceError):
        await _write(world, lambda connection: call_records.suspend_record(connection, call, posting, CARD))


async def test_a_hidden_tool_that_was_approved_shows_no_more_than_that(world):
    call = recorded_call(shown_tool("hidden"), secret="s3cret")
    posting = await _start(world, call)
    approval = WaitCard("wait_1", CARD.expires, custom_ui="approval", result_schema={"type": "object"})
    posting = await _write(
        world, lambda connection: call_records.suspend_record(connection, call, posting, approval)
    )
    [record] = await world.records()
    assert record["tool"]["custom_ui"] == "approval"
    assert record["tool"]["input"] == {"secret": "s3cret"}
    await _end(world, call, posting, RecordEnding("done", {"x": 1}, answered_by="ann", was_approved=True))
    [record] = await world.records()
    assert record["tool"]["output"] == {"approved": True}
    assert record["tool"]["input"] is None
    assert record["tool"]["answered_by"] == "ann"


async def test_a_display_without_input_and_output_leaves_both_out(world):
    call = recorded_call(shown_tool(shows_input=False, shows_output=False))
    posting = await _start(world, call)
    await _end(world, call, posting)
    for _, name, data in await world.events():
        if name.startswith("tool-call"):
            assert data["message"]["tool"]["input"] is None
            assert data["message"]["tool"]["output"] is None


@pytest.mark.parametrize("text", ["s3cret", "s3cret" * 60_000], ids=["small", "large"])
@pytest.mark.parametrize("resumes", [True, False])
async def test_a_wait_shows_the_input_of_a_display_without_it_and_only_the_wait(world, text, resumes):
    call = replace(recorded_call(shown_tool(shows_input=False), text=text), artifact_path="fi:turn_1.files/a.json")
    posting = await _start(world, call)
    await _write(world, lambda connection: call_records.suspend_record(connection, call, posting, CARD))
    [record] = await world.records()
    assert (record["tool"]["input"] or record["tool"]["truncated"]["input"]) is not None
    if resumes:
        resumed = replace(RESUMED, shows_input=False)
        await _write(world, lambda connection: call_records.resume_record(connection, resumed))
        [record] = await world.records()
        assert (record["tool"]["input"], record["tool"]["truncated"]) == (None, {})
    await _end(world, call, posting)
    [record] = await world.records()
    assert (record["tool"]["input"], record["tool"]["truncated"]) == (None, {})
    assert record["tool"]["output"] == {"degrees": 3}
    assert "s3cret" not in str((await world.events())[-1])


async def test_values_over_256_kib_are_named_by_their_artifact(world):
    call = recorded_call(text="x" * 300_000)
    posting = await _start(world, call)
    ending = RecordEnding("done", output="y" * 300_000, artifact_path="fi:turn_1.files/call-1.result.json")
    await _end(world, call, posting, ending)
    [record] = await world.records()
    cut = Message.model_validate(record).tool.truncated
    assert record["tool"]["input"] is None
    assert record["tool"]["output"] is None
    assert cut["output"].artifact_path == "fi:turn_1.files/call-1.result.json"
    assert cut["output"].size_bytes == 300_002


async def test_odd_characters_are_stored_in_both_databases(world):
    call = recorded_call(text="a\0b\ud800c")
    posting = await _start(world, call)
    await _end(world, call, posting, RecordEnding("done", output="\0"))
    [record] = await world.records()
    assert record["tool"]["input"] == {"text": "a\0b?c"}
    assert record["tool"]["output"] == "\0"


async def test_event_ids_and_numbers_have_no_gaps_when_calls_run_together(world):
    async def one(number):
        call = recorded_call(call_id=f"call-{number}")
        posting = await _start(world, call)
        await _end(world, call, posting)

    await asyncio.gather(*(one(number) for number in range(20)))
    ids = [number for number, _, _ in await world.events()]
    assert ids == list(range(1, len(ids) + 1))
    assert sorted(record["seq"] for record in await world.records()) == list(range(1, 21))


async def test_a_transaction_that_fails_leaves_no_event_and_no_gap(world):
    call = recorded_call()

    def fail(connection):
        call_records.start_record(connection, call)
        raise RuntimeError("the transaction fails")

    with pytest.raises(RuntimeError):
        await _write(world, fail)
    assert await world.names() == []
    await _start(world, call)
    ids = [number for number, _, _ in await world.events()]
    assert ids == list(range(1, len(ids) + 1))


async def test_streamed_arguments_become_the_parameters_of_the_call(world):
    records = SqlCallRecords(world.database)
    started = await records.start_stream(recorded_call(city="?"))
    assert started.message["tool"]["state"] == "streaming"
    assert started.message["tool"]["input"] is None
    call = recorded_call()
    posting = await records.bind("run_1", "call-1", call.tool)
    assert posting.message_id == started.message_id
    assert await _start(world, call) == posting
    [record] = await world.records()
    assert (record["tool"]["state"], record["tool"]["input"]) == ("running", {"city": "Oslo"})
    await _end(world, call, posting)
    assert await world.names() == ["tool-call.start", "tool-call.complete"]


async def test_streams_that_were_left_are_abandoned_once(world):
    records = SqlCallRecords(world.database)
    await records.start_stream(recorded_call())
    made = recorded_call(call_id="made")
    await records.start_stream(made)
    await _start(world, made)
    assert await records.abandon_streams() == 1
    assert await records.abandon_streams() == 0
    first, second = await world.records()
    assert first["tool"]["error"]["code"] == "abandoned"
    assert second["tool"]["state"] == "running"
    assert (await world.names()).count("tool-call.error") == 1


async def _abandon(world, call):
    records = SqlCallRecords(world.database)
    await records.start_stream(call)
    posting = await records.bind("run_1", "call-1", call.tool)
    await records.abandon_streams()
    return posting


@pytest.mark.parametrize("bound", ["before", "after"])
async def test_a_call_that_comes_after_its_stream_was_abandoned_has_a_record_of_its_own(world, bound):
    call = recorded_call(shown_tool(execution_type="space"))
    posting = await _abandon(world, call)
    if bound == "after":
        posting = await SqlCallRecords(world.database).bind("run_1", "call-1", call.tool)
    posting = await SqlCallRecords(world.database).start(call, posting)
    shown = await _write(world, lambda connection: call_records.suspend_record(connection, call, posting, CARD))
    abandoned, waiting = await world.records()
    assert (abandoned["tool"]["state"], waiting["tool"]["state"]) == ("failed", "waiting")
    assert shown.message_id == waiting["message_id"] == posting.message_id
    await _end(world, call, shown)
    abandoned, done = await world.records()
    assert (abandoned["tool"]["error"]["code"], done["tool"]["state"]) == ("abandoned", "done")


async def test_a_record_that_has_ended_waits_for_nobody(world):
    call = recorded_call(shown_tool(execution_type="space"))
    posting = await _abandon(world, call)
    with pytest.raises(NoActiveSpaceError):
        await _write(world, lambda connection: call_records.suspend_record(connection, call, posting, CARD))


async def test_a_call_waits_in_its_record_wherever_it_was_bound_to(world):
    call = recorded_call(shown_tool(execution_type="space"))
    posting = await _start(world, call)
    other = Posting(world.space_id, "msg_other")
    shown = await _write(world, lambda connection: call_records.suspend_record(connection, call, other, CARD))
    assert shown == posting


async def test_streams_end_with_their_run(world):
    records = SqlCallRecords(world.database)
    await records.start_stream(recorded_call())
    row = await world.run_row()
    await _write(world, lambda connection: call_records.end_streams(connection, row, "abandoned", "the run ended"))
    assert await world.names() == ["tool-call.start", "tool-call.error"]


async def test_the_status_of_a_run_is_announced_in_its_active_space(world):
    row = await world.run_row()
    await _write(world, lambda connection: call_records.announce_run(connection, row))
    _, name, data = (await world.events())[-1]
    assert name == "run.status"
    assert (data["run_id"], data["status"], data["agent"]["handle"]) == ("run_1", "running", "helper")


async def test_a_posting_survives_as_json():
    posting = Posting("spc_1", "msg_1", None)
    assert Posting.from_json(posting.to_json()) == posting


async def test_streams_that_a_process_left_are_ended_some_in_each_transaction(world):
    records, count = SqlCallRecords(world.database), ABANDONED_AT_ONCE + 1
    for number in range(count):
        assert await records.start_stream(recorded_call(call_id=f"call-{number}")) is not None
    operations = []
    world.database.observer = lambda operation, _: operations.append(operation)
    assert await records.abandon_streams() == count
    assert operations == ["database_write"] * 3
    assert await world.names() == ["tool-call.start"] * count + ["tool-call.error"] * count
    assert {record["tool"]["error"]["code"] for record in await world.records()} == {"abandoned"}
