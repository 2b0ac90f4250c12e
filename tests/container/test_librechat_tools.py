"""Programs that call tools of LibreChat: run again with each round of results, in Python and bash."""

import asyncio
import uuid
from dataclasses import replace

import httpx
import pytest

from proofbox.service.app.serving import application
from tests.support.librechat import ToolLoop, put_file, read_file, user

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

BASH = {"lang": "bash"}


def weather(city):
    return {"city": city, "degrees": len(city)}


def fail(**_values):
    raise ValueError("no such record")


def add(a, b, note=""):
    return f"{note}{a + b}" if note else a + b


TOOLS = {"weather": weather, "add": add, "fail": fail, "echo-text": lambda text: text}


@pytest.fixture
def loop(librechat):
    return ToolLoop(librechat, TOOLS)


async def start(client, code, headers=None, tools=("weather",), **fields):
    body = {"code": code, "tools": [{"name": name} for name in tools], **fields}
    return await client.post("/exec/programmatic", json=body, headers=headers)


async def go_on(client, token, results, headers=None):
    body = {"continuation_token": token, "tool_results": results}
    return await client.post("/exec/programmatic", json=body, headers=headers)


def result(call, value):
    return {"call_id": call["id"], "result": value, "is_error": False}


async def test_a_program_goes_on_with_each_result(loop):
    code = (
        "print('begin')\n"
        "one = await weather(city='Rome')\n"
        "two = await add(a=one['degrees'], b=3)\n"
        "print(one, two)\n"
    )
    answer = await loop.run(code)
    assert answer["status"] == "completed", answer
    assert answer["stdout"] == "begin\n{'city': 'Rome', 'degrees': 4} 7\n"
    assert [[(call["name"], call["input"]) for call in calls] for calls in loop.rounds] == [
        [("weather", {"city": "Rome"})],
        [("add", {"a": 4, "b": 3})],
    ]
    assert loop.answers[0]["partial_stdout"] == "begin\n"
    assert [call["id"] for calls in loop.rounds for call in calls] == ["call_001", "call_002"]


async def test_calls_side_by_side_are_one_round(loop):
    code = (
        "import asyncio\n"
        "async def both(city):\n"
        "    first = await weather(city=city)\n"
        "    return await add(a=first['degrees'], b=1)\n"
        "print(await asyncio.gather(*(both(city) for city in ('Rome', 'Oslo', 'Berlin'))))\n"
    )
    answer = await loop.run(code)
    assert answer["stdout"] == "[5, 5, 7]\n", answer
    assert [len(calls) for calls in loop.rounds] == [3, 3]


async def test_equal_calls_have_results_of_their_own(librechat):
    count = iter(range(10))
    loop = ToolLoop(librechat, {"next": lambda: next(count)})
    answer = await loop.run("print([await next() for _ in range(3)])\n")
    assert answer["stdout"] == "[0, 1, 2]\n"
    assert len(loop.rounds) == 3


async def test_names_and_parameters_become_those_of_functions(loop):
    answer = await loop.run("print(await echo_text(text='x'), await add(1, 2), await add(1, b=2, note=None))\n")
    assert answer["stdout"] == "x 3 3\n", answer
    assert [call["input"] for calls in loop.rounds for call in calls][1:] == [{"a": 1, "b": 2}, {"a": 1, "b": 2}]
    assert (await loop.run("print(await add({'a': 1, 'b': 2}), await echo_text({'text': 'x'}))"))[
        "stdout"
    ] == "3 x\n"
    wrong = await loop.run("await add(1, 2, sum=3)\n")
    assert wrong["status"] == "error"
    assert "add() got an unexpected keyword argument 'sum'" in wrong["stderr"]


async def test_a_failed_tool_is_an_exception_that_the_program_may_handle(loop):
    code = "try:\n    await fail(id=1)\nexcept ToolExecutionError as exc:\n    print('handled', exc)\n"
    assert (await loop.run(code))["stdout"] == "handled no such record\n"
    answer = await loop.run("print(1)\nawait fail()\n")
    assert (answer["status"], answer["error"]) == ("error", "Sandbox exited with code 1")
    assert 'File "main.py", line 2' in answer["stderr"]
    assert "no such record" in answer["stderr"]


