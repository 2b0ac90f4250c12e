"""Running a call again on the inputs that it had, with a sandbox in memory."""

from dataclasses import replace

import pytest

from proofbox.contracts.blocks import Block
from proofbox.service.access.quotas import Allowances
from proofbox.service.errors import NoProvenanceError, NotRerunnableError, StoreFullError, UnknownCallError
from tests.support.pipeline import ANN, MIB, SCOPE, opened_pipeline

CSV = {"filename": "a.csv", "description": "the table"}
CSV_PATH = "turn_1/files/a.csv"
READS = "open('turn_0/files/in.txt')"


def copies(run):
    """A program that writes its input to its promised file."""
    run.write("a.csv", run.files["turn_0/files/in.txt"])


@pytest.fixture(autouse=True)
async def saved(pipeline):
    await pipeline.save("turn_0/files/in.txt", b"first")
    pipeline.engine.program = copies


async def test_a_rerun_finds_the_versions_that_the_call_had(pipeline):
    await pipeline.execute(CSV, code=READS)
    await pipeline.save("turn_0/files/in.txt", b"second")
    report = await pipeline.rerun()
    assert (report.identical, [output.result for output in report.outputs]) == (True, ["identical"])
    assert [inputs["turn_0/files/in.txt"] for inputs in pipeline.engine.inputs] == [b"first", b"first"]


async def test_a_rerun_stores_nothing_but_its_audit_line(pipeline):
    await pipeline.execute(CSV, code=READS)
    pipeline.engine.program = lambda run: run.write("a.csv", b"another") or run.files.pop("turn_0/files/in.txt")[:0]
    report = await pipeline.rerun()
    assert ([output.result for output in report.outputs], report.identical) == (["differs"], False)
    assert (await pipeline.stored(CSV_PATH), await pipeline.stored("turn_0/files/in.txt")) == (b"first", b"first")
    assert [line.call.rerun_of is not None for line in pipeline.audit_lines()] == [False, True]


async def test_an_asset_and_a_program_by_reference_are_had_again(pipeline):
    await pipeline.save("turn_0/files/job.py", b"print('first')")
    pipeline.engine.program = lambda run: run.write("a.csv", run.files["turn_1/attachments/a.txt"])
    asset = {"physical_path": "turn_1/attachments/a.txt", "text": "an asset"}
    await pipeline.execute(CSV, code="ref: turn_0/files/job.py", assets=[asset])
    await pipeline.save("turn_0/files/job.py", b"print('second')")
    report = await pipeline.rerun()
    assert report.identical
    assert [job.code for job in pipeline.engine.jobs] == [b"print('first')"] * 2
    assert [inputs["turn_1/attachments/a.txt"] for inputs in pipeline.engine.inputs] == [b"an asset"] * 2


async def test_a_call_whose_input_changed_is_not_rerunnable(pipeline):
    block = {
        "type": "react.tool.result",
        "author": "react",
        "turn_id": "turn_0",
        "ts": "2026-02-09T02:14:32Z",
        "mime": "text/plain",
        "path": "fi:turn_0.files/told.txt",
        "text": "from the timeline",
    }
    await pipeline.timelines.append(SCOPE, [Block(**block)])
    await pipeline.execute(CSV, code="open('turn_0/files/told.txt'), " + READS)
    await pipeline.timelines.append(SCOPE, [Block(**{**block, "text": "changed"})])
    with pytest.raises(NotRerunnableError, match="the input 'turn_0/files/told"):
        await pipeline.rerun()


async def test_a_call_that_ran_no_program_is_not_rerunnable(pipeline):
    await pipeline.execute(CSV, code="open('turn_0/files/gone.txt')")
    with pytest.raises(NotRerunnableError, match="ran no program"):
        await pipeline.rerun()


async def test_a_tool_without_a_sandbox_is_not_rerunnable(pipeline):
    await pipeline.answer("react.write", {"path": "a.md", "content": "text", "channel": "canvas"})
    with pytest.raises(NotRerunnableError, match="ran no program"):
        await pipeline.rerun()


async def test_an_unknown_call_has_no_provenance(pipeline):
    with pytest.raises((UnknownCallError, NoProvenanceError)):
        await pipeline.rerun("call_9")


async def test_a_full_disk_at_a_restored_asset_is_store_full(pipeline):
    asset = {"physical_path": "turn_1/attachments/a.bin", "text": "x" * MIB}
    await pipeline.execute(CSV, code=READS, assets=[asset])
    pipeline.artifacts.full_names = ["restored-0", "restored-1", "asset-0", "asset-1"]
    with pytest.raises(StoreFullError):
        await pipeline.rerun()


async def test_a_rerun_has_the_network_of_the_key_that_asks_for_it(tmp_path):
    async with opened_pipeline(tmp_path / "networked", sandbox_network=("pypi.org:443",)) as pipeline:
        for key_id, network in (("one", None), ("two", ()), ("three", ("pypi.org:443",))):
            pipeline.quotas.meter(f"key {key_id}", Allowances(network=network))
        await pipeline.execute(network={"allow": ["pypi.org:443"]})
        for key_id in ("two", "unknown"):
            with pytest.raises(NotRerunnableError, match=r"not allowed for this API key \(none\)"):
                await pipeline.rerun(principal=replace(ANN, key_id=key_id))
        for key_id in ("one", "three"):
            await pipeline.rerun(principal=replace(ANN, key_id=key_id))
        lines = pipeline.audit_lines()
        assert [line.principal.key_id for line in lines] == [None, "one", "three"]
