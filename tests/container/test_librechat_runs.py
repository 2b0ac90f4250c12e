"""Programs that LibreChat runs: what they see, print and leave, and what becomes of their inputs."""

import asyncio
import json

import pytest

from tests.support.librechat import execute, put_file, read_file, user

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024


def by_name(answer):
    return {file["name"]: file for file in answer["files"]}


async def test_a_program_prints_and_its_end_is_reported(librechat):
    answer = await execute(librechat, "import sys\nprint('grüße')\nprint('oops', file=sys.stderr)")
    assert answer["stdout"] == "grüße\n"
    assert answer["stderr"] == "oops\n"
    assert len(answer["session_id"]) == 21
    assert answer["files"] == []
    assert (answer["code"], answer["signal"], answer["status"], answer["message"]) == (0, None, None, None)
    assert isinstance(answer["wall_time"], int)
    assert not {"deleted_files", "artifact_delivery"} & set(answer)


@pytest.mark.parametrize(
    ("lang", "code"),
    [
        ("py", "print(6 * 7)"),
        ("python", "print(6 * 7)"),
        ("bash", "echo $((6 * 7))"),
        ("sh", "echo $((6 * 7))"),
        ("js", "console.log(6 * 7)"),
        ("nodejs", "console.log(6 * 7)"),
    ],
)
async def test_each_offered_language_runs(librechat, lang, code):
    assert (await execute(librechat, code, lang))["stdout"] == "42\n"


@pytest.mark.parametrize("lang", ["ts", "rs", "r", "", "COBOL" * 20])
async def test_any_other_language_is_refused(librechat, lang):
    response = await librechat.post("/exec", json={"lang": lang, "code": "1"})
    assert response.status_code == 400
    assert response.json() == {"error": f"Unsupported language: {lang[:40]}"}


