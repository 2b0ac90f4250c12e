"""Exec calls from the request to the stored answer, with a sandbox in memory."""

import asyncio
import base64
import json
import re
import time
import tracemalloc

import pytest

from proofbox.contracts.logical_paths import parse
from proofbox.contracts.tool_call_response import Timings
from proofbox.service.calls.lookup import find_printed_output
from proofbox.service.calls.observer import CallObserver
from proofbox.service.errors import LimitNotAllowedError, QueueFullError, StoreFullError
from proofbox.service.sandbox.port import Inspection, OutputPiece, ProcessOutcome
from proofbox.service.timeline.block_writer import now_text
from tests.support.pipeline import ANN, EXEC, MIB, SCOPE, digests, notices, verdicts

CSV = {"filename": "a.csv", "description": "the table"}
CSV_PATH = "turn_1/files/a.csv"
ASSET = {"physical_path": "turn_1/attachments/a.txt", "text": "an asset"}


def writes(rel, content):
    """A program that writes one file and prints a line."""

    def program(run):
        run.write(rel, content)
        run.print("done\n")

    return program


async def test_a_promised_file_is_checked_stored_and_shown(pipeline):
    pipeline.engine.program = writes("a.csv", b"a,b\n1,2\n")
    answer = await pipeline.execute(CSV)
    assert (answer["ok"], answer["error"], verdicts(answer)) == (True, None, {CSV_PATH: "produced"})
    assert answer["report"].splitlines()[1:] == ["Produced files:", f"- {CSV_PATH}", "Program log (tail):", "done"]
    assert await pipeline.stored(CSV_PATH) == b"a,b\n1,2\n"
    assert [b["text"] for b in answer["blocks"] if b["path"] == f"fi:{CSV_PATH.replace('/', '.', 1)}"] == [
        "a,b\n1,2\n"
    ]


async def test_a_call_is_dated_by_its_beginning_and_its_results_by_their_coming(pipeline):
    times = []

    def program(run):
        times.append(now_text())
        time.sleep(0.01)  # a clock of milliseconds
        times.append(now_text())
        run.write("a.csv", b"a,b\n1,2\n")

    pipeline.engine.program = program
    answer = await pipeline.execute(CSV)
    code, call, *results = answer["blocks"]
    assert code["ts"] == call["ts"] == json.loads(call["text"])["ts"] <= times[0]
    assert [block["ts"] >= times[1] for block in results] == [True] * 3
    assert digests(answer)[0]["ts"] >= times[1]


async def test_the_audit_line_names_limits_inputs_sandbox_and_outputs(pipeline):
    await pipeline.save("turn_0/files/in.txt", b"input")
    pipeline.engine.program = writes("a.csv", b"a,b\n")
    await pipeline.execute(CSV, code="open('turn_0/files/in.txt')")
    line = await pipeline.audit()
    assert [(used.path, used.version, used.size_bytes) for used in line.inputs] == [("turn_0/files/in.txt", 1, 5)]
    assert [(out.path, out.version, out.verdict) for out in line.outputs] == [(CSV_PATH, 1, "produced")]
    assert (line.limits.wall_s, line.sandbox.engine, line.outcome.code) == (60, "fake", "ok")


async def test_a_missing_promise_is_an_answer_and_nothing_is_stored(pipeline):
    answer = await pipeline.execute(CSV)
    assert (answer["ok"], answer["error"]["code"], verdicts(answer)) == (
        False,
        "execution_failed",
        {CSV_PATH: "missing_file"},
    )
    assert await pipeline.stored(CSV_PATH) is None


async def test_a_promised_file_that_fails_its_check_stays_in_the_workspace(pipeline):
    pipeline.engine.program = writes("a.csv", b"no table")
    pipeline.engine.inspections["a.csv"] = Inspection(ok=False, mime="text/csv", problem="it has no rows")
    answer = await pipeline.execute(CSV)
    assert (answer["ok"], answer["error"]["where"]) == (False, "check")
    assert await pipeline.stored(CSV_PATH) == b"no table"
    await pipeline.execute()
    assert pipeline.engine.inputs[1][CSV_PATH] == b"no table"


async def test_a_program_that_fails_is_reported_with_what_it_printed(pipeline):
    def program(run):
        run.print("Traceback: no such column\n", "stderr")
        return ProcessOutcome(exit_code=1, output=tuple(run.printed), stderr_bytes=26)

    pipeline.engine.program = program
    answer = await pipeline.execute(CSV)
    assert (answer["error"]["code"], answer["usage"]["exit_code"]) == ("nonzero_exit", 1)
    assert answer["report"].endswith("Program log (tail):\nTraceback: no such column")


