"""No call waits for a disk or a database on the event loop: what its thread asks of the system is listed."""

import asyncio
import base64
import json
import socket
import time

import httpx
import pytest
import uvicorn

from proofbox.service.app import bootstrap as main
from proofbox.service.app.serving import http_config
from proofbox.service.app.settings import Settings
from tests.support.loop_watch import watched_loop
from tests.support.scripted_containers import ScriptedContainers

PYTHON = "exec_tools.execute_code_python"
TURN = "/v1/conversations/conv-1/turns/turn_1"


@pytest.fixture
async def client(tmp_path):
    """A client for another thread than that of the service."""
    service = main.build(Settings(data_dir=tmp_path / "data", asset_roots=(tmp_path,)), ScriptedContainers())
    config = http_config(service)
    server = uvicorn.Server(config)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        async with main.running(service):
            serving = asyncio.create_task(server.serve([door]))
            url = f"http://127.0.0.1:{door.getsockname()[1]}"
            with await asyncio.to_thread(httpx.Client, base_url=url) as client:
                yield client
            server.should_exit = True
            await serving


class Caller:
    """Calls of one conversation, each a turn of its own."""

    def __init__(self, client):
        self.client = client
        self.number = 1

    def call(self, tool_id, params, **fields):
        self.number += 1
        body = {
            "tool_id": tool_id,
            "tool_call_id": f"call_{self.number}",
            "conversation_id": "conv-1",
            "turn_id": f"turn_{self.number}",
            "params": params,
            **fields,
        }
        answer = self.client.post("/v1/tool-calls", json=body)
        assert (answer.status_code, answer.json()["ok"]) == (200, True), answer.text
        return answer.json()

    def run(self, files, promised, **fields):
        code = json.dumps({"stdout": "1", "files": files, "reads": fields.pop("reads", [])})
        return self.call(PYTHON, {"contract": promised}, code=code, **fields)


def promise(name, **more):
    return {"filename": name, "description": "a file", **more}


def print_only(caller, _folder):
    caller.run({}, [{"glob": "*.txt", "description": "notes", "min_count": 0}])


def files_out(caller, _folder):
    caller.run({"a.txt": 3_000, "b.bin": 30_000}, [promise("a.txt"), promise("b.bin", visibility="internal")])


def many_files_out(caller, _folder):
    caller.run({f"{n}.txt": 5_000 for n in range(40)}, [{"glob": "*.txt", "description": "x", "min_count": 40}])


def a_large_file_out(caller, _folder):
    caller.run({"large.tar": 20_000_000}, [promise("large.tar")])


def files_in(caller, folder):
    (folder / "asset.txt").write_bytes(b"asset")
    for name in ("one.csv", "two.csv"):
        caller.client.put(f"{TURN}/attachments/{name}", content=b"a,b\n" * 1_000)
    assets = [
        {"physical_path": "turn_1/files/text.txt", "text": "text"},
        {"physical_path": "turn_1/files/bytes.bin", "base64": base64.b64encode(bytes(300_000)).decode()},
        {"physical_path": "turn_1/files/uri.txt", "uri": (folder / "asset.txt").as_uri()},
    ]
    reads = ["turn_1/attachments/one.csv", "turn_1/attachments/two.csv", "turn_1/files/text.txt"]
    answer = caller.run({"a.txt": 10}, [promise("a.txt")], reads=reads, assets=assets)
    given = {
        "turn_1/attachments/one.csv",
        "turn_1/attachments/two.csv",
        *(each["physical_path"] for each in assets),
    }
    assert given <= {line["physical_path"] for line in answer["rehosted"]}


def a_file_that_is_cited(caller, _folder):
    caller.client.put(f"{TURN}/attachments/cited.csv", content=b"a,b\n").raise_for_status()
    caller.run({"a.txt": 10}, [promise("a.txt")], reads=["[[S:1]]"])


def a_file_that_is_read_patched_and_searched(caller, _folder):
    caller.run({"a.txt": 100}, [promise("a.txt")])
    path = f"fi:turn_{caller.number}.files/a.txt"
    caller.call("react.read", {"paths": [path]})
    caller.call("react.search_files", {"name_regex": "a"})
    caller.call("react.hide", {"path": path, "replacement": "gone"})


def attachments_and_downloads(caller, _folder):
    client = caller.client
    for name, size in (("small.txt", 10), ("large.bin", 3_000_000)):
        client.put(f"{TURN}/attachments/{name}", content=bytes(size)).raise_for_status()
        path = f"/v1/conversations/conv-1/artifacts/fi:turn_1.user.attachments/{name}"
        assert len((client.get(path)).content) == size


def what_others_ask(caller, _folder):
    client = caller.client
    caller.run({"a.txt": 100}, [promise("a.txt")])
    where = "/v1/conversations/conv-1"
    paths = [
        f"/v1/tool-calls/call_{caller.number}",
        f"/v1/tool-calls/call_{caller.number}/events",
        f"{where}/timeline",
        f"{where}/timeline?rendered=true",
        f"{where}/sources",
        "/readyz",
        "/v1/tools",
    ]
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)


def a_call_that_is_detached(caller, _folder):
    caller.number += 1
    body = {
        "tool_id": PYTHON,
        "tool_call_id": f"detached-{caller.number}",
        "conversation_id": "conv-1",
        "turn_id": "turn_9",
        "params": {"contract": [promise("a.txt")]},
        "code": json.dumps({"files": {"a.txt": 1}}),
    }
    accepted = caller.client.post("/v1/tool-calls", json=body, headers={"Prefer": "respond-async"})
    assert accepted.status_code == 202
    where = f"/v1/tool-calls/detached-{caller.number}"
    while caller.client.get(where).json()["status"] != "done":
        time.sleep(0.01)
    assert caller.client.delete(where).json()["status"] == "done"


SCENES = [
    print_only,
    files_out,
    many_files_out,
    a_large_file_out,
    files_in,
    a_file_that_is_cited,
    a_file_that_is_read_patched_and_searched,
    attachments_and_downloads,
    what_others_ask,
    a_call_that_is_detached,
]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_the_event_loop_does_nothing_that_blocks(client, tmp_path, scene):
    caller = Caller(client)
    # What happens once is no part of a call: imports, and the source of each route, which FastAPI reads.
    await asyncio.to_thread(scene, caller, tmp_path)
    with watched_loop() as seen:
        await asyncio.to_thread(scene, caller, tmp_path)
    assert sorted(set(seen)) == []


async def test_the_watch_sees_what_blocks_and_only_in_its_own_thread(tmp_path):
    with watched_loop() as seen:
        (tmp_path / "file").write_bytes(b"x")
        await asyncio.to_thread((tmp_path / "other").write_bytes, b"x")
    assert [each.partition(" ")[0] for each in seen] == [
        "io.open",
        "BufferedWriter.write",
        "BufferedWriter.__exit__",
    ]