async def test_a_failed_program_is_a_result(librechat):
    answer = await execute(librechat, "open('part.txt', 'w').write('x')\n1 / 0")
    assert answer["code"] == 1
    assert "line 2" in answer["stderr"]
    assert "ZeroDivisionError: division by zero" in answer["stderr"]
    assert (await execute(librechat, "exit 3", "bash"))["code"] == 3
    killed = await execute(librechat, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (killed["code"], killed["signal"]) == (None, "SIGSEGV")


async def test_a_program_that_needs_too_much_memory_is_reported_in_words_that_the_client_shows(librechat):
    answer = await execute(librechat, "x = bytearray(4 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1")
    assert (answer["status"], answer["message"]) == ("RE", "Out of memory")
    assert "memory" in answer["stderr"]


async def test_a_program_that_is_no_program_is_answered_in_stderr(librechat):
    answer = await execute(librechat, "```python\nprint(1)\n```")
    assert answer["code"] == 1
    assert "code" in answer["stderr"]
    blank = await librechat.post("/exec", json={"lang": "py", "code": " \n"})
    assert (blank.status_code, blank.json()) == (400, {"error": "Missing required field: code"})


async def test_arguments_arrive(librechat):
    code = "import sys; print(sys.argv[1:])"
    assert (await execute(librechat, code, args=["a b", "ü"]))["stdout"] == "['a b', 'ü']\n"
    response = await librechat.post("/exec", json={"lang": "py", "code": code, "args": ["x"] * 300})
    assert response.status_code == 400


async def test_an_argument_or_a_program_that_no_sandbox_takes_is_refused(librechat):
    answer = await execute(librechat, "print(1)", args=["a\0b"])
    assert answer["code"] == 1
    assert "NUL" in answer["stderr"]
    response = await librechat.post("/exec", json={"lang": "py", "code": "#" * 11_000_000})
    assert (response.status_code, response.json()["error"]) == (422, "invalid_request")


async def test_fields_that_other_servers_take_are_ignored(librechat):
    extra = {
        "session_id": "x",
        "user_id": "u",
        "runtime_session_hint": "h",
        "timeout": 1000,
        "tools": [],
        "intent": "Look at the data",
        "anything": {"else": [1]},
    }
    assert (await execute(librechat, "print(1)", **extra))["stdout"] == "1\n"


async def test_a_profile_that_keeps_its_machine_is_refused_for_good(librechat):
    body = {"lang": "py", "code": "print(1)"}
    response = await librechat.post("/exec", json=body, headers={"X-CodeAPI-Expected-Profile": "stateful"})
    assert (response.status_code, response.json()["error"]) == (409, "execution_profile_mismatch")
    default = await librechat.post("/exec", json=body, headers={"X-CodeAPI-Expected-Profile": "default"})
    assert default.status_code == 200


async def test_inputs_lie_below_mnt_data_by_their_names(librechat):
    files = [
        await put_file(librechat, "data.csv", b"a\n1\n"),
        await put_file(librechat, "sub/größe.txt", "ü".encode()),
    ]
    code = (
        "import os\n"
        "print(open('/mnt/data/data.csv').read(), open('data.csv').read(), open('sub/größe.txt').read())\n"
        "print(sorted(os.listdir('/mnt/data')), os.path.samefile('.', '/mnt/data'))"
    )
    answer = await execute(librechat, code, files=files)
    assert answer["stdout"] == "a\n1\n a\n1\n ü\n['data.csv', 'sub'] True\n", answer["stderr"]
    shell = await execute(librechat, "cat /mnt/data/data.csv sub/größe.txt; pwd -P", "bash", files=files)
    assert shell["stdout"].startswith("a\n1\nü")


async def test_an_input_has_the_name_that_the_reference_gives(librechat):
    file = await put_file(librechat, "data.csv", b"a\n1\n")
    answer = await execute(
        librechat, "print(open('new/name.csv').read())", files=[{**file, "name": "new/name.csv"}]
    )
    assert answer["stdout"] == "a\n1\n\n"


async def test_what_a_program_leaves_can_be_downloaded_and_is_input_of_the_next(librechat):
    code = (
        "import os\nos.makedirs('out', exist_ok=True)\n"
        "open('/mnt/data/out/b.txt', 'w').write('two')\nopen('a.txt', 'w').write('one')"
    )
    answer = await execute(librechat, code)
    files = by_name(answer)
    assert set(files) == {"a.txt", "out/b.txt"}
    for file in files.values():
        assert len(file["id"]) == 21
        assert file["storage_session_id"] == answer["session_id"]
        assert "inherited" not in file
    assert files["out/b.txt"]["path"] == "out/b.txt"
    assert await read_file(librechat, files["a.txt"]) == b"one"
    assert await read_file(librechat, files["out/b.txt"]) == b"two"
    following = await execute(librechat, "print(open('out/b.txt').read())", files=list(files.values()))
    assert following["stdout"] == "two\n"


async def test_inputs_that_stay_are_inherited_and_changed_ones_are_new_files(librechat):
    kept, changed, touched = [
        await put_file(librechat, name, b"old") for name in ("kept.txt", "changed.txt", "same.txt")
    ]
    code = (
        "open('changed.txt', 'a').write('new')\n"
        "open('same.txt', 'w').write('old')\nopen('made.txt', 'w').write('x')"
    )
    files = by_name(await execute(librechat, code, files=[kept, changed, touched]))
    for file in (kept, touched):
        shown = files[file["name"]]
        assert (shown["id"], shown["storage_session_id"]) == (file["id"], file["storage_session_id"])
        assert shown["inherited"] is True
    new = files["changed.txt"]
    assert new["modified_from"] == {"id": changed["id"], "storage_session_id": changed["storage_session_id"]}
    assert new["id"] != changed["id"]
    assert await read_file(librechat, new) == b"oldnew"
    assert await read_file(librechat, changed) == b"old"
    assert "inherited" not in files["made.txt"]


async def test_inputs_that_a_program_deletes_are_named(librechat):
    gone, moved = [await put_file(librechat, name, b"x") for name in ("gone.txt", "sub/moved.txt")]
    code = "import os\nos.remove('/mnt/data/gone.txt')\nos.rename('sub/moved.txt', 'there.txt')"
    answer = await execute(librechat, code, files=[gone, moved])
    assert sorted(answer["deleted_files"]) == ["gone.txt", "sub/moved.txt"]
    assert set(by_name(answer)) == {"there.txt"}
    assert await read_file(librechat, gone) == b"x"


async def test_a_read_only_input_is_never_an_output(librechat):
    skill = await put_file(
        librechat, "skill/SKILL.md", b"# Skill", kind="skill", id="s1", version="3", read_only="true"
    )
    code = "open('skill/SKILL.md', 'a').write('changed'); print(open('skill/SKILL.md').read())"
    answer = await execute(librechat, code, files=[skill])
    assert answer["stdout"] == "# Skillchanged\n"
    [shown] = answer["files"]
    assert shown == {
        "id": skill["id"],
        "name": "skill/SKILL.md",
        "storage_session_id": skill["storage_session_id"],
        "inherited": True,
        "kind": "skill",
        "resource_id": "s1",
        "version": 3,
    }
    again = await read_file(librechat, skill, kind="skill", id="s1", version="3")
    assert again == b"# Skill"


async def test_files_that_fail_a_check_are_outputs_too_and_the_model_is_told(librechat):
    code = "open('empty.txt', 'w')\nopen('broken.pdf', 'w').write('no pdf' * 200)\nopen('good.txt', 'w').write('x')"
    answer = await execute(librechat, code)
    files = by_name(answer)
    assert set(files) == {"empty.txt", "broken.pdf", "good.txt"}
    assert answer["code"] == 0
    assert answer["stderr"].startswith("broken.pdf: ")
    assert "empty" not in answer["stderr"]
    following = await execute(
        librechat,
        "import os\nprint(os.path.getsize('empty.txt'), open('broken.pdf').read(6))",
        files=list(files.values()),
    )
    assert following["stdout"] == "0 no pdf\n"
    assert all(file["inherited"] for file in following["files"])


async def test_hidden_files_and_bytecode_are_no_outputs(librechat):
    code = (
        "import os\n"
        "for path in ('.config/x', '__pycache__/a.pyc', '.env', 'shown.txt'):\n"
        "    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)\n"
        "    open(path, 'w').write('x')\n"
    )
    answer = await execute(librechat, code)
    assert set(by_name(answer)) == {"shown.txt"}
    listed = await librechat.get(f"/files/{answer['session_id']}?detail=normalized")
    assert [file["name"] for file in listed.json()] == ["shown.txt"]


async def test_many_files_are_all_outputs(librechat):
    answer = await execute(librechat, "for n in range(240): open(f'f{n:03}.txt', 'w').write(str(n))")
    files = by_name(answer)
    assert len(files) == 240
    assert await read_file(librechat, files["f239.txt"]) == b"239"
    following = await execute(librechat, "print(open('f239.txt').read())", files=[files["f239.txt"]])
    assert following["stdout"] == "239\n"


async def test_files_beyond_what_a_run_returns_are_counted(librechat):
    answer = await execute(librechat, "for n in range(900): open(f'{n:03}.txt', 'w').write('x')\nopen('.x', 'w')")
    delivery = answer["artifact_delivery"]
    assert (delivery["code"], delivery["status"]) == ("artifact_delivery_failed", "partial")
    assert delivery["delivered"] == len(answer["files"])
    assert delivery["delivered"] + delivery["failed"] == delivery["attempted"] == 900
    assert answer["stderr"] == ""


async def test_commands_that_follow_no_link_see_the_files(librechat):
    file = await put_file(librechat, "data.csv", b"a\n1\n")
    code = (
        "ls -l /mnt/data | wc -l\nfind '/mnt/data' -type f\nfind /mnt/data\n"
        'cp -r "/mnt/data" /tmp/copy && ls /tmp/copy\ncd /mnt/data; cat /mnt/data/data.csv'
    )
    answer = await execute(librechat, code, "bash", files=[file])
    found = ["/mnt/data/data.csv", "/mnt/data/", "/mnt/data/data.csv"]
    assert answer["stdout"].splitlines() == ["2", *found, "data.csv", "a", "1"], answer


async def test_a_file_of_25_mib_goes_in_and_comes_out(librechat):
    file = await put_file(librechat, "large.bin", b"\x07" * 25 * MIB)
    code = "data = open('large.bin', 'rb').read()\nopen('out.bin', 'wb').write(data[::-1])\nprint(len(data))"
    answer = await execute(librechat, code, files=[file])
    assert answer["stdout"] == f"{25 * MIB}\n"
    assert await read_file(librechat, by_name(answer)["out.bin"]) == b"\x07" * 25 * MIB


async def test_long_output_has_its_beginning_and_its_end(librechat):
    answer = await execute(librechat, "print('first')\nprint('x' * 300_000)\nprint('last')")
    assert answer["stdout"].startswith("first\n")
    assert answer["stdout"].endswith("last\n")
    assert "left out" in answer["stdout"]
    assert len(answer["stdout"]) < 70_000


@pytest.mark.parametrize(
    "names",
    [
        ["a.txt", "a.txt"],
        ["a", "a/b.txt"],
        ["a/b.txt", "a"],
        ["../a.txt"],
        ["/etc/passwd"],
        ["a//b"],
        ["a/../b"],
        [""],
        ["a\u0000b"],
        ["a\\b"],
        ["x" * 300],
        ["e\u0301.txt", "é.txt"],
    ],
)
async def test_inputs_that_cannot_lie_below_mnt_data_are_refused(librechat, names):
    file = await put_file(librechat, "a.txt", b"x")
    body = {"lang": "py", "code": "print(1)", "files": [{**file, "name": name} for name in names]}
    response = await librechat.post("/exec", json=body)
    assert response.status_code == 400
    assert response.json()["error"].startswith("files[")


async def test_a_reference_of_another_owner_or_to_nothing_is_not_authorized(librechat):
    mine = await put_file(librechat, "a.txt", b"x", headers=user("anna"))
    agents = await put_file(librechat, "a.txt", b"x", headers=user("anna"), kind="agent", id="agent_1")
    body = {"lang": "py", "code": "print(open('a.txt').read())"}

    async def status(file, who):
        response = await librechat.post("/exec", json={**body, "files": [file]}, headers=who)
        return response.status_code

    assert await status(mine, user("anna")) == 200
    assert await status(mine, user("ben")) == 403
    assert await status(mine, user("anna", "globex")) == 403
    assert await status(mine, None) == 403
    assert await status(agents, user("ben")) == 200  # an agent's files are shared in the tenant
    assert await status(agents, user("anna", "globex")) == 403
    assert await status({**agents, "resource_id": "agent_2"}, user("anna")) == 403
    assert await status({**mine, "id": "A" * 21}, user("anna")) == 403
    assert await status({**mine, "storage_session_id": "A" * 21}, user("anna")) == 403


async def test_outputs_belong_to_the_user_whatever_the_inputs_are(librechat):
    agents = await put_file(librechat, "a.txt", b"x", headers=user("anna"), kind="agent", id="agent_1")
    answer = await execute(librechat, "open('b.txt', 'w').write('b')", files=[agents], headers=user("anna"))
    made = by_name(answer)["b.txt"]
    path = f"/download/{made['storage_session_id']}/{made['id']}"
    assert (await librechat.get(path, headers=user("anna"))).content == b"b"
    assert (await librechat.get(path, headers=user("ben"))).status_code == 404
    assert (await librechat.get(path, params={"kind": "agent", "id": "agent_1"})).status_code == 404


async def test_references_of_older_clients_are_understood(librechat):
    file = await put_file(librechat, "a.txt", b"x")
    older = {"id": file["id"], "session_id": file["storage_session_id"], "name": "a.txt"}
    assert (await execute(librechat, "print(open('a.txt').read())", files=[older]))["stdout"] == "x\n"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"lang": "py"},
        {"code": "x"},
        {"lang": 1, "code": "x"},
        {"lang": "py", "code": "x", "files": "a"},
        {"lang": "py", "code": "x", "files": [{"id": 1}]},
        {"lang": "py", "code": "x", "args": "a"},
        [],
    ],
)
async def test_a_body_of_another_form_is_rejected(librechat, body):
    response = await librechat.post("/exec", json=body)
    assert response.status_code == 422
    assert response.json()["error"] == "invalid_request"