async def test_files_that_nobody_promised_are_stored_as_internal(pipeline):
    pipeline.engine.program = writes("notes.txt", b"more")
    answer = await pipeline.execute()
    assert (answer["ok"], verdicts(answer)) == (True, {"turn_1/files/notes.txt": "produced"})
    stored = await pipeline.artifacts.of_turn(SCOPE, "turn_1")
    assert [(file.path.rel, file.visibility) for file in stored] == [("notes.txt", "internal")]


async def test_a_removed_file_is_not_there_for_the_next_call(pipeline):
    await pipeline.save("turn_1/files/old.txt")
    pipeline.engine.program = lambda run: run.files.pop("turn_1/files/old.txt") and None
    answer = await pipeline.execute()
    assert "Deleted: turn_1/files/old.txt" in answer["report"]
    pipeline.engine.program = writes("new.txt", b"new")
    await pipeline.execute()
    assert [sorted(inputs) for inputs in pipeline.engine.inputs] == [["turn_1/files/old.txt"], []]


async def test_a_file_of_another_turn_that_is_missing_stops_the_call(pipeline):
    answer = await pipeline.execute(code="open('turn_0/files/gone.txt')")
    assert (answer["error"]["code"], answer["error"]["where"]) == ("pre_exec_missing_paths", "rehost")
    assert [n["missing"] for n in notices(answer).values()] == [["turn_0/files/gone.txt"]]
    assert pipeline.engine.jobs == []
    line = await pipeline.audit()
    assert (line.missing, line.limits, line.sandbox) == (["turn_0/files/gone.txt"], None, None)


async def test_a_program_given_by_its_path_is_resolved_and_recorded(pipeline):
    await pipeline.save("turn_0/files/job.py", b"print('by reference')")
    await pipeline.execute(code="ref: turn_0/files/job.py")
    assert pipeline.engine.jobs[0].code == b"print('by reference')"
    [used] = (await pipeline.audit()).references
    assert (used.param, used.path, used.version) == ("code", "fi:turn_0.files/job.py", 1)


async def test_a_contaminated_program_is_refused_before_it_gets_a_slot(pipeline):
    answer = await pipeline.execute(CSV, code="```python\nprint(1)\n```")
    assert (answer["error"]["code"], pipeline.engine.jobs) == ("code_contaminated", [])
    assert list(notices(answer)) == ["protocol_violation.exec_contract_invalid"]


async def test_inputs_beyond_out_dir_end_the_call_without_a_sandbox(pipeline):
    for number in range(2):
        await pipeline.save(f"turn_0/files/{number}.bin", bytes(9 * MIB))
    answer = await pipeline.execute(code="open('turn_0/files/0.bin'), open('turn_0/files/1.bin')")
    assert (answer["error"]["code"], answer["sandbox"], pipeline.engine.jobs) == ("disk_limit", None, [])


async def test_limits_above_the_operators_are_refused(pipeline):
    with pytest.raises(LimitNotAllowedError, match=r"limits\.wall_s is 61"):
        await pipeline.execute(limits={"wall_s": 61})


async def test_params_that_do_not_fit_are_an_answer(pipeline):
    answer = await pipeline.answer(EXEC, {"explore": True, "timeout_s": "soon"}, code="print(1)")
    assert (answer["ok"], answer["error"]["code"], answer["error"]["where"]) == (False, "invalid_params", "params")


@pytest.mark.parametrize("step", ["put", "run", "collect"])
async def test_a_lost_sandbox_is_an_answer(pipeline, step):
    pipeline.engine.is_lost_at = step
    answer = await pipeline.execute(CSV)
    assert (answer["ok"], answer["error"]["code"]) == (False, "sandbox_failed")
    assert (await pipeline.audit()).sandbox.engine == "fake"


async def test_without_an_engine_the_call_is_a_problem(pipeline):
    pipeline.engine.is_down = True
    answer = await pipeline.execute(CSV)
    assert (answer["status"], answer["code"]) == (503, "engine_unavailable")


