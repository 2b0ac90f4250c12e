"""What the metrics say of calls that really ran."""

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


async def counted(http, start):
    answer = await http.get("/metrics")
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in answer.text.splitlines()
        if line.startswith(start)
    }


async def test_calls_are_counted_by_tool_and_outcome_and_a_replay_is_not(http, call):
    name = 'proofbox_calls_total{code="%s",tool="exec_tools.execute_code_python"}'
    before = await counted(http, "proofbox_calls_total")
    await call("open('files/a.txt', 'w').write('1')", ["a.txt"])
    await call("raise SystemExit(3)", ["b.txt"])
    first = call.body("open('files/c.txt', 'w').write('1')", ["c.txt"])
    for _ in range(2):
        assert (await http.post("/v1/tool-calls", json=first)).status_code == 200
    after = await counted(http, "proofbox_calls_total")
    grown = {code: after.get(name % code, 0) - before.get(name % code, 0) for code in ("ok", "nonzero_exit")}
    assert grown == {"ok": 2, "nonzero_exit": 1}


async def test_the_pool_and_the_line_are_seen(http):
    found = await counted(http, "proofbox_")
    assert found['proofbox_pool_wanted{flavour="bare"}'] >= 1  # more where starts are slow
    assert found["proofbox_calls_queued"] == 0
    assert found["proofbox_pool_ready"] == sum(
        found[name] for name in found if name.startswith("proofbox_pool_waiting")
    )