async def test_shown_plots_are_saved(librechat):
    code = (
        "import matplotlib.pyplot as plt\n"
        "plt.plot([1, 2])\n"
        "plt.show()\n"
        "fig, ax = plt.subplots()\n"
        "ax.bar([1], [2])\n"
        "fig.show()\n"
        "plt.show()\n"
    )
    answer = await execute(librechat, code)
    assert set(by_name(answer)) == {"plot_1.png", "plot_2.png"}, answer["stderr"]
    assert answer["stdout"].splitlines() == [
        "The plot was saved as /mnt/data/plot_1.png",
        "The plot was saved as /mnt/data/plot_2.png",
    ]
    assert (await read_file(librechat, by_name(answer)["plot_1.png"])).startswith(b"\x89PNG")


async def test_a_plot_that_the_program_saves_is_not_saved_twice(librechat):
    code = "from matplotlib import pyplot as plt\nplt.plot([1, 2])\nplt.savefig('mine.png')\nplt.show()"
    assert set(by_name(await execute(librechat, code))) == {"mine.png"}


async def test_a_saved_plot_takes_no_name_of_another_file(librechat):
    file = await put_file(librechat, "plot_1.png", b"x")
    code = "import seaborn\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    files = by_name(await execute(librechat, code, files=[file]))
    assert files["plot_1.png"]["inherited"] is True
    assert "plot_2.png" in files