async def test_a_call_cancelled_while_it_runs_has_an_answer_with_its_sandbox(pipeline):
    running = asyncio.Event()

    async def program(run):
        run.print("step 1\n")
        running.set()
        await asyncio.Event().wait()

    pipeline.engine.program = program
    await pipeline.save("turn_0/files/in.txt", b"input")
    ticket = await pipeline.submit(EXEC, {"explore": True}, code="open('turn_0/files/in.txt')")
    await running.wait()
    status = await pipeline.calls.cancel(ANN, ticket.key.tool_call_id, "conv-1")
    assert (status.status, pipeline.engine.open_sandboxes) == ("cancelled", 0)
    assert json.loads((await ticket.answer()).body)["code"] == "cancelled"
    assert (status.response.output.stdout, status.response.sandbox.engine) == ("step 1\n", "fake")
    line = await pipeline.audit()
    assert ([used.path for used in line.inputs], line.limits.wall_s) == (["turn_0/files/in.txt"], 60)


async def test_a_call_cancelled_in_the_queue_has_run_nothing(pipeline):
    with await pipeline.admission.enter(pipeline.deadline(), CallObserver().on_queued):
        ticket = await pipeline.submit(EXEC, {"explore": True}, code="print(1)")
        await pipeline.until("queued", ticket)
        status = await pipeline.calls.cancel(ANN, ticket.key.tool_call_id, "conv-1")
    assert (status.status, status.response.sandbox, pipeline.engine.jobs) == ("cancelled", None, [])


async def test_a_queue_that_is_full_is_a_problem(pipeline):
    with await pipeline.admission.enter(pipeline.deadline(), CallObserver().on_queued):
        waiting = await pipeline.submit(EXEC, {"explore": True}, code="print(1)")
        await pipeline.until("queued", waiting)
        with pytest.raises(QueueFullError):
            await pipeline.execute()
    assert json.loads((await waiting.answer()).body)["ok"]


async def test_output_and_start_are_events_of_the_call(pipeline):
    ticket = await pipeline.submit(EXEC, {"explore": True}, code="print(1)")
    events = [e async for e in await pipeline.calls.events(ANN, ticket.key.tool_call_id, "conv-1", after=0)]
    assert [event.name for event in events] == ["queued", "started", "stdout", "result"]


LINES = "".join(f"line {n} {'abcdefgh'[n % 8] * (n % 50)}\n" for n in range(5_000))
OF_CALL = "fi:turn_1.output.call_1"


async def printed(pipeline):
    return await find_printed_output(pipeline.store, SCOPE, parse(OF_CALL))


async def test_output_that_an_answer_shortens_is_whole_at_its_path(pipeline):
    def program(run):
        for at in range(0, len(LINES), 999):
            run.print(LINES[at : at + 999])
            run.print(f"warning {at}\n" if at < 99_900 else "", "stderr")

    pipeline.engine.program = program
    answer = await pipeline.execute()
    output = answer["output"]
    head, tail = 32 * 1024, 32 * 1024
    marker = f"\n[… {len(LINES) - head - tail} bytes of stdout left out …]\n"
    assert output["stdout"] == f"{LINES[:head]}{marker}{LINES[-tail:]}"
    assert output["truncated"]
    assert len(output["combined"]) == len(output["stdout"]) + len(output["stderr"])
    assert f"all of it is {OF_CALL} …]" in answer["report"]
    whole = await printed(pipeline)
    assert "".join(re.split(r"warning \d+\n", whole)) == LINES
    assert whole.count("warning") == output["stderr"].count("warning") == 100
    assert json.loads(await stored_answer(pipeline)) == answer


async def stored_answer(pipeline):
    [call] = await pipeline.store.find(SCOPE.principal, "call_1")
    return call.answer


async def test_output_that_is_not_whole_at_its_path_is_said_to_be_that(pipeline):
    def program(run):
        run.print(LINES)
        run.printed.append(OutputPiece("stdout", LINES.encode(), left_out=1_234_567))

    pipeline.engine.program = program
    answer = await pipeline.execute()
    where = f"all but 1,234,567 bytes in the middle is {OF_CALL}, which counts lines without these …]"
    assert where in answer["report"]
    left_out = 1_234_567 + 2 * len(LINES) - 64 * 1024
    assert f"[… {left_out} bytes of stdout left out …]" in answer["output"]["stdout"]
    assert await printed(pipeline) == f"{LINES}\n[… 1234567 bytes of stdout left out …]\n{LINES}"


async def test_of_a_short_output_nothing_is_stored_beside_the_answer(pipeline):
    pipeline.engine.program = lambda run: run.print("a" * 64 * 1024)
    answer = await pipeline.execute()
    assert (answer["output"]["truncated"], await printed(pipeline)) == (False, "a" * 64 * 1024)
    [call] = await pipeline.store.find(SCOPE.principal, "call_1")
    assert call.partial_response is None


