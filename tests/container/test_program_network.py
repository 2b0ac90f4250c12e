"""Programs that may use the network, in sandboxes of both engines and under gVisor, with servers on loopback."""

import asyncio
import json
import resource
import ssl

import pytest
import pytest_asyncio

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.errors import NetworkNotAllowedError
from tests.container.calling import Caller
from tests.container.program_engines import engine_settings, program_engines
from tests.support.program_proxy import all_on
from tests.support.web_server import certificate, redirect, response, web_server

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

HOST = "files.test"
MIB = 1024 * 1024
GET = """
import sys, urllib.request
try:
    with urllib.request.urlopen({url!r}, timeout=60) as response:
        print(len(response.read()))
except OSError as exc:
    print("refused:", exc, getattr(exc, "fp", None) and exc.read().decode())
"""


class Box:
    """A service and the servers that its programs may reach."""

    def __init__(self, service, web, secure, ca):
        self.service, self.web, self.secure, self.ca = service, web, secure, ca
        self.call = Caller(service)

    def allow(self, server, host=HOST):
        return {"allow": [f"{host}:{server.port}"]}

    def url(self, server, path="/", host=HOST):
        return server.url(path, host)


async def endless(writer):
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(bytes(65_536))
        await writer.drain()


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=program_engines())
async def box(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    ca = certificate(folder, HOST)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca)
    async with web_server() as web, web_server(tls) as secure:
        ports = (web.port, secure.port)
        settings = Settings(
            **engine_settings(request),
            data_dir=folder / "data",
            pool_size=1,
            sandbox_network=tuple(f"{host}:{port}" for host in (HOST, "*.pool.test") for port in ports),
            sandbox_network_ranges=("127.0.0.0/8",),
        )
        names = all_on("127.0.0.1", HOST, "a.pool.test", "evil.test")
        service = build(settings, resolve=names)
        async with running(service):
            yield Box(service, web, secure, ca.read_text(encoding="ascii"))


async def test_a_program_reads_http_and_https_of_an_allowed_host(box):
    box.web.answers["/"] = box.secure.answers["/"] = response(b"x" * 1_000)
    allow = box.allow(box.web)["allow"] + box.allow(box.secure)["allow"]
    code = f"""
import requests
open("/tmp/ca.pem", "w").write({box.ca!r})
print(len(requests.get({box.url(box.web)!r}).content))
print(len(requests.get({box.url(box.secure)!r}, verify="/tmp/ca.pem").content))
"""
    answer = await box.call(code, network={"allow": allow})
    assert answer.output.stdout == "1000\n1000\n", answer.report
    [first, second] = answer.network.connections
    assert (first.host, first.port, first.address, first.allowed) == (HOST, box.web.port, "127.0.0.1", True)
    assert first.bytes_received > 1_000
    assert second.port == box.secure.port
    assert (answer.network.total, answer.network.refused) == (2, 0)
    events = [json.loads(event.data) for event in await box.call.events() if event.name == "connection"]
    assert [event["port"] for event in events] == [box.web.port, box.secure.port]


async def test_a_host_that_was_not_asked_for_reads_clearly_in_the_program_and_in_the_report(box):
    code = GET.format(url=f"https://evil.test:{box.secure.port}/")
    answer = await box.call(code, network=box.allow(box.web))
    sentence = f"evil.test:{box.secure.port} is not in network.allow of the call ({HOST}:{box.web.port})"
    assert f"403 {sentence}" in answer.output.stdout
    assert f"Note: Network: {sentence}" in answer.report
    assert (answer.network.total, answer.network.refused) == (1, 1)
    line = await box.service.provenance.line(box.service.principal, box.call.last_id, box.call.conversation)
    audited = json.loads(line.text)["network"]
    assert audited["allow"] == box.allow(box.web)["allow"]
    assert audited["connections"][0]["why"] == sentence


async def test_a_call_that_does_not_ask_has_no_proxy_and_no_variables(box):
    code = """
import os, socket
print([name for name in os.environ if "proxy" in name.lower()])
for port in (3128, 80):
    try:
        socket.create_connection(("127.0.0.1", port), 1)
    except OSError as exc:
        print(exc)
"""
    answer = await box.call(code)
    assert answer.output.stdout == "[]\n" + "[Errno 111] Connection refused\n" * 2
    assert answer.network is None


