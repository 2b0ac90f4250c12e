"""The variant ``compute`` on the engine oci."""

import pytest

from tests.support.computing import BUILTINS, OWN, compute, evaluated, opened_computing_loop

pytestmark = [pytest.mark.docker, pytest.mark.oci, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
async def loop(service):
    tools = [compute(OWN), compute("{{input.text}} + '!'", "shout")]
    async with opened_computing_loop(service, "computes", *tools) as opened:
        yield opened


async def test_values_compute_and_expressions_reach_nothing(loop):
    answer = await loop.call("shout", {"text": 'it\'s "quoted"'})
    assert answer["ret"] == {"result": 'it\'s "quoted"!'}
    for expression in (
        f"{BUILTINS}['open']('/proc/1/environ').read()",
        f"{BUILTINS}['__import__']('socket').create_connection(('1.1.1.1', 53), 2)",
        "[0] * 10**11",
        "float('nan')",
    ):
        answer = await evaluated(loop, expression)
        assert (answer["ok"], answer["error"]["code"]) == (False, "compute_failed")
        assert "Timeout" not in answer["error"]["message"]
    answer = await evaluated(loop, "9**9**9")
    assert answer["error"]["message"].startswith("Timeout after 5s: ")