async def test_a_full_disk_at_an_asset_is_store_full(pipeline):
    pipeline.artifacts.full_names = ["asset-0"]
    answer = await pipeline.execute(assets=[ASSET])
    assert (answer["status"], answer["code"]) == (507, "store_full")


async def test_a_full_disk_at_a_file_of_the_timeline_is_store_full(pipeline):
    block = {
        "type": "react.tool.result",
        "author": "react",
        "turn_id": "turn_0",
        "ts": "2026-02-09T02:14:32Z",
        "mime": "application/pdf",
        "path": "fi:turn_0.files/large.pdf",
        "base64": base64.b64encode(bytes(300_000)).decode(),
    }
    fields = {"timeline": [block], "code": "open('turn_0/files/large.pdf')"}
    assert (await pipeline.execute(**fields))["ok"]
    pipeline.artifacts.full_names = pipeline.names_of("turn_0/files/large.pdf")
    answer = await pipeline.execute(**fields)
    assert (answer["status"], answer["code"]) == (507, "store_full")


async def test_a_full_disk_at_the_produced_files_is_store_full(pipeline):
    pipeline.engine.program = writes("a.csv", b"a,b\n")
    pipeline.artifacts.saves_nothing = StoreFullError("no space is left for the file")
    answer = await pipeline.execute(CSV)
    assert (answer["status"], answer["code"]) == (507, "store_full")
    assert (await pipeline.audit()).sandbox.engine == "fake"


async def test_a_large_collected_file_is_stored_from_the_staging_folder(pipeline):
    pipeline.engine.in_memory_bytes_max = 0
    pipeline.engine.program = writes("a.csv", b"a,b\n")
    answer = await pipeline.execute(CSV)
    assert (answer["ok"], await pipeline.stored(CSV_PATH)) == (True, b"a,b\n")


async def test_a_file_that_a_name_and_a_pattern_promise_is_one_version(pipeline):
    pipeline.engine.program = writes("a.csv", b"a,b\n")
    answer = await pipeline.execute(CSV, {"glob": "*.csv", "description": "any table"})
    assert [(a["physical_path"], a["verdict"]) for a in answer["artifacts"]] == [(CSV_PATH, "produced")] * 2
    assert [digest["description"] for digest in digests(answer)] == ["the table"]
    [stored] = await pipeline.artifacts.of_turn(SCOPE, "turn_1")
    assert (stored.version, stored.description) == (1, "the table")


async def test_a_second_run_that_writes_the_file_again_is_an_edit(pipeline):
    edits = []
    for content in (b"a,b\n", b"c,d\n"):
        pipeline.engine.program = writes("a.csv", content)
        edits += [digest.get("edited") for digest in digests(await pipeline.execute(CSV))]
    assert edits == [None, True]


async def test_a_response_times_each_of_its_phases(pipeline):
    pipeline.engine.program = writes("a.csv", b"a,b\n")
    timings = (await pipeline.execute(CSV))["timings_ms"]
    assert set(timings) == set(vars(Timings()))
    phases = [ms for name, ms in timings.items() if name != "total"]
    assert min(phases) >= 0
    assert sum(phases) <= timings["total"]


async def test_a_call_that_waited_finds_what_was_stored_meanwhile(pipeline):
    with await pipeline.admission.enter(pipeline.deadline(), CallObserver().on_queued):
        ticket = await pipeline.submit(EXEC, {"explore": True}, code="print(1)")
        await pipeline.until("queued", ticket)
        await pipeline.save("turn_1/files/meanwhile.txt")
    response = json.loads((await ticket.answer()).body)
    assert [line["physical_path"] for line in response["rehosted"]] == ["turn_1/files/meanwhile.txt"]


async def test_inputs_are_not_held_in_memory_while_the_program_runs(pipeline):
    size, held = 200_000, []
    for number in range(4):
        await pipeline.save(f"turn_0/files/{number}.txt", b"x" * size)

    def program(run):
        run.files.clear()
        held.append(tracemalloc.get_traced_memory()[0])

    pipeline.engine.program, pipeline.engine.keeps_inputs = program, False
    code = " ".join(f"turn_0/files/{number}.txt" for number in range(4))
    tracemalloc.start()
    try:
        answer = await pipeline.execute(code=code)
    finally:
        tracemalloc.stop()
    assert [line["size_bytes"] for line in answer["rehosted"]] == [size] * 4
    assert held[0] < 2 * size
