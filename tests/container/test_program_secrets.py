"""Secrets of hosts, on both engines and under gVisor: the program has a placeholder, the host has the secret."""

import asyncio
import json
import resource

import pytest
import pytest_asyncio

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.identity import Principal
from tests.container.calling import Caller
from tests.container.program_engines import engine_settings, program_engines
from tests.support.api_server import api_server, ok
from tests.support.certificates import make_issuer
from tests.support.program_proxy import all_on
from tests.support.secret_hosts import HOST, OTHER, SECRET, VARIABLE

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

MIB = 1024 * 1024
BYTES_MAX = 300 * MIB
PLACEHOLDER = f"placeholder-of-{VARIABLE}"


class Box:
    """A service whose operator has a secret for a host, and that host and another one."""

    def __init__(self, service, server, other):
        self.service, self.server, self.other = service, server, other
        self.call = Caller(service)

    async def call_of_another_tenant(self, code):
        """The answer to a call of a tenant without secrets, as JSON."""
        stranger = Principal("other", "default", "registered", "eve")
        request = ToolCallRequest.model_validate(Caller(self.service).body(code, network=self.network))
        ticket = await self.service.calls.submit(
            stranger, request, idempotency_key=None, request_id="test", detached=False
        )
        return json.loads((await ticket.answer()).body)

    @property
    def url(self):
        return f"https://{HOST}:{self.server.port}"

    @property
    def network(self):
        return {"allow": [f"{HOST}:{self.server.port}", f"{OTHER}:{self.other.port}"]}


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=program_engines())
async def box(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    issuer = make_issuer(folder)
    (folder / "key").write_text(f"{SECRET}\n", encoding="ascii")
    async with api_server(issuer.server_tls(HOST)) as server, api_server(issuer.server_tls(OTHER)) as other:
        secret = {"hosts": [f"{HOST}:{server.port}"], "projects": ["default/*"], "prefix": "Bearer "}
        settings = Settings(
            **engine_settings(request),
            data_dir=folder / "data",
            pool_size=1,
            sandbox_network=(f"{HOST}:{server.port}", f"{OTHER}:{other.port}"),
            sandbox_network_ranges=("127.0.0.0/8",),
            sandbox_network_secrets={VARIABLE: {**secret, "file": folder / "key"}},
            sandbox_network_ca_file=issuer.path,
            sandbox_network_bytes_max=BYTES_MAX,
        )
        service = build(settings, resolve=all_on("127.0.0.1", HOST, OTHER))
        async with running(service):
            yield Box(service, server, other)


async def test_usual_clients_reach_the_host_with_the_secret_and_have_a_placeholder(box, caplog):
    box.server.requests.clear()
    box.server.answers["/"] = ok(b"hello")
    code = f"""
import os, urllib.request, requests
print(os.environ[{VARIABLE!r}])
sent = {{"Authorization": "Bearer " + os.environ[{VARIABLE!r}]}}
print(requests.get({box.url + "/"!r}, headers=sent).text)
print(urllib.request.urlopen(urllib.request.Request({box.url + "/"!r})).read())
with requests.Session() as session:
    print([session.get({box.url + "/"!r}).status_code for _ in range(3)])
"""
    answer = await box.call(code, network=box.network)
    assert answer.output.stdout == f"{PLACEHOLDER}\nhello\nb'hello'\n[200, 200, 200]\n", answer.report
    assert [came.values("authorization") for came in box.server.requests] == [[f"Bearer {SECRET}".encode()]] * 5
    assert [each.tls_ended for each in answer.network.connections] == [True] * 3
    [totals] = answer.network.hosts
    assert (totals.host, totals.connections, totals.refused) == (HOST, 3, 0)
    line = await box.service.provenance.line(box.service.principal, box.call.last_id, box.call.conversation)
    events = "".join(event.data for event in await box.call.events())
    assert SECRET not in line.text + events + answer.model_dump_json() + caplog.text
    assert PLACEHOLDER not in json.dumps(json.loads(line.text)["network"])


async def test_node_trusts_the_authority_of_its_call(box):
    box.server.requests.clear()
    box.server.answers["/"] = ok(b"hello")
    code = f"""
const http = require("http"), tls = require("tls"), path = "{HOST}:{box.server.port}";
http.request({{host: "127.0.0.1", port: 3128, method: "CONNECT", path, headers: {{Host: path}}}})
  .on("connect", (_, socket) => {{
    const inside = tls.connect({{socket, servername: "{HOST}"}}, () => {{
      inside.write("GET / HTTP/1.1\\r\\nHost: {HOST}:{box.server.port}\\r\\nConnection: close\\r\\n\\r\\n");
    }});
    inside.on("data", (data) => console.log(String(data).split("\\r\\n").at(-1)));
  }}).end();
"""
    answer = await box.call(code, language="node", network=box.network)
    assert answer.output.stdout.split() == ["hello"], answer.report
    assert box.server.requests[0].values("authorization") == [f"Bearer {SECRET}".encode()]


CHILD = """
import json, os, subprocess, sys
URL = {url!r}
CLIENTS = {{
    "urllib": "import urllib.request; print(urllib.request.urlopen(sys.argv[1]).status)",
    "requests": "import requests; print(requests.get(sys.argv[1]).status_code)",
    "certifi": "import requests, certifi; print(requests.get(sys.argv[1], verify=certifi.where()).status_code)",
}}
proxies = {{name: value for name, value in os.environ.items() if name.upper().endswith("_PROXY")}}
for client, variable in {pairs!r}:
    env = {{"PATH": os.environ["PATH"], **proxies, **({{variable: os.environ[variable]}} if variable else {{}})}}
    ran = subprocess.run([sys.executable, "-c", "import sys;" + CLIENTS[client], URL], env=env, capture_output=True)
    print(client, ran.stdout.decode().strip() or ran.stderr.decode().strip().splitlines()[-1])
"""


async def test_each_client_trusts_the_authority_by_the_variable_that_it_reads(box):
    box.server.answers["/"] = ok(b"hello")
    pairs = [("urllib", "SSL_CERT_FILE"), ("requests", "REQUESTS_CA_BUNDLE"), ("requests", "CURL_CA_BUNDLE")]
    answer = await box.call(CHILD.format(url=box.url + "/", pairs=pairs), network=box.network)
    assert answer.output.stdout == "urllib 200\nrequests 200\nrequests 200\n", answer.report
    assert [(each.tls_ended, each.why) for each in answer.network.connections] == [(True, None)] * 3


async def test_a_client_with_certificates_of_its_own_gets_no_answer_and_reads_which_file_to_trust(box):
    box.server.requests.clear()
    pairs = [("requests", "SSL_CERT_FILE"), ("certifi", "REQUESTS_CA_BUNDLE"), ("certifi", "")]
    answer = await box.call(CHILD.format(url=box.url + "/", pairs=pairs), network=box.network)
    lines = answer.output.stdout.splitlines()
    assert len(lines) == 3, answer.report
    assert all("CERTIFICATE_VERIFY_FAILED" in line for line in lines), lines
    assert box.server.requests == []
    [why] = {
        each.why for each in answer.network.connections if each.why
    }  # the program may end before its last alert
    assert why.endswith("let it trust the file that SSL_CERT_FILE names")
    assert f"Note: Network: {why}" in answer.report


async def test_neither_secret_nor_key_is_anywhere_in_the_sandbox(box):
    box.server.answers["/"] = ok(b"hello")
    code = f"""
import os, requests
requests.get({box.url + "/"!r})
wanted = [{SECRET[:12]!r}.encode() + {SECRET[12:]!r}.encode(), b"PRIVATE " + b"KEY"]
found = []
for top in ("/job", "/tmp", "/out", "/dev/shm", "/run", "/etc/ssl"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                content = open(os.path.join(folder, name), "rb").read()
            except OSError:
                continue
            found += [(folder, name) for each in wanted if each in content]
for pid in filter(str.isdigit, os.listdir("/proc")):
    for name in ("environ", "cmdline"):
        try:
            content = open(f"/proc/{{pid}}/{{name}}", "rb").read()
        except OSError:
            continue
        found += [(pid, name) for each in wanted if each in content]
try:
    open("/proc/1/mem", "rb").read(1)
    found.append("memory of process 1")
except OSError:
    pass
print(found, oct(os.stat("/job/ca-bundle.pem").st_mode & 0o777))
print(open("/job/ca-bundle.pem").read().count("BEGIN CERTIFICATE") > 100)
"""
    answer = await box.call(code, network=box.network)
    assert answer.output.stdout == "[] 0o444\nTrue\n", answer.report


async def test_a_second_call_does_not_trust_the_authority_of_the_first(box):
    code = """
import re
blocks = re.findall("-----BEGIN.*?-----END CERTIFICATE-----", open("/job/ca-bundle.pem").read(), re.DOTALL)
print(hash(blocks[-1]) and blocks[-1])
"""
    first = await box.call(code, network=box.network)
    second = await box.call(code, network=box.network)
    assert first.output.stdout.startswith("-----BEGIN CERTIFICATE-----")
    assert first.output.stdout != second.output.stdout
    without = await box.call("import os; print(os.path.exists('/job/ca-bundle.pem'), os.environ.get('API_KEY'))")
    assert without.output.stdout == "False None\n"


async def test_another_host_of_the_call_gets_the_placeholder_only(box):
    box.other.requests.clear()
    location = f"https://{OTHER}:{box.other.port}/taken"
    box.server.answers["/away"] = f"HTTP/1.1 307 Away\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
    code = f"""
import os, requests
sent = {{"Authorization": os.environ[{VARIABLE!r}], "X-Key": os.environ[{VARIABLE!r}]}}
print(requests.get({box.url + "/away"!r}, headers=sent).status_code)
"""
    answer = await box.call(code, network=box.network)
    assert answer.output.stdout == "204\n", answer.report
    [came] = box.other.requests
    assert came.values("x-key") == [PLACEHOLDER.encode()]
    assert SECRET.encode() not in came.head
    assert {each.host: each.tls_ended for each in answer.network.connections} == {HOST: True, OTHER: False}


async def test_a_host_that_repeats_the_secret_repeats_nothing_into_the_answer(box):
    async def echo(request, writer):
        writer.write(ok(request.head, f"X-Echo: {request.values('authorization')[0].decode()}"))
        await writer.drain()

    box.server.answers["/echo"] = echo
    code = f"""
import requests
response = requests.get({box.url + "/echo"!r})
print(response.headers["X-Echo"], response.text)
open("turn_1/files/echo.txt", "w").write(response.text)
"""
    answer = await box.call(code, contract=["echo.txt"], network=box.network)
    assert f"Bearer {'*' * len(SECRET)}" in answer.output.stdout
    assert SECRET not in answer.model_dump_json()
    assert SECRET not in await box.call.text("echo.txt")


async def test_a_call_of_another_tenant_has_neither_placeholder_nor_secret(box):
    box.server.requests.clear()
    code = f"""
import os, requests
print(os.environ.get({VARIABLE!r}))
print(requests.get({box.url + "/"!r}).status_code)
"""
    answer = await box.call_of_another_tenant(code)
    assert answer["output"]["stdout"].startswith("None\n"), answer["report"]
    assert [each["tls_ended"] for each in answer["network"]["connections"]] == [False]
    assert [came.values("authorization") for came in box.server.requests] == [[]]


async def test_the_flood_of_one_tenant_leaves_room_for_the_call_of_another(box):
    box.server.answers["/"] = ok(b"hello")
    flood = f"""
import socket
target = "{HOST}:{box.server.port}"
held = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(8)]
for s in held:
    s.sendall(f"CONNECT {{target}} HTTP/1.1\\r\\nHost: {{target}}\\r\\n\\r\\n".encode())
made = 0
for _ in range(2_000):
    try:
        with socket.create_connection(("127.0.0.1", 3128)) as s:
            s.sendall(b"CONNECT evil.test:443 HTTP/1.0\\r\\n\\r\\n")
            made += s.recv(12) == b"HTTP/1.1 403"
    except ConnectionError:
        break
print(made)
"""
    flooding = asyncio.ensure_future(box.call_of_another_tenant(flood))
    answer = await box.call(f"import requests; print(requests.get({box.url + '/'!r}).text)", network=box.network)
    assert answer.output.stdout == "hello\n", answer.report
    flooded = await flooding
    assert int(flooded["output"]["stdout"]) == 1_000 - 8


async def test_a_download_of_10_gb_ends_at_the_limit_of_a_call_and_the_report_has_the_reason(box):
    async def endless(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            await writer.drain()

    box.server.answers["/10gb"] = endless
    code = f"""
import requests
got = 0
try:
    with requests.get({box.url + "/10gb"!r}, stream=True) as response:
        for piece in response.iter_content(1 << 20):
            got += len(piece)
except requests.RequestException as exc:
    print(got > 250_000_000, type(exc).__name__)
"""
    answer = await box.call(code, network=box.network)
    assert answer.output.stdout.startswith("True "), answer.report
    assert f"moved over {BYTES_MAX} bytes, the operator's limit for a call" in answer.report
    assert answer.network.bytes_received <= BYTES_MAX


async def test_a_large_download_through_ended_tls_leaves_the_memory_of_the_service_flat(box):
    size = 200 * MIB

    async def large(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // 65_536):
            writer.write(bytes(65_536))
            await writer.drain()

    box.server.answers["/large"] = large
    code = f"""
import requests
got = 0
with requests.get({box.url + "/large"!r}, stream=True) as response:
    for piece in response.iter_content(1 << 20):
        got += len(piece)
print(got)
"""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = await box.call(code, network=box.network)
    assert answer.output.stdout == f"{size}\n", answer.report
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 48 * 1024  # KiB


async def test_a_flood_that_the_program_does_not_read_is_held_back_within_tls(box):
    written = 0

    async def endless(_request, writer):
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            written += 65_536
            await writer.drain()

    box.server.answers["/endless"] = endless
    code = f"""
import requests, time
response = requests.get({box.url + "/endless"!r}, stream=True)
print(len(response.raw.read(10)))
time.sleep(2)
"""
    async with asyncio.timeout(60):
        answer = await box.call(code, network=box.network)
    assert answer.output.stdout == "10\n", answer.report
    assert written < 64 * MIB
