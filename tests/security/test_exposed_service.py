"""The service as others reach it: keys, shares and bounds against a process of its own, over HTTP only."""

import asyncio
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from service_process import REPOSITORY, ServiceProcess, eventually, request, serving

pytestmark = pytest.mark.docker

WRITES = "open('out.txt', 'w').write('x')"
CALLS = "/v1/tool-calls"
MIB = 1024 * 1024
BODY_BYTES_MAX = 16 * MIB
CANARY = "canary-7f3a"
FLOOD = 300
HEAD_S = 5  # not less: so many clients on one busy core take their time to send


def proofbox(data_dir: Path, *arguments: str) -> Any:
    """What a command of the operator prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "proofbox.cli", *arguments, "--json"],
        cwd=REPOSITORY,
        env={**os.environ, "PROOFBOX_DATA_DIR": str(data_dir)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def bearer(key: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {key['secret']}"}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("doors") / "data"


@pytest.fixture(scope="module")
def loud(data_dir) -> dict[str, Any]:
    limit = ("--limit", "queued_calls=20", "--limit", "calls_per_minute=0")
    return proofbox(data_dir, "keys", "create", "--name", "loud", "--tenant", "loud", *limit)


@pytest.fixture(scope="module")
def quiet(data_dir) -> dict[str, Any]:
    scopes = ("--scopes", "calls:run,calls:read,artifacts:read,artifacts:write,timeline:read,metrics:read")
    return proofbox(data_dir, "keys", "create", "--name", "quiet", "--tenant", "quiet", *scopes)


@pytest.fixture(scope="module")
def keyed(data_dir, quiet, loud, engine) -> Iterator[ServiceProcess]:
    """A service that asks everybody for a key."""
    del loud  # made before the service starts, which knows a later key only after a moment
    settings = {
        "auth": "required",
        "running_max": 4,
        "pool_size": 2,
        "body_bytes_max": BODY_BYTES_MAX,
        "head_s": HEAD_S,
    }
    with serving(data_dir, engine, **settings) as process:
        process.client.headers.update(bearer(quiet))
        yield process


def test_a_service_that_others_could_reach_does_not_start_without_a_key(tmp_path, engine):
    exposed = ServiceProcess(tmp_path / "data", engine, host="0.0.0.0", pool_size=0)
    exposed.launch()
    assert exposed.wait() == 2
    assert "has no API key: create one with 'proofbox keys create --name <name>'" in exposed.log
    assert "Traceback" not in exposed.log
    exposed.set(auth="off")
    exposed.launch()
    assert exposed.wait() == 2
    assert "PROOFBOX_BEHIND_AUTHENTICATING_PROXY=true if a proxy in front decides who comes in" in exposed.log


def test_with_a_key_it_starts_and_lets_in_that_key_only(tmp_path, engine):
    key = proofbox(tmp_path / "data", "keys", "create", "--name", "first")
    with serving(tmp_path / "data", engine, host="0.0.0.0", pool_size=0) as exposed:
        url = f"http://127.0.0.1:{urlsplit(exposed.url).port}/v1/tools"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers=bearer(key)).status_code == 200
        readyz = url.replace("/v1/tools", "/readyz")
        assert eventually(lambda: httpx.get(readyz).status_code, lambda status: status == 200) == 200


@pytest.mark.slow
def test_keys_are_made_renewed_and_ended_while_the_service_runs(keyed, data_dir):
    def statuses(*keys: dict[str, Any]) -> list[int]:
        return [httpx.get(f"{keyed.url}/v1/tools", headers=bearer(key)).status_code for key in keys]

    made = proofbox(data_dir, "keys", "create", "--name", "short")
    assert eventually(lambda: statuses(made), lambda seen: seen == [200]) == [200]
    renewed = proofbox(data_dir, "keys", "rotate", made["id"], "--overlap", "1h")
    assert eventually(lambda: statuses(made, renewed), lambda seen: seen == [200, 200]) == [200, 200]
    last = proofbox(data_dir, "keys", "rotate", made["id"], "--overlap", "0s")
    assert eventually(lambda: statuses(made, renewed, last), lambda seen: seen == [401, 401, 200]) == [
        401,
        401,
        200,
    ]
    proofbox(data_dir, "keys", "revoke", made["id"])
    assert eventually(lambda: statuses(last), lambda seen: seen == [401]) == [401]


async def _flood(url: str, key: dict[str, Any], count: int) -> list[httpx.Response]:
    limits = httpx.Limits(max_connections=count, max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=url, headers=bearer(key), limits=limits, timeout=300) as client:
        return list(await asyncio.gather(*(client.post(CALLS, json=request(WRITES)) for _ in range(count))))


async def _one_after_another(url: str, key: dict[str, Any], count: int) -> list[httpx.Response]:
    async with httpx.AsyncClient(base_url=url, headers=bearer(key), timeout=300) as client:
        return [await client.post(CALLS, json=request(WRITES)) for _ in range(count)]


@pytest.mark.slow
async def test_hundreds_of_calls_of_one_tenant_at_once_are_felt_by_that_tenant_only(keyed, loud, quiet):
    flood = asyncio.ensure_future(_flood(keyed.url, loud, FLOOD))
    await asyncio.sleep(1)
    served = await _one_after_another(keyed.url, quiet, 10)
    answers = await flood
    assert [(answer.status_code, answer.json()["ok"]) for answer in served] == [(200, True)] * 10
    became = Counter(answer.status_code for answer in answers)
    assert set(became) == {200, 429}
    assert became[200] >= 20
    assert became[429] >= FLOOD // 2
    for refused in (answer for answer in answers if answer.status_code == 429):
        assert int(refused.headers["retry-after"]) >= 1
        assert refused.json()["errors"][0]["field"] == "queued_calls"
        assert "ratelimit-policy" in refused.headers
    assert all(answer.json()["ok"] for answer in answers if answer.status_code == 200)


def _memory_bytes(pid: int, name: str) -> int:
    [kib] = re.findall(rf"^{name}:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(kib) * 1024


def test_large_hostile_bodies_leave_the_memory_of_the_service_flat(keyed):
    def post(content: Any) -> int:
        headers = {"Content-Type": "application/json"}
        return keyed.client.post(CALLS, content=content, headers=headers).status_code

    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 65536

    room = BODY_BYTES_MAX - 100
    assert post(b"[" + b" " * room + b"]") == 422
    before = _memory_bytes(keyed.pid, "VmRSS")
    Path(f"/proc/{keyed.pid}/clear_refs").write_text("5")  # the peak is counted anew from here
    assert [post(b'{"a":[' + b"[]," * (room // 3) + b"[]]}") for _ in range(3)] == [422] * 3
    assert [post(b'{"a":' + b"[" * (room // 2) + b"]" * (room // 2) + b"}") for _ in range(3)] == [422] * 3
    assert [post(b'{"a":' + b"9" * room + b"}") for _ in range(3)] == [422] * 3
    assert post(b"x" * (BODY_BYTES_MAX + 1)) == 413
    for _ in range(3):
        with contextlib.suppress(httpx.WriteError):  # it may hang up on us while we are sending
            assert post(endless()) == 413
    assert _memory_bytes(keyed.pid, "VmHWM") - before < 6 * BODY_BYTES_MAX


def test_clients_that_never_end_their_heads_hold_up_nobody_and_are_let_go(keyed):
    parts = urlsplit(keyed.url)
    held = [socket.create_connection((str(parts.hostname), parts.port or 0)) for _ in range(300)]
    for number, connection in enumerate(held):
        connection.sendall(b"GET /v1/tools HTTP/1.1\r\nHost: x\r\n"[: 1 + number % 30])
    assert keyed.client.get("/v1/tools").status_code == 200
    for connection in held:
        connection.settimeout(60)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
        assert answer.startswith(b"HTTP/1.1 408 ")
        connection.close()


def test_no_secret_stands_in_a_log_a_problem_a_metric_or_the_documentation(keyed, quiet, loud):
    ask, said = keyed.client, []
    call = keyed.call(WRITES, "out.txt")
    path = f"/v1/conversations/{call['blocks'][0]['meta'].get('conversation_id', 'c')}/timeline"
    stored = ask.put("/v1/conversations/c9/turns/turn_1/attachments/a.txt", content=b"abc")
    link = ask.get(stored.headers["location"], params={"link": 1}).headers["location"]
    signature = link.rpartition("=")[2]
    bent = f"{quiet['secret'][:-1]}x"
    for answer in (
        httpx.get(f"{keyed.url}{link}"),
        httpx.get(f"{keyed.url}{link}0"),
        httpx.get(f"{keyed.url}{link.replace('expires=', 'expires=9')}"),
        httpx.get(f"{keyed.url}/v1/tools", headers={"Authorization": f"Bearer {bent}"}),
        httpx.get(f"{keyed.url}/v1/tools", headers={"Authorization": f"Basic {quiet['secret']}"}),
        ask.get("/v1/tools", headers={"Proofbox-Tenant": "other"}),
        ask.get(path),
        ask.post(CALLS, json={"tool_id": 1}),
        ask.post(CALLS, json=request(WRITES) | {"tool_id": "no.such"}),
        ask.get("/nowhere"),
        ask.get("/metrics"),
        ask.get("/openapi.json"),
        ask.get("/v1/conversations/c9/timeline"),
        ask.get("/v1/conversations/c9/sources"),
        httpx.get(f"{keyed.url}/metrics", headers=bearer(loud)),
    ):
        said += [answer.text, *answer.headers.values()]
    shown = "\n".join([keyed.log, *said, json.dumps(call)])
    secrets = [quiet["secret"], loud["secret"], bent, signature]
    secrets += [secret.rpartition("_")[2] for secret in secrets[:3]]
    secrets += [key["secret"] for key in json.loads((keyed.data_dir / "link-keys.json").read_text())["keys"]]
    assert [secret for secret in secrets if secret in shown] == []
    assert quiet["id"] in shown, "that a key was used is no secret"


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(
            {"database_url": f"postgresql://proofbox:{CANARY}@127.0.0.1:1/proofbox"},
            id="a database that is not there",
        ),
        pytest.param({"database_url": CANARY}, id="no URL", marks=pytest.mark.slow),
        pytest.param(
            {"s3_bucket": "b", "s3_endpoint": "http://127.0.0.1:1", "s3_access_key": "k", "s3_secret_key": CANARY},
            id="a bucket that is not there",
            marks=pytest.mark.slow,
        ),
        pytest.param({"s3_secret_key": CANARY}, id="half of a pair", marks=pytest.mark.slow),
    ],
)
def test_a_start_that_fails_does_not_tell_its_secrets(tmp_path, engine, settings):
    failing = ServiceProcess(tmp_path / "data", engine, pool_size=0, **settings)
    failing.launch()
    assert failing.wait() == 2
    assert "proofbox: " in failing.log
    assert CANARY not in failing.log
