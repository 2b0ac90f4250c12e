"""Requests at the edge of what is allowed: refused by name or served, never an answer that blames the sandbox."""

import pytest
from service_process import request

pytestmark = pytest.mark.docker

WRITES = "open('out.txt', 'w').write('x')"


@pytest.mark.parametrize(
    "checks",
    [{"json_schema": {"enum": ["x" * 1_000_000]}}, {"columns": ["é" * 1000] * 200}],
    ids=["one large schema", "many columns"],
)
def test_a_contract_that_does_not_fit_the_way_to_the_sandbox_is_refused(service, checks):
    answer = service.call(WRITES, {"filename": "out.json", "description": "x", **checks})
    assert answer["error"]["code"] == "invalid_artifacts"
    assert "524288 are allowed" in answer["error"]["message"]


def test_two_hundred_long_promises_fit_the_way_to_the_sandbox(service):
    names = [f"{'é' * 120}/{'é' * 120}/{'é' * 120}/{n}.txt" for n in range(200)]
    answer = service.call("pass", *names)
    assert answer["error"]["code"] == "execution_failed"
    assert [artifact["verdict"] for artifact in answer["artifacts"]] == ["missing_file"] * 200


def test_a_thousand_assets_with_long_paths_reach_the_program(service):
    folder = "/".join(["é" * 120] * 3)
    told = service.probe(
        "import pathlib\ntold['files'] = sum(1 for p in pathlib.Path('files').rglob('*') if p.is_file())",
        assets=[{"physical_path": f"turn_1/files/{folder}/{n}.txt", "text": "x"} for n in range(1000)],
        params_prog_name="count",
    )
    assert told == {"files": 1000}


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b/c", "a"), ("x/a/b", "x/a")])
def test_an_asset_that_is_the_folder_of_another_is_refused(service, names):
    body = request(WRITES, assets=[{"physical_path": f"turn_1/files/{name}", "text": "x"} for name in names])
    refused = service.post(body)
    assert (refused.status_code, refused.json()["code"]) == (422, "asset_refused")


@pytest.mark.parametrize("first_a_file", [True, False])
def test_a_folder_in_place_of_an_earlier_file_does_not_end_the_calls_of_a_turn(service, first_a_file):
    as_file = (
        "import shutil\nshutil.rmtree('files/data', ignore_errors=True)\nopen('files/data', 'w').write('file')"
    )
    as_folder = (
        "import os\n"
        "if os.path.isfile('files/data'): os.unlink('files/data')\n"
        "os.mkdir('files/data'); open('files/data/x.txt', 'w').write('folder')"
    )
    steps = [(as_file, "data"), (as_folder, "data/x.txt")]
    conversation = f"turned_{first_a_file}"
    for code, promised in steps if first_a_file else reversed(steps):
        assert service.call(code, promised, conversation_id=conversation)["ok"] is True
    told = service.probe(
        "import os\ntold['data'] = 'file' if os.path.isfile('files/data') else os.listdir('files/data')",
        conversation_id=conversation,
    )
    assert told == {"data": ["x.txt"] if first_a_file else "file"}


@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**/" * 300 + "b", "**/a/" * 100 + "b"])
def test_a_pattern_that_would_make_an_expression_backtrack_is_answered(service, pattern):
    answer = service.call(
        "import os\n"
        "os.makedirs('files/' + 'a/' * 6)\n"
        "for n in range(200): open('files/' + 'a/' * (n % 6) + 'a' * (n + 30), 'w').write('x')",
        {"glob": pattern, "description": "matches nothing"},
    )
    assert answer["error"]["code"] == "execution_failed"
    assert [artifact["verdict"] for artifact in answer["artifacts"] if "*" in artifact["physical_path"]] == [
        "missing_file"
    ]


def test_a_program_that_fills_every_temporary_file_system_runs_out_of_memory_and_is_told_so(service):
    answer = service.call(
        "for folder in ('/dev/shm', '/out', '/tmp'):\n"
        "    with open(folder + '/fill', 'wb', buffering=0) as file:\n"
        "        try:\n            while True: file.write(bytes(65536))\n        except OSError: pass",
        "out.txt",
        limits={"memory_bytes": 64 << 20},
    )
    assert answer["error"]["code"] == "out_of_memory"


@pytest.mark.parametrize("prog_name", ["../../etc/x", "/job/../x", "\u202e\n\x1b", "x" * 200, "..", "-c"])
def test_a_program_is_run_under_any_name(service, prog_name):
    assert service.call(WRITES, "out.txt", params_prog_name=prog_name)["ok"] is True
