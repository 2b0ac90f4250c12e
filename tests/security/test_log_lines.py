"""The log of the service as it is shipped: no line can be forged, no secret gets in."""

import hashlib
import json
import socket
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from service_process import ServiceProcess, eventually, request, serving

pytestmark = pytest.mark.docker

SECRET = "canary-4c1f7be29a"
FORGED = (
    '{"timestamp": "2026-11-22T00:00:00.000Z", "level": "INFO", "logger": "proofbox.audit", "message": "forged"}'
)
BREAKS = ("\n", "\r", "\u2028", "\x85", "\x1b[2K")


@pytest.fixture(scope="module", params=["text", pytest.param("json", marks=pytest.mark.slow)])
def service(request, tmp_path_factory, engine) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("logged") / "data"
    with pytest.MonkeyPatch.context() as patch, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # the receiver of traces refuses: its client complains into the log
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        patch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer%20{SECRET}")
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        patch.setenv("NO_PROXY", "127.0.0.1")
        with serving(folder, engine, pool_size=1, log_format=request.param) as process:
            attack(process)
            yield process


def attack(service: ServiceProcess) -> None:
    """Everything that a stranger can put into a name, a header, a program or a path."""
    for number, end in enumerate(BREAKS):
        name = f"a{end}{FORGED}"
        code = f"import os\n# {SECRET}\nprint({SECRET!r})\nopen('files/out.txt', 'w').write({SECRET!r})\n"
        code += (
            f"try:\n    open({('files/' + name.replace('/', '-'))!r}, 'w').write('x')\nexcept ValueError: pass\n"
        )
        body = request(code + f"raise ValueError({name!r})", "out.txt", {"filename": name, "description": name})
        body["notes"] = name + SECRET
        service.post(body)
        service.post(request(code, "out.txt", notes=SECRET), **{"X-Request-ID": f"req-{number}"})
        headers = {
            "X-Request-ID": f"r {FORGED}",
            "Authorization": f"Bearer {SECRET}",
            "Cookie": SECRET,
            "User-Agent": f"x {FORGED}",
            "Idempotency-Key": SECRET,
        }
        service.client.get("/v1/tools", headers=headers)
        service.client.get(f"/v1/tool-calls/{number}", params={"conversation_id": name, "key": SECRET})
        path = f"/v1/conversations/c1/turns/turn_1/attachments/{quote(name, safe='')}"
        service.client.put(path, content=SECRET.encode())
        service.client.put(f"{path}?key={SECRET}", content=b"x")
    host, port = service.url.removeprefix("http://").split(":")
    for line in (
        f"GET /{FORGED} HTTP/9.9\r\n\r\n",
        f"{FORGED}\r\n\r\n",
        f"M\x1b / HTTP/1.1\r\nHost: {SECRET}\r\n\r\n",
    ):
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(line.encode())
            connection.settimeout(60)
            connection.recv(1000)


def test_no_line_is_forged(service):
    log = service.log[: service.log.rfind("\n") + 1]  # it may be writing a line
    if not log.startswith("{"):
        starts = [line for line in log.split("\n") if line and not line.startswith("    | ")]
        assert [line for line in starts if not line[:24].endswith("Z") or line.startswith("{")] == []
        assert "\x1b" not in log
        assert len(log.splitlines()) == len(log.rstrip("\n").split("\n"))
        return
    lines = [json.loads(line) for line in log.splitlines()]
    assert [line for line in lines if line["message"] == "forged"] == []
    assert [line for line in lines if not {"timestamp", "level", "logger", "message"} <= set(line)] == []
    assert log.isascii()


def test_no_secret_is_in_the_log(service):
    complained = eventually(lambda: "opentelemetry" in service.log, bool)
    assert (complained, SECRET in service.log) == (True, False)


def test_the_lines_of_a_request_and_of_its_call_have_their_names(service):
    audited(service)
    if not service.log.startswith("{"):
        assert " request_id=req-0" in service.log
        return
    lines = [json.loads(line) for line in service.log.splitlines()]
    # The client is answered first, then both are logged: which one first is open.
    mine = sorted(
        (line for line in lines if line.get("request_id") == "req-0"), key=lambda line: str(line["logger"])
    )
    assert [line["logger"] for line in mine] == ["proofbox.api", "proofbox.audit"]
    served, audit = mine
    said = json.loads(audit["message"])
    assert hashlib.sha256(audit["message"].encode()).hexdigest() == audit["audit_sha256"]
    assert (said["call"]["request_id"], said["outcome"]["code"]) == ("req-0", "ok")
    assert (audit["call_id"], audit["conversation_id"]) == (
        said["call"]["tool_call_id"],
        said["call"]["conversation_id"],
    )
    assert audit["trace_id"] == served["trace_id"] == said["call"]["traceparent"][3:35]
    assert (served["method"], served["route"], served["status"]) == ("POST", "/v1/tool-calls", 200)


def test_every_call_that_was_answered_is_in_the_log_once(service):
    assert audited(service) == 2 * len(BREAKS)


def audited(service: ServiceProcess) -> int:
    """How many audit lines are in the log: those that are expected, or what came until patience ended."""
    return eventually(lambda: service.log.count("proofbox-audit-1"), lambda found: found >= 2 * len(BREAKS))
