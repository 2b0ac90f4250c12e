"""examples/gateway/weather_agent.py as a newcomer runs it: a service, a scripted model and a server of its own."""

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from tests.support.served import REPOSITORY

pytestmark = pytest.mark.docker
PROGRAM = [sys.executable, str(REPOSITORY / "examples/gateway/weather_agent.py")]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    left_out = ("OPENAI_", "PROOFBOX_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return {**clean, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)}


OF_THE_USER = {
    "PROOFBOX_AUTH": "required",
    "PROOFBOX_URL": "https://box.example",
    "PROOFBOX_GATEWAY_PORTS": "no list",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
}
"""Settings of a service of the user's own, and proxies: nothing of the example is for them."""


@pytest.mark.slow
def test_it_approves_by_itself_and_ends(environment: dict[str, str], tmp_path: Path) -> None:
    command = [*PROGRAM, "--yes"]
    ran = subprocess.run(command, env=environment | OF_THE_USER, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    printed = ran.stdout.splitlines()
    assert re.fullmatch(r"open http://127\.0\.0\.1:\d+/spaces/spc_[0-9a-f]+#token=pbs_\S+", printed[0])
    assert [line.split()[1] for line in printed if line.startswith("calls ")] == [
        "get_weather",
        "show_chart",
        "tell_team",
        "send_message",
    ]
    assert printed[-2:] == [
        "the team was told: Thu is the warmest day in Oslo: 21 °C.",
        "the agent: Thu is the warmest day in Oslo: 21 °C. The team knows.",
    ]
    assert list(tmp_path.iterdir()) == []  # its folder is gone


def test_a_person_who_denies_is_heard(environment: dict[str, str]) -> None:
    piped = {"stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with subprocess.Popen(PROGRAM, env=environment, text=True, **piped) as ran:
        guard = threading.Timer(120, ran.kill)
        guard.start()
        assert ran.stdout is not None
        url, space, token = re.findall(r"open (\S+)/spaces/(\S+)#token=(\S+)", ran.stdout.readline())[0]
        for line in ran.stdout:
            if line.startswith("approval: "):
                break
        head = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=f"{url}/v1/spaces/{space}", headers=head, trust_env=False) as person:
            messages = person.get("/messages").json()["items"]
            states = [(each["tool"]["name"], each["tool"]["state"]) for each in messages if each["tool"]]
            assert states == [("get_weather", "done"), ("show_chart", "done"), ("tell_team", "waiting")]
            denied = {"result": {"approved": False, "reason": "not today"}}
            answer = person.post(f"/messages/{messages[-1]['message_id']}/result", json=denied)
            assert answer.status_code == 200, answer.text
        printed = ran.stdout.read()
        guard.cancel()
    assert ran.returncode == 0
    assert "the team was told" not in printed
    assert printed.splitlines()[-1] == "the agent: Thu is the warmest day in Oslo: 21 °C. The team was not told."