@pytest.mark.parametrize(
    "code", ["print('no tool')", "import asyncio\nasync def main():\n    print('no tool')\nasyncio.run(main())"]
)
async def test_a_program_that_calls_no_tool_is_completed_at_once(loop, code):
    answer = await loop.run(code)
    assert (answer["status"], answer["stdout"], loop.rounds) == ("completed", "no tool\n", [])


async def test_a_program_that_prints_elsewhere_goes_on(loop):
    code = (
        "import contextlib, io, sys\n"
        "with contextlib.redirect_stdout(io.StringIO()) as text:\n    print(await weather(city='Rome'))\n"
        "sys.stderr.close()\n"
        "print(await weather(city='Oslo'), text.getvalue(), end='')\n"
    )
    found = [{"city": city, "degrees": 4} for city in ("Oslo", "Rome")]
    assert (await loop.run(code))["stdout"] == f"{found[0]} {found[1]}\n"


async def test_a_program_with_a_loop_of_its_own_calls_tools(loop):
    code = "async def main():\n    print((await weather(city='Rome'))['degrees'])\nasyncio.run(main())\n"
    assert (await loop.run(code))["stdout"] == "4\n"


async def test_any_value_of_json_is_a_result(librechat):
    values = [None, True, 1.5, "ü\n'\"", [1, [2]], {"a": {"b": None}}]
    loop = ToolLoop(librechat, {"value": lambda at: values[at]})
    answer = await loop.run(f"print([await value(at=at) for at in range({len(values)})] == {values!r})\n")
    assert answer["stdout"] == "True\n"


async def test_files_go_in_and_those_of_the_last_run_come_out(librechat, loop):
    file = await put_file(librechat, "in.txt", b"Rome")
    code = (
        "city = open('/mnt/data/in.txt').read()\n"
        "open('before.txt', 'a').write('x')\n"
        "found = await weather(city=city)\n"
        "open('after.txt', 'w').write(json.dumps(found))\n"
    )
    answer = await loop.run(code, files=[file])
    files = {each["name"]: each for each in answer["files"]}
    assert set(files) == {"in.txt", "before.txt", "after.txt"}, answer
    assert files["in.txt"]["inherited"] is True
    assert await read_file(librechat, files["before.txt"]) == b"x"
    assert await read_file(librechat, files["after.txt"]) == b'{"city": "Rome", "degrees": 4}'
    assert files["after.txt"]["storage_session_id"] == answer["session_id"]


async def test_plots_are_saved_beside_tools(loop):
    code = "import matplotlib.pyplot as plt\nplt.plot([(await weather(city='Rome'))['degrees'], 2])\nplt.show()\n"
    answer = await loop.run(code)
    assert [file["name"] for file in answer["files"]] == ["plot_1.png"], answer


async def test_a_bash_script_calls_tools_as_functions(loop):
    code = (
        "echo begin\n"
        'data=$(weather \'{"city": "Rome"}\')\n'
        'echo "$data" | jq -r .city\n'
        'echo_text \'{"text": "plain"}\'\n'
        'add \'{"a": 1, "b": 2}\' | tee /mnt/data/sum.json\n'
    )
    answer = await loop.run(code, **BASH)
    assert answer["stdout"] == 'begin\nRome\n"plain"\n3\n', answer
    assert [file["name"] for file in answer["files"]] == ["sum.json"]
    assert len(loop.rounds) == 3


async def test_background_jobs_of_a_script_call_tools_in_one_round(loop):
    code = (
        "for city in Rome Oslo; do\n"
        '  { weather "{\\"city\\": \\"$city\\"}" >"$city.json"; } &\n'
        "done\n"
        "wait\n"
        "jq -r .city Rome.json Oslo.json\n"
    )
    answer = await loop.run(code, **BASH)
    assert answer["stdout"] == "Rome\nOslo\n", answer
    assert [len(calls) for calls in loop.rounds] == [2]


async def test_a_background_job_that_has_work_before_its_call_is_in_the_round_of_the_others(loop):
    works = "for ((n = 0; n < 150000; n++)); do :; done"
    code = f'add \'{{"a": 1, "b": 2}}\' & {{ {works}; add \'{{"a": 3, "b": 4}}\'; }} &\nwait\n'
    answer = await loop.run(code, **BASH)
    assert (sorted(answer["stdout"].split()), [len(calls) for calls in loop.rounds]) == (["3", "7"], [2]), answer


async def test_nested_shells_of_a_script_have_the_tools_too(loop):
    answer = await loop.run('echo Rome | xargs -I@ bash -c \'weather "{\\"city\\": \\"@\\"}"\'\n', **BASH)
    assert answer["stdout"] == '{"city":"Rome","degrees":4}\n', answer


