import asyncio
import errno
import json
import logging
import re
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi import FastAPI

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.problems import Problem
from proofbox.service.api.app import create_app
from proofbox.service.errors import StoreFailedError
from proofbox.service.observability.log_format import JsonLines

ROUTE = "/v1/tool-calls"


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/tool-calls/", "/v1/tools/x", "/v1/conversations/c1/x", "/v2/tools", "/redoc"]
)
async def test_a_path_without_a_route_is_a_problem(client, path):
    answer = await client.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert Problem.model_validate_json(answer.content).code == "not_found"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("DELETE", "/v1/tools", "GET"),
        ("PUT", ROUTE, "GET, POST"),
        ("OPTIONS", ROUTE, "GET, POST"),
        ("TRACE", "/livez", "GET"),
        ("PATCH", f"{ROUTE}/t1", "DELETE, GET"),
        ("PATCH", "/v1/runs/claim", "POST"),
        ("PUT", "/v1/conversations/c1/timeline", "GET, POST"),
        ("POST", "/v1/conversations/c1/artifacts/x", "DELETE, GET, HEAD"),
    ],
)
@pytest.mark.shares_fixtures
async def test_a_method_that_a_route_does_not_take_is_a_problem_that_says_which_it_takes(
    client, method, path, allowed
):
    answer = await client.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


async def test_no_answer_lets_another_origin_read_it(client, call_body):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answers = [
        await client.options(ROUTE, headers=headers),
        await client.post(ROUTE, json=call_body, headers=headers),
        await client.get("/v1/tools", headers=headers),
    ]
    assert [name for answer in answers for name in answer.headers if name.startswith("access-control-")] == []


async def test_a_declared_body_that_is_too_large_is_refused(client, services, call_body):
    call_body["notes"] = "x" * services.body_bytes_max
    answer = await client.post(ROUTE, json=call_body)
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert str(services.body_bytes_max) in answer.json()["detail"]
    assert answer.headers["connection"] == "close"


