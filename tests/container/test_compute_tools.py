"""The variant ``compute`` on a real engine: expressions are evaluated in sandboxes of their own."""

import json
import re

import pytest

from tests.support.computing import BUILTINS, OS, OWN, compute, evaluated, opened_computing_loop

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


@pytest.fixture
async def loop(service):
    tools = [
        compute(OWN),
        compute("{{input.text}} + ' has ' + str(len(text))", "measure"),
        compute("[x for x in {{input.n}}]", "brief", timeout=300),
    ]
    async with opened_computing_loop(service, "computes", *tools) as opened:
        yield opened


async def test_a_quote_in_a_value_computes(loop, service):
    for text in ("it's", '"', "'''", "\\", "{{input.text}}", "${env.X}", "' + str(1) + '", "\u2028 \U0001f600"):
        answer = await loop.call("measure", {"text": text})
        assert (answer["ok"], answer["ret"]) == (True, {"result": f"{text} has {len(text)}"})
    assert answer["sandbox"]["engine"] == service.settings.engine


async def test_a_result_is_in_its_block_and_what_was_used_in_the_answer(loop):
    answer = await evaluated(loop, "sorted(values)", values=[3, 1, 2])
    assert answer["ret"] == {"result": [1, 2, 3]}
    blocks = [json.loads(block["text"]) for block in answer["blocks"] if block["type"] == "react.tool.result"]
    assert blocks == [{"ok": True, "result": {"result": [1, 2, 3]}}]
    assert answer["usage"]["exit_code"] == 0
    assert answer["timings_ms"]["run"] > 0


async def test_an_error_is_its_last_line(loop):
    answer = await evaluated(loop, "values[5] / 0", values=[1])
    error = {
        "code": "compute_failed",
        "message": "IndexError: list index out of range",
        "where": "run",
        "managed": True,
    }
    assert (answer["ok"], answer["error"]) == (False, error)
    answer = await evaluated(loop, "1 +")
    assert answer["error"]["message"] == "SyntaxError: invalid syntax (<expression>, line 1)"
    answer = await evaluated(loop, 7)
    assert answer["error"]["code"] == "invalid_input"


HOSTILE = {
    "process 1": (f"{BUILTINS}['open']('/proc/1/environ').read()", ("PermissionError", "FileNotFoundError")),
    "memory of process 1": (
        f"{BUILTINS}['open']('/proc/1/mem', 'rb').read(1)",
        ("PermissionError", "FileNotFoundError"),
    ),
    "network": (
        f"{BUILTINS}['__import__']('socket').create_connection(('1.1.1.1', 53), 2)",
        ("OSError", "PermissionError", "ConnectionRefusedError"),
    ),
    "a name server": (
        f"{BUILTINS}['__import__']('socket').getaddrinfo('example.com', 80)",
        ("gaierror", "OSError"),
    ),
}


@pytest.mark.parametrize(("expression", "errors"), HOSTILE.values(), ids=HOSTILE)
async def test_an_expression_that_breaks_out_reaches_nothing(loop, expression, errors):
    answer = await evaluated(loop, expression)
    assert answer["error"]["code"] == "compute_failed"
    assert answer["error"]["message"].startswith(errors), answer["error"]["message"]


@pytest.mark.slow
async def test_time_is_bounded_and_the_message_names_the_limit(loop):
    answer = await evaluated(loop, "9**9**9")
    assert answer["error"]["code"] == "compute_failed"
    assert answer["error"]["message"] == (
        "Timeout after 5s: the expression was ended (its timeout is 5000 ms); let it compute less"
    )
    answer = await evaluated(loop, f"{BUILTINS}['__import__']('time').sleep(6)")
    assert answer["error"]["message"].startswith("Timeout after 5s: ")


async def test_memory_is_bounded(loop):
    # A busy machine may not have filled the memory of the second one when its time is over.
    for expression, ends in (
        ("[0] * 10**11", "memory"),
        ("['x' * 10**8 + str(n) for n in [0] * 100]", "memory|timeout after 5s"),
    ):
        answer = await evaluated(loop, expression)
        assert answer["error"]["code"] == "compute_failed"
        assert re.search(ends, answer["error"]["message"].lower())


async def test_what_an_expression_prints_is_no_result(loop):
    forged = f"{OS}['write'](1, b'no json\\n') and {OS}['_exit'](0)"
    answer = await evaluated(loop, forged)
    assert answer["error"]["message"] == "the expression gave no result that JSON can carry"
    answer = await evaluated(loop, f"{OS}['_exit'](0)")
    assert answer["error"]["message"] == "the expression gave no result"
    answer = await evaluated(loop, f"{OS}['write'](1, b'{{\"result\": NaN}}\\n') and {OS}['_exit'](0)")
    assert answer["error"]["message"] == "the expression gave no result that JSON can carry"
    flood = f"{OS}['write'](1, b'{{\"result\": \"' + b'x' * 100000 + b'\"}}\\n') and {OS}['_exit'](0)"
    answer = await evaluated(loop, flood)
    assert answer["error"]["message"].startswith("the result is too large (limit 65536 bytes as JSON, got 1000")
    answer = await evaluated(loop, f"{OS}['_exit'](3)")
    assert answer["error"]["message"] == "exit status 3"


async def test_results_that_json_cannot_carry_are_errors(loop):
    for expression in ("float('nan')", "{1}", "10**5000", "'\\ud800'", "{1: 2}"):
        answer = await evaluated(loop, expression)
        assert (answer["ok"], answer["error"]["code"]) == (False, "compute_failed")
    answer = await evaluated(loop, "10**400")
    assert answer["ret"] == {"result": 10**400}


async def test_a_large_result_is_a_file_too(loop):
    answer = await evaluated(loop, "'x' * 30000")
    assert answer["ret"] == {"result": "x" * 30_000}
    (artifact,) = answer["artifacts"]
    assert (artifact["visibility"], artifact["logical_path"].endswith(".result.json")) == ("internal", True)


async def test_too_large_an_input_is_refused_and_nothing_runs(loop):
    answer = await loop.call("measure", {"text": "x" * 600_000})
    assert answer["error"]["code"] == "invalid_input"
    assert "limit 1,048,576 bytes" in answer["error"]["message"]
    assert answer["sandbox"] is None


async def test_the_limits_of_a_request_are_the_operators(loop):
    response = await loop.post_call("compute", {"expression": "1"}, limits={"memory_bytes": 2**40})
    assert (response.status_code, response.json()["code"]) == (422, "limit_not_allowed")