async def test_a_failed_tool_or_a_wrong_argument_is_a_failed_command(loop):
    code = "fail || echo \"status $?\"\nweather 'no json' || echo again\nexit 5\n"
    answer = await loop.run(code, **BASH)
    assert (answer["status"], answer["error"]) == ("error", "Sandbox exited with code 5"), answer
    assert answer["stdout"] == "status 1\nagain\n"
    assert "fail: no such record" in answer["stderr"]
    assert "weather: the argument is not a JSON object: no json" in answer["stderr"]


async def test_no_command_after_an_open_call_runs(loop):
    """What it would print or write is not there when the results have not come."""
    answer = await loop.run('x=$(weather \'{"city": "Rome"}\')\necho after >>/mnt/data/log.txt\n', **BASH)
    assert "partial_stdout" not in loop.answers[0]
    assert [file["name"] for file in answer["files"]] == ["log.txt"]


async def test_a_tool_that_was_not_given_cannot_be_asked_for(librechat):
    code = (
        "import json\n"
        "open('/mnt/data/.proofbox-tool-calls.json', 'w').write(json.dumps([{'name': 'other', 'input': {}}]))\n"
    )
    answer = (await start(librechat, code)).json()
    assert (answer["status"], answer["error"]) == ("error", "Sandbox requested an unregistered tool: other")


@pytest.mark.parametrize("content", ["[]", "[1]", '[{"name": "weather", "input": {"a": NaN}}]'])
async def test_a_file_of_calls_that_the_program_forged_is_an_error(librechat, content):
    code = f"open('/mnt/data/.proofbox-tool-calls.json', 'w').write({content!r})\nprint('end')"
    answer = (await start(librechat, code)).json()
    assert (answer["status"], answer["partial_stdout"]) == ("error", "end\n")
    assert answer["error"].startswith("Sandbox wrote tool calls that are not valid: ")


@pytest.mark.parametrize(
    "fields",
    [
        {"code": ""},
        {"code": None},
        {"tools": []},
        {"tools": None},
        {"tools": [{"name": f"t{n}"} for n in range(101)]},
        {"tools": [{"name": "a-b"}, {"name": "a_b"}]},
        {"tools": [{"name": "!!!"}]},
        {"lang": "js"},
        {"language": "ruby"},
        {"timeout": 300_001},
        {"files": [{"id": "A" * 21, "storage_session_id": "A" * 21, "name": ".proofbox-tool-calls.json"}]},
        {"files": [{"id": "x", "storage_session_id": "A" * 21, "name": "a"}]},
    ],
)
async def test_a_wrong_start_is_a_bad_request(librechat, fields):
    body = {"code": "print(1)", "tools": [{"name": "a"}], **fields}
    response = await librechat.post("/exec/programmatic", json=body)
    assert response.status_code == 400, response.text
    assert response.json()["error"]


async def test_the_wall_clock_of_a_run_is_the_one_that_was_asked_for(librechat):
    answer = (await start(librechat, "import time\ntime.sleep(60)", timeout=1_000)).json()
    assert (answer["status"], answer["error"]) == ("error", "Time limit exceeded")


async def test_results_that_do_not_fit_the_calls_are_refused_and_the_program_can_still_go_on(librechat):
    answer = (await start(librechat, "print(await weather(city='Rome'))")).json()
    token, [call] = answer["continuation_token"], answer["tool_calls"]
    good = [result(call, 1)]
    for wrong in ([], [{"call_id": "call_042", "result": 1}], good * 2, [{"call_id": "call_042"}, *good]):
        assert (await go_on(librechat, token, wrong)).status_code == 400
    assert (await go_on(librechat, "no token", good)).status_code == 400
    assert (await go_on(librechat, token.replace(".1", ".2"), good)).status_code == 400
    unknown = await go_on(librechat, "A" * 21 + ".1", good)
    assert (unknown.status_code, unknown.json()["error"]) == (404, "Execution not found or expired")
    ended = await go_on(librechat, token, good)
    assert (ended.status_code, ended.json()["stdout"]) == (200, "1\n")
    assert (await go_on(librechat, token, good)).status_code == 404