async def test_there_is_nothing_but_the_proxy(box):
    code = """
import os, socket
print(sorted(os.listdir("/sys/class/net")))
for kind, family, address in (
    ("tcp", socket.SOCK_STREAM, ("203.0.113.7", 443)),
    ("udp", socket.SOCK_DGRAM, ("203.0.113.7", 53)),
    ("link", socket.SOCK_STREAM, ("169.254.169.254", 80)),
):
    s = socket.socket(socket.AF_INET, family)
    s.settimeout(1)
    try:
        s.connect(address)
        print(kind, "connected")
    except OSError as exc:
        print(kind, exc.errno)
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
except OSError as exc:
    print("raw", exc.errno)
try:
    socket.getaddrinfo("files.test", 80)
except OSError as exc:
    print("dns", type(exc).__name__)
"""
    answer = await box.call(code, network=box.allow(box.web))
    lines = answer.output.stdout.splitlines()
    assert lines[0] == "['lo']"
    # No route: ENETUNREACH, and EHOSTUNREACH under gVisor.
    assert lines[1:4] in [[f"tcp {number}", f"udp {number}", f"link {number}"] for number in (101, 113)]
    assert lines[4].startswith("raw ")
    assert lines[5] == "dns gaierror"


async def test_a_redirect_to_a_private_address_is_refused(box):
    box.web.answers["/away"] = redirect("http://10.0.0.1:8080/secret")
    answer = await box.call(GET.format(url=box.url(box.web, "/away")), network=box.allow(box.web))
    assert "refused: HTTP Error 403" in answer.output.stdout
    assert "10.0.0.1:8080 is not in network.allow" in answer.report


async def test_a_large_download_and_upload_leave_the_memory_of_the_service_flat(box):
    size = 200 * MIB

    async def large(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // 65_536):
            writer.write(bytes(65_536))
            await writer.drain()

    box.secure.answers["/large"] = large
    code = f"""
import requests
open("/tmp/ca.pem", "w").write({box.ca!r})
got = 0
with requests.get({box.url(box.secure, "/large")!r}, verify="/tmp/ca.pem", stream=True) as response:
    for piece in response.iter_content(1 << 20):
        got += len(piece)
print(got)
"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await box.call(code, network=box.allow(box.secure))
    assert answer.output.stdout == f"{size}\n", answer.report
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 48 * 1024  # KiB
    assert answer.network.bytes_received > size


async def test_a_flood_that_the_program_does_not_read_is_held_back(box):
    box.web.answers["/endless"] = endless
    code = f"""
import socket, time
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"GET {box.url(box.web, "/endless")} HTTP/1.0\\r\\n\\r\\n")
print(s.recv(12))
time.sleep(2)
"""
    answer = await box.call(code, network=box.allow(box.web))
    assert answer.output.stdout == "b'HTTP/1.1 200'\n"
    assert answer.network.connections[0].bytes_received < 64 * MIB


async def test_a_flood_of_connections_ends_and_another_call_is_served_meanwhile(box):
    box.web.answers["/"] = response(b"fine")
    flood = """
import socket
made = 0
for _ in range(10_000):
    try:
        s = socket.create_connection(("127.0.0.1", 3128))
        s.sendall(b"CONNECT evil.test:443 HTTP/1.0\\r\\n\\r\\n")
        made += s.recv(12) == b"HTTP/1.1 403"
        s.close()
    except ConnectionError:
        break
print(made)
"""
    flooding = asyncio.ensure_future(Caller(box.service)(flood, network=box.allow(box.web)))
    answer = await box.call(GET.format(url=box.url(box.web)), network=box.allow(box.web))
    assert answer.output.stdout == "4\n"
    flooded = await flooding
    assert int(flooded.output.stdout) == 1_000
    assert len(flooded.network.connections) == 50
    assert flooded.network.total == 1_000
    assert "Network: the program tried 1000 connections, the most of a call" in flooded.report


async def test_open_connections_wait_for_a_place_and_are_closed_with_the_program(box):
    code = """
import socket
held = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(16)]
waits = socket.create_connection(("127.0.0.1", 3128))
waits.sendall(b"CONNECT evil.test:443 HTTP/1.0\\r\\n\\r\\n")
waits.settimeout(1)
try:
    print(waits.recv(12))
except TimeoutError:
    print("waits")
