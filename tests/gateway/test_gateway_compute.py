"""Computations of agents over an engine in memory: what a sandbox is given, places, and what it may answer."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from proofbox.service.gateway.compute import program
from proofbox.service.sandbox.port import ProcessOutcome
from tests.support.computing import OWN, compute
from tests.support.gateway_client import opened_loop

PROGRAM = Path(program.__file__).read_bytes()
EVIL = "') + __import__('os').system('x') + ('"


def evaluating(run):
    """The program of the image, in this process: the tests of containers run it in sandboxes."""
    run.print("\n" + json.dumps(program.evaluate(json.loads(run.job.stdin))) + "\n")


def ran(engine):
    """The computations that were run."""
    return [job for job in engine.jobs if job.prog_name == "compute"]


@pytest.fixture
def engine(loop):
    loop.pipeline.engine.program = evaluating
    return loop.pipeline.engine


async def test_a_sandbox_gets_a_fixed_program_and_values_as_data(loop, engine):
    await loop.begin(compute("len({{input.text}}) + n"))
    answer = await loop.call("compute", {"text": EVIL, "n": 1})
    assert answer["ret"] == {"result": len(EVIL) + 1}
    (job,) = ran(engine)
    assert (job.language, job.code, job.args, job.env) == ("python", PROGRAM, (), {})
    sent = json.loads(job.stdin)
    assert sent["input"] == {"text": EVIL, "n": 1}
    assert list(sent["values"].values()) == [EVIL]
    assert EVIL not in sent["expression"]
    assert job.limits.wall_s == 5


async def test_an_expression_of_the_model_is_offered_and_checked(loop, engine):
    loose = compute(OWN, "loose") | {"inputSchema": {"type": "object"}}
    await loop.begin(compute(OWN, timeout=1500), loose)
    listed = (await loop.web.get("/v1/tools", params={"run_id": loop.run["run_id"]})).json()["tools"]
    (tool,) = [tool for tool in listed if tool["name"] == "compute"]
    assert tool["params_schema"]["required"] == ["expression"]
    assert (await loop.call("compute", {"expression": "a * 2", "a": 21}))["ret"] == {"result": 42}
    assert ran(engine)[0].limits.wall_s == 1.5
    for refused in ({}, {"expression": 1}, {"expression": "  "}, {"expression": "1" * 20_001}):
        for name in ("compute", "loose"):
            answer = await loop.call(name, refused)
            assert (answer["ok"], answer["error"]["code"]) == (False, "invalid_input")
    assert len(ran(engine)) == 1


async def test_a_computation_takes_the_place_of_a_sandbox(tmp_path):
    async with opened_loop(tmp_path, running_max=1) as loop:
        loop.pipeline.engine.program = evaluating
        await loop.begin(compute("1"))
        until, admission = time.monotonic() + 60, loop.pipeline.admission
        with await admission.enter(until, int):
            waits = asyncio.create_task(admission.enter(until, int))
            await asyncio.sleep(0)
            refused = await loop.post_call("compute")
        with await waits:
            pass
        assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
        assert (await loop.web.get("/v1/tool-calls/call-1")).status_code == 404  # it was not accepted
        assert (await loop.call("compute"))["ret"] == {"result": 1}
        assert admission.running == 0


ANSWERS = {
    "nothing": (b"", "the expression gave no result"),
    "a text": (b'"result"', "the expression gave no result"),
    "another field": (b'{"value": 1}', "the expression gave no result"),
    "an error that is no text": (b'{"error": 1}', "the expression gave no result"),
    "no JSON": (b"{", "the expression gave no result that JSON can carry"),
    "no UTF-8": (b'{"result": "\xff"}', "the expression gave no result that JSON can carry"),
    "infinity": (b'{"result": Infinity}', "the expression gave no result that JSON can carry"),
    "a float that is infinite": (b'{"result": 1e999}', "the expression gave no result that JSON can carry"),
    "digits": (b'{"result": ' + b"1" * 5_000 + b"}", "the expression gave no result that JSON can carry"),
    "depth": (b'{"result": ' + b"[" * 200 + b"]" * 200 + b"}", "the expression gave no result that JSON can carry"),
    "brackets": (b"[" * 100_000, "the expression gave no result that JSON can carry"),
    "hidden characters": (b'{"error": "\\u202e\\n\\u0000"}', "\\u202e\\n\\u0000"),
    "a long error": (b'{"error": "' + b"x" * 5_000 + b'"}', "x" * 500),
}


@pytest.mark.parametrize(("printed", "message"), ANSWERS.values(), ids=ANSWERS)
async def test_what_a_sandbox_answers_is_checked(loop, engine, printed, message):
    await loop.begin(compute("1"))
    engine.program = lambda run: run.print(printed)
    answer = await loop.call("compute")
    assert (answer["ok"], answer["error"]["code"], answer["error"]["message"]) == (False, "compute_failed", message)


async def test_half_a_character_of_a_sandbox_is_replaced(loop, engine):
    await loop.begin(compute("1"))
    engine.program = lambda run: run.print(b'{"result": ["\\ud800"]}')
    assert (await loop.call("compute"))["ret"] == {"result": ["?"]}


async def test_a_lost_sandbox_is_the_services_failure(loop, engine):
    await loop.begin(compute("1"))
    engine.is_lost_at = "run"
    answer = await loop.call("compute")
    assert (answer["ok"], answer["error"]["code"]) == (False, "sandbox_failed")
    engine.is_lost_at = ""
    engine.program = lambda _run: ProcessOutcome(lost="gone", lost_to_memory=True)
    answer = await loop.call("compute")
    assert (answer["error"]["code"], "memory" in answer["error"]["message"]) == ("compute_failed", True)


@pytest.mark.usefixtures("engine")
async def test_the_audit_line_has_the_sandbox(loop):
    await loop.begin(compute("1"))
    await loop.call("compute")
    route = "/v1/tool-calls/call-1/provenance"
    line = (await loop.web.get(route, params={"conversation_id": loop.run["conversation_id"]})).json()
    assert line["gateway"]["execution"] == "compute"
    assert line["sandbox"]["engine"] == "fake"
    assert line["limits"]["wall_s"] == 5
