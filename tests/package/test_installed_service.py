"""The installed package in an empty folder: doctor, serve and one call, as the first steps of a new user."""

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.slow]
START_S = 60


@pytest.fixture(scope="module")
def environment(installed):
    """The environment of the tests without their settings and their packages, for the engine docker."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PROOFBOX_", "PYTHON"))}
    return kept | {"PATH": f"{installed / 'bin'}:{kept['PATH']}", "PROOFBOX_POOL_SIZE": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("empty")


@pytest.fixture
def run(environment, folder):
    def run(*command):
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


@contextlib.contextmanager
def serving(environment, folder):
    address = folder / "address"
    address.unlink(missing_ok=True)
    environment = {**environment, "PROOFBOX_ADDRESS_FILE": str(address)}
    process = subprocess.Popen(["proofbox", "serve", "--port", "0"], cwd=folder, env=environment)
    try:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{address.read_text().strip()}/readyz"):
                break
            time.sleep(0.1)
        yield address.read_text().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_S) == 0


def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_the_program_knows_its_version(run):
    done = run("proofbox", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, "proofbox 0.1.0\n", "")


def test_doctor_finds_nothing_wrong_and_runs_a_program(run):
    done = run("proofbox", "doctor", "--json")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"]) == (0, True), done.stdout
    checks = {check["name"]: check["detail"] for check in answer["checks"]}
    assert checks["extras"].startswith("not installed: memory, gateway, s3, postgres, packages, nats, otlp")
    assert "printed 42" in checks["sandbox"]


def test_the_image_is_found_by_its_name(run):
    shown = json.loads(run("proofbox", "image", "show", "--json").stdout)
    assert shown["is_present"] is True
    assert run("proofbox", "image", "name").stdout.strip() == shown["reference"]


def test_an_up_to_date_image_is_not_built_again(run):
    done = run("proofbox", "image", "build")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.rstrip().endswith("up to date")


def test_a_service_answers_a_call_with_what_the_program_printed_and_its_file(environment, folder):
    code = "open('files/squares.csv', 'w').write('n,square\\n2,4\\n')\nprint(6 * 7)"
    contract = [{"filename": "squares.csv", "description": "squares", "columns": ["n", "square"]}]
    body = {"tool_id": "exec_tools.execute_code_python", "tool_call_id": "call_1", "conversation_id": "c1"}
    body |= {"turn_id": "turn_1", "params": {"contract": contract}, "code": code}
    with serving(environment, folder) as url:
        answer = post(f"{url}/v1/tool-calls", body)
        with urllib.request.urlopen(f"{url}/v1/conversations/c1/artifacts/fi:turn_1.files/squares.csv") as file:
            content = file.read()
        with urllib.request.urlopen(f"{url}/docs/site") as page:
            site = page.read()
        with urllib.request.urlopen(f"{url}/v1/tools") as tools:
            listed = json.load(tools)
    assert (answer["ok"], answer["output"]["stdout"]) == (True, "42\n")
    assert content == b"n,square\n2,4\n"
    assert b"<p>" in site
    assert list(listed["absent"]) == ["react.memsearch"]
    assert "react.memsearch" not in [tool["tool_id"] for tool in listed["tools"]]