async def test_a_figure_that_is_left_open_is_saved(librechat):
    answer = await execute(librechat, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nprint('x', end='')")
    assert set(by_name(answer)) == {"plot_1.png"}
    assert answer["stdout"] == "x\nThe plot was saved as /mnt/data/plot_1.png\n"


async def test_a_program_that_shows_plots_has_its_own_lines_in_tracebacks(librechat):
    code = (
        "from __future__ import annotations\nimport matplotlib.pyplot as plt\n\n"
        "def fail():\n    raise ValueError('it''s')\n\nplt.show()\nfail()"
    )
    answer = await execute(librechat, code)
    assert answer["code"] == 1
    frames = [line.strip() for line in answer["stderr"].splitlines() if line.strip().startswith("File")]
    assert frames == ['File "/job/main.py", line 8, in <module>', 'File "/job/main.py", line 5, in fail']
    assert "    raise ValueError('it''s')" in answer["stderr"]
    wrong = await execute(librechat, "import matplotlib\nplt.show(\n")
    assert 'File "/job/main.py", line 2' in wrong["stderr"]
    assert "SyntaxError" in wrong["stderr"]


async def test_texts_of_a_wrapped_program_stay_as_they_are(librechat):
    head = "# matplotlib show\n"
    code = (
        head + "print('''a\\tb''', \"\"\"c'd\"\"\", r'\\n', 'ü', __name__, end='\\\\')\r\nimport sys; sys.exit(4)"
    )
    answer = await execute(librechat, code)
    assert answer["stdout"] == "a\tb c'd \\n ü __main__\\"
    assert answer["code"] == 4


async def test_functions_of_a_wrapped_program_run_in_other_processes(librechat):
    code = (
        "import matplotlib.pyplot as plt, multiprocessing\n"
        "def double(x):\n    return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.Pool(2) as pool:\n        print(pool.map(double, [1, 2]))\n    plt.show()"
    )
    assert (await execute(librechat, code))["stdout"] == "[2, 4]\n"


async def test_the_program_of_a_client_that_goes_away_is_cancelled(service, librechat):
    app = librechat._transport.app
    body = json.dumps({"lang": "bash", "code": "sleep 120"}).encode()
    started = asyncio.Event()
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        if messages:
            return messages.pop()
        await started.wait()
        return {"type": "http.disconnect"}

    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/librechat/v1/exec",
        "raw_path": b"/librechat/v1/exec",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    request = asyncio.create_task(app(scope, receive, send))
    while not service.calls._running:  # noqa: ASYNC110 - the service has no event for it
        await asyncio.sleep(0.01)
    [key] = service.calls._running
    started.set()
    await request
    status = await service.calls.status(service.principal, key.tool_call_id, key.scope.conversation_id)
    assert status.status == "cancelled"