async def test_another_user_cannot_go_on(librechat):
    answer = (await start(librechat, "print(await weather(city='Rome'))", headers=user("anna"))).json()
    results = [result(answer["tool_calls"][0], 1)]
    assert (await go_on(librechat, answer["continuation_token"], results, user("ben"))).status_code == 404
    assert (await go_on(librechat, answer["continuation_token"], results, user("anna"))).status_code == 200


async def test_too_large_results_end_the_program(librechat):
    answer = (await start(librechat, "print(len(await weather(city='Rome')))")).json()
    results = [result(answer["tool_calls"][0], "x" * 6_000_000)]
    assert (await go_on(librechat, answer["continuation_token"], results)).status_code == 413
    assert (await go_on(librechat, answer["continuation_token"], results)).status_code == 404
    large = await start(librechat, "#" * 11_000_000)
    assert large.status_code in {413, 422}


async def test_a_large_result_arrives(librechat):
    answer = (await start(librechat, "print(len(await weather(city='Rome')))")).json()
    results = [result(answer["tool_calls"][0], "x" * 4_000_000)]
    assert (await go_on(librechat, answer["continuation_token"], results)).json()["stdout"] == "4000000\n"


async def test_a_repeated_continuation_has_the_same_answer(librechat):
    code = "a = await weather(city='A')\nb = await weather(city='B')\nprint(a, b)"
    first = (await start(librechat, code)).json()
    results = [result(first["tool_calls"][0], 1)]
    second = (await go_on(librechat, first["continuation_token"], results)).json()
    again = (await go_on(librechat, first["continuation_token"], results)).json()
    for name in ("tool_calls", "continuation_token"):
        assert again[name] == second[name]
    last = await go_on(librechat, second["continuation_token"], [result(second["tool_calls"][0], 2)])
    assert last.json()["stdout"] == "1 2\n"


@pytest.mark.slow
async def test_two_continuations_at_a_time_are_a_conflict(librechat):
    answer = (await start(librechat, "x = await weather(city='A')\nimport time\ntime.sleep(3)\nprint(x)")).json()
    results = [result(answer["tool_calls"][0], 1)]
    both = await asyncio.gather(
        *(go_on(librechat, answer["continuation_token"], results) for _ in range(2)), return_exceptions=False
    )
    assert sorted(response.status_code for response in both) == [200, 409]


async def test_a_program_goes_on_in_another_process(service, librechat):
    answer = (await start(librechat, "print(await weather(city='Rome'))")).json()
    settings = service.settings.model_copy(update={"librechat": True})
    transport = httpx.ASGITransport(application(replace(service, settings=settings)), raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost/librechat/v1", timeout=60
    ) as other:
        results = [result(answer["tool_calls"][0], 1)]
        ended = await go_on(other, answer["continuation_token"], results)
    assert ended.json()["stdout"] == "1\n"


async def test_a_program_is_cancelled_by_the_id_of_its_request(service, librechat):
    request_id = str(uuid.uuid4())
    headers = {"X-LibreChat-Code-Request-ID": request_id}
    running = asyncio.create_task(start(librechat, "import time\ntime.sleep(120)", headers=headers))
    while not service.calls._running:  # noqa: ASYNC110 - the service has no event for it
        await asyncio.sleep(0.01)
    twice = await start(librechat, "print(1)", headers=headers)
    assert twice.status_code == 409
    other = await librechat.post("/exec/programmatic/cancel", json={"request_id": request_id}, headers=user("ben"))
    assert other.status_code == 403
    cancelled = await librechat.post("/exec/programmatic/cancel", json={"request_id": request_id})
    assert (cancelled.status_code, cancelled.json()) == (202, {"status": "cancellation_requested"})
    ended = await running
    assert ended.json() == {"status": "error", "error": "Execution was cancelled"}


async def test_a_cancellation_may_come_before_its_request(librechat):
    request_id = str(uuid.uuid4())
    assert (await librechat.post("/exec/programmatic/cancel", json={"request_id": request_id})).status_code == 202
    answer = await start(librechat, "print(1)", headers={"X-LibreChat-Code-Request-ID": request_id})
    assert answer.json() == {"status": "error", "error": "Execution was cancelled"}
    for wrong in ({}, {"request_id": "short"}, {"request_id": "a b" * 10}):
        assert (await librechat.post("/exec/programmatic/cancel", json=wrong)).status_code == 400
    assert (await start(librechat, "print(1)", headers={"X-LibreChat-Code-Request-ID": "x"})).status_code == 400