async def test_a_chunked_body_is_refused_at_the_first_byte_too_many(client, services):
    sent = 0

    async def endless():
        nonlocal sent
        while True:
            sent += 10_000
            yield b" " * 10_000

    answer = await client.post(ROUTE, content=endless(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
    assert sent == services.body_bytes_max + 10_000


async def test_a_body_of_exactly_the_bound_is_read(client, services, call_body):
    body = json.dumps(call_body).encode()
    answer = await client.post(
        ROUTE, content=body.ljust(services.body_bytes_max), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200


async def test_a_client_that_waits_for_a_go_ahead_is_refused_before_it_sends(server):
    parts = urlsplit(server)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(
        b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_client_that_never_stops_sending_loses_its_connection(server):
    parts = urlsplit(server)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(
        b"POST /v1/tool-calls HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    lost = False
    while not lost:
        try:
            writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            await writer.drain()
        except ConnectionError:
            lost = True
    writer.close()
    assert lost


@pytest.fixture
def json_log(caplog, monkeypatch) -> pytest.LogCaptureFixture:
    """What is logged, as lines of JSON; the handler is that of the whole session."""
    monkeypatch.setattr(caplog.handler, "formatter", JsonLines())
    return caplog


@pytest.fixture
def broken_app(services) -> FastAPI:
    app = create_app(services)

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("the password is hunter2")

    return app


async def test_an_unforeseen_error_tells_nothing_but_the_log_has_it(broken_app, json_log):
    transport = httpx.ASGITransport(broken_app)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        with json_log.at_level(logging.INFO, "proofbox.api"):
            answer = await client.get("/broken", headers={"X-Request-ID": "find-me"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == "find-me"
    assert "hunter2" not in answer.text
    lines = [json.loads(line) for line in json_log.text.splitlines()]
    [logged] = [line for line in lines if line["level"] == "ERROR"]
    assert logged["request_id"] == "find-me"
    assert "hunter2" in logged["exception"]


@pytest.mark.parametrize("path", ["/livez", "/nowhere", "/v1/tool-calls/t9", "/openapi.json"])
async def test_a_sane_request_id_comes_back_on_every_answer(client, path):
    answer = await client.get(path, headers={"X-Request-ID": "Loop_7:call.3/b=+-1"})
    assert answer.headers["x-request-id"] == "Loop_7:call.3/b=+-1"


@pytest.mark.parametrize("given", ["", "a b", "a\tb", "x" * 129, "<script>", "-", '"', "ü"])
@pytest.mark.shares_fixtures
async def test_an_odd_request_id_is_replaced(client, given):
    answer = await client.get("/livez", headers={b"X-Request-ID": given.encode()})
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["x-request-id"])


async def test_each_request_leaves_one_line_with_its_route_status_and_id(client, json_log, call_body):
    with json_log.at_level(logging.INFO, "proofbox.api"):
        await client.post(ROUTE, json=call_body, headers={"X-Request-ID": "r1"})
        await client.get(
            "/v1/conversations/c1/artifacts/fi:turn_1.files/secret-name.txt", headers={"X-Request-ID": "r2"}
        )
        await client.get("/nowhere/%0aforged", headers={"X-Request-ID": "r3"})
    lines = [re.sub(r"\d+\.\dms", "0ms", record.getMessage()) for record in json_log.records]
    assert lines == [
        "POST /v1/tool-calls 200 0ms",
        "GET /v1/conversations/{conversation_id}/artifacts/{logical_path:path} 404 0ms",
        "GET - 400 0ms",
    ]
    assert [json.loads(line)["request_id"] for line in json_log.text.splitlines()] == ["r1", "r2", "r3"]


async def test_a_failure_of_ours_is_logged_with_its_cause(client, stores, caplog):
    await stores.artifacts.close()
    with caplog.at_level(logging.WARNING, "proofbox.api"):
        await client.put(
            "/v1/conversations/c1/turns/turn_1/attachments/a", content=b"", headers={"X-Request-ID": "r9"}
        )
    assert [record.getMessage() for record in caplog.records] == ["StoreFailedError: the artifact store is closed"]
    assert caplog.records[0].fields == {"conversation_id": "c1"}


async def test_the_line_of_a_download_that_breaks_names_conversation_file_and_reason(
    client, saved, json_log, tmp_path
):
    path = FilePath("turn_1", Namespace.FILES, "a.bin")
    stored = await saved(path, b"secret" * 400_000)
    blob = tmp_path / "data" / "blobs" / stored.sha256[:2] / stored.sha256
    blob.unlink()
    blob.write_bytes(b"Secret" * 400_000)
    url = f"/v1/conversations/c1/artifacts/{path.logical}"
    with json_log.at_level(logging.WARNING, "proofbox.api"):
        await client.get(url, headers={"X-Request-ID": "r1"})
        blob.unlink()
        await client.get(url, headers={"X-Request-ID": "r2"})
    lines = [json.loads(line) for line in json_log.text.splitlines()]
    about = {"conversation_id": "c1", "path": path.logical}
    assert [{name: line.get(name) for name in ("request_id", "cause", *about)} for line in lines] == [
        {"request_id": "r1", "cause": None, **about},
        {"request_id": "r2", "cause": "FileNotFoundError ENOENT", **about},
    ]
    assert [line["message"] for line in lines] == [
        "DamagedBytesError: the stored bytes of an artifact are damaged: their SHA-256 has changed",
        "DamagedBytesError: the stored bytes of an artifact are missing",
    ]
    assert "ecret" not in json_log.text


async def test_the_line_of_a_call_that_a_store_failed_names_call_and_conversation(
    client, calls, json_log, call_body, monkeypatch
):
    async def fail(*_given, **_named):
        raise StoreFailedError("the database is damaged") from OSError(errno.EIO, "of /secret/folder")

    monkeypatch.setattr(calls, "submit", fail)
    with json_log.at_level(logging.WARNING, "proofbox.api"):
        answer = await client.post(ROUTE, json=call_body)
    assert answer.status_code == 503
    line = json.loads(json_log.text.splitlines()[0])
    assert (line["call_id"], line["conversation_id"], line["cause"], line["message"]) == (
        call_body["tool_call_id"],
        call_body["conversation_id"],
        "OSError EIO",
        "StoreFailedError: the database is damaged",
    )