held.pop().close()
waits.settimeout(60)
print(waits.recv(12))
"""
    answer = await box.call(code, network=box.allow(box.web))
    assert answer.output.stdout == "waits\nb'HTTP/1.1 403'\n"


async def test_a_program_that_speaks_frames_to_the_proxy_gets_a_sentence(box):
    code = r"""
import socket, struct
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(struct.pack(">B16sI", 20, bytes(16), 4) + b"{}\r\n\r\n" + struct.pack(">B16sI", 34, bytes(16), 2**31))
print(s.recv(100).split(b" ")[:2])
"""
    answer = await box.call(code, network=box.allow(box.web))
    assert answer.output.stdout == "[b'HTTP/1.1', b'400']\n"


async def test_a_call_that_is_cancelled_in_a_download_closes_its_connections(box):
    is_closed = asyncio.Event()

    async def until_closed(writer):
        try:
            await endless(writer)
        finally:
            is_closed.set()

    box.web.answers["/cancelled"] = until_closed
    code = f"""
import urllib.request
with urllib.request.urlopen({box.url(box.web, "/cancelled")!r}) as response:
    print(len(response.read(1000)), flush=True)
    while response.read(1 << 16):
        pass
"""
    ticket = await box.call.submit(code, network=box.allow(box.web))
    async for event in await box.call.follow():
        if event.name == "stdout":
            break
    await box.service.calls.cancel(box.service.principal, box.call.last_id, box.call.conversation)
    assert (await ticket.answer()).is_problem
    async with asyncio.timeout(60):
        await is_closed.wait()
    line = await box.service.provenance.line(box.service.principal, box.call.last_id, box.call.conversation)
    assert json.loads(line.text)["network"]["connections"][0]["bytes_received"] > 1_000


@pytest.mark.slow
async def test_the_time_of_a_call_ends_its_connections(box):
    is_reached, is_closed = asyncio.Event(), asyncio.Event()

    async def until_closed(writer):
        is_reached.set()
        try:
            await endless(writer)
        finally:
            is_closed.set()

    box.web.answers["/slow"] = until_closed
    code = f"""
import urllib.request
with urllib.request.urlopen({box.url(box.web, "/slow")!r}) as response:
    while response.read(1 << 16):
        pass
"""
    for timeout_s in (2, 10, 50):  # a program of a busy machine may need more time until it connects
        answer = await box.call(code, timeout_s=timeout_s, network=box.allow(box.web))
        assert answer.error.code == "timeout"
        if is_reached.is_set():
            break
    assert answer.network.total == 1
    async with asyncio.timeout(60):
        await is_closed.wait()


async def test_files_are_collected_after_connections_that_were_left_open(box):
    box.web.answers["/left"] = endless
    code = f"""
import socket, subprocess, sys
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"GET {box.url(box.web, "/left")} HTTP/1.0\\r\\n\\r\\n")
s.recv(100)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=(s.fileno(),))
open("turn_1/files/a.csv", "w").write("a,b\\n1,2\\n")
"""
    answer = await box.call(code, contract=["a.csv"], network=box.allow(box.web))
    assert answer.ok, answer.report


@pytest.mark.parametrize("language", ["bash", "node"])
async def test_other_languages_have_the_proxy_too(box, language):
    code = {"bash": 'echo "$HTTPS_PROXY $http_proxy"', "node": "console.log(process.env.HTTPS_PROXY)"}[language]
    answer = await box.call(code, language=language, network=box.allow(box.web))
    assert answer.output.stdout.startswith("http://127.0.0.1:3128")


@pytest.mark.parametrize("entry", ["evil.test:80", "files.test:22", "*.test:80", "127.0.0.1:80", "pool.test:80"])
async def test_more_than_the_operator_allows_is_refused_before_anything_runs(box, entry):
    with pytest.raises(NetworkNotAllowedError) as refused:
        await box.call.submit("print(1)", network={"allow": [f"a.pool.test:{box.web.port}", entry]})
    [error] = refused.value.errors
    assert (error.field, error.code) == ("network.allow[1]", "network_not_allowed")
    assert entry in error.message


async def test_a_tool_that_runs_no_program_of_the_caller_refuses_a_network(box):
    request = ToolCallRequest.model_validate(
        {**box.call.body(None), "tool_id": "react.plan", "params": {}, "network": box.allow(box.web)}
    )
    with pytest.raises(NetworkNotAllowedError, match=r"^network: react\.plan runs no program"):
        await box.service.calls.submit(
            box.service.principal, request, idempotency_key=None, request_id="test", detached=False
        )
