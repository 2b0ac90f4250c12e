"""Attacks on secrets that the proxy sets for hosts: real TLS servers and clients on loopback, and no sandbox."""

import asyncio
import base64
import contextlib
import json
import ssl
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from proofbox.contracts.network import Endpoint
from proofbox.service.egress.call_authority import CallAuthority
from proofbox.service.egress.host_headers import HostHeaders
from tests.support.api_server import api_server, ok
from tests.support.certificates import context_of, issue, make_issuer
from tests.support.program_proxy import LIMITS, all_on, client_hello, program_proxy, with_extension
from tests.support.secret_hosts import HOST, OTHER, SECRET, VARIABLE, host_header, request, sandbox

VALUE = f"Bearer {SECRET}".encode()
PLACEHOLDER = f"placeholder-of-{VARIABLE}"


@pytest.fixture
def issuer(tmp_path):
    return make_issuer(tmp_path)


@pytest.fixture
async def server(issuer):
    """The host with the secret."""
    async with api_server(issuer.server_tls(HOST)) as running:
        yield running


@pytest.fixture
async def other(issuer):
    """Another host that the call may reach, which records all that it is sent."""
    async with api_server(issuer.server_tls(OTHER)) as running:
        yield running


@pytest.mark.parametrize(
    "lines",
    [
        (),
        (f"Authorization: Bearer {PLACEHOLDER}",),
        ("Authorization: Bearer own", "Authorization: Basic eA=="),
        ("aUTHORIZATION: Bearer own",),
        ("Authorization:",),
        ("Connection: authorization",),
        ("Connection: keep-alive, Authorization", "Authorization: Bearer own"),
        ("Proxy-Authorization: Bearer own",),
    ],
    ids=["none", "placeholder", "two", "spelling", "empty", "named-by-connection", "both", "of-the-proxy"],
)
async def test_a_host_gets_its_header_once_whatever_the_program_sends(issuer, server, lines):
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        program.send(request("/v1?a=b", *lines, "X-Kept: 1", port=server.port))
        assert (await program.response()).startswith(b"HTTP/1.1 204 ")
        entry = await box.ended()
    [came] = server.requests
    assert came.line == b"GET /v1?a=b HTTP/1.1"
    assert came.values("authorization") == [VALUE]
    assert came.values("host") == [f"{HOST}:{server.port}".encode()]
    assert came.values("accept-encoding") == [b"identity"]
    assert came.values("x-kept") == [b"1"]
    assert came.values("proxy-authorization") == []
    assert (entry.allowed, entry.tls_ended, entry.why, entry.address) == (True, True, None, "127.0.0.1")


async def test_another_allowed_host_gets_the_placeholder_and_its_tls_is_untouched(issuer, server, other):
    async with sandbox(issuer, [server.port, other.port]) as box:
        program = await box.inside(other.port, OTHER, issuer.client_tls())
        program.send(request("/", f"Authorization: Bearer {PLACEHOLDER}", host=OTHER, port=other.port))
        await program.response()
        entry = await box.ended()
    [came] = other.requests
    assert came.values("authorization") == [f"Bearer {PLACEHOLDER}".encode()]
    assert SECRET.encode() not in came.head
    assert entry.tls_ended is False


async def test_another_port_of_the_host_gets_no_secret(issuer, server):
    async with api_server(issuer.server_tls(HOST)) as beside, sandbox(issuer, [server.port, beside.port]) as box:
        program = await box.inside(beside.port, HOST, issuer.client_tls())
        program.send(request("/", port=beside.port))
        await program.response()
        entry = await box.ended()
    assert beside.requests[0].values("authorization") == []
    assert entry.tls_ended is False


async def test_a_redirect_to_another_host_carries_no_secret(issuer, server, other):
    async with sandbox(issuer, [server.port, other.port]) as box:
        location = f"https://{OTHER}:{other.port}/taken"
        server.answers["/"] = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
        program = await box.inside(server.port)
        sent = f"Authorization: Bearer {PLACEHOLDER}"
        program.send(request("/", sent, port=server.port))
        assert location.encode() in await program.response()
        followed = await box.inside(other.port, OTHER, issuer.client_tls())
        followed.send(request("/taken", sent, host=OTHER, port=other.port))
        await followed.response()
    assert other.requests[0].values("authorization") == [f"Bearer {PLACEHOLDER}".encode()]


@pytest.mark.parametrize(
    "hello",
    [
        client_hello(OTHER),
        client_hello(None),
        client_hello(f"{HOST}.evil.test"),
        with_extension(client_hello(HOST), 0xFE0D, bytes(200)),
        b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
        client_hello(HOST)[:80],
    ],
    ids=["other-name", "no-name", "longer-name", "encrypted", "plain", "cut-off"],
)
async def test_tls_for_another_name_than_the_host_of_the_secret_gets_no_answer(issuer, server, hello):
    async with sandbox(issuer, [server.port]) as box:
        _, reader, writer = await box.proxy.connect(f"{HOST}:{server.port}")
        writer.write(hello)
        writer.write_eof()
        assert await reader.read() == b"\x15\x03\x03\x00\x02\x02\x70"
        writer.close()
        entry = await box.ended()
    assert server.requests == []
    assert "CONNECT is for TLS only" in entry.why


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nHost: other.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: api.test:1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: api.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x@{host}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}, other.test\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n",
        "GET https://other.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET https://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET other.test:443 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET /a\r\nX-Injected: 1 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET /a\nX-Injected: 1 HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nX: a\rAuthorization: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nX: a\x00b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization : a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "POST / HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: +5\r\n\r\nabcde",
        "GET / HTTP/1.1\r\nHost: {host}\r\nX: " + "a" * 40_000 + "\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\x16\x03\x01\x00\x05\r\n\r\n",
    ],
    ids=[
        *("other-host", "two-hosts", "other-port", "no-port", "user", "host-list", "no-host-1.0", "no-host"),
        *("absolute-other", "absolute-same", "absolute-http", "authority-form", "star"),
        *("crlf-in-path", "lf-in-path", "space-in-path", "cr-in-value", "nul-in-value", "space-before-colon"),
        *("two-lengths", "lengths-differ", "unknown-coding", "signed-length", "long-head", "http-2", "tls-in-tls"),
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_never_reaches_the_host_of_the_secret(issuer, server, head):
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        got = await program.ask(head.format(host=f"{HOST}:{server.port}"))
        entry = await box.ended()
    assert server.requests == []
    assert got.startswith(b"HTTP/1.1 400 "), got
    assert got.count(b"HTTP/1.1 ") == 1
    assert entry.why
    assert SECRET not in entry.model_dump_json()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("TRACE / HTTP/1.1\r\nHost: {host}\r\n\r\n", b"405"),
        ("CONNECT / HTTP/1.1\r\nHost: {host}\r\n\r\n", b"405"),
        ("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", b"501"),
        ("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", b"501"),
    ],
    ids=["trace", "connect", "websocket", "h2c"],
)
async def test_methods_that_echo_or_leave_http_are_refused(issuer, server, head, status):
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        got = await program.ask(head.format(host=f"{HOST}:{server.port}"))
    assert server.requests == []
    assert got.split(b" ")[1] == status


async def test_http_2_is_not_offered(issuer, server):
    async with sandbox(issuer, [server.port]) as box:
        tls = box.trusted
        tls.set_alpn_protocols(["h2", "http/1.1"])
        program = await box.inside(server.port, HOST, tls)
        assert program.writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"


async def test_a_plain_request_to_host_and_port_of_a_secret_carries_none(issuer):
    async with api_server(None) as plain, sandbox(issuer, [plain.port]) as box:
        host = f"{HOST}:{plain.port}"
        head = f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nAuthorization: {PLACEHOLDER}\r\n\r\n"
        assert (await box.proxy.ask(head.encode())).startswith(b"HTTP/1.1 204 ")
    [came] = plain.requests
    assert came.values("authorization") == [PLACEHOLDER.encode()]


@pytest.mark.parametrize(
    ("name", "days", "why"),
    [
        (HOST, (-9, -2), "certificate has expired"),
        (HOST, (2, 9), "certificate is not yet valid"),
        (OTHER, (-1, 2), "Hostname mismatch"),
        ("*.test.evil", (-1, 2), "Hostname mismatch"),
    ],
    ids=["expired", "future", "other-name", "other-wildcard"],
)
async def test_a_host_whose_certificate_is_not_valid_gets_no_request(issuer, name, days, why):
    async with api_server(issuer.server_tls(name, days=days)) as server, sandbox(issuer, [server.port]) as box:
        head, _, writer = await box.proxy.connect(f"{HOST}:{server.port}")
        writer.close()
        entry = await box.ended()
    assert head.startswith(b"HTTP/1.1 502 ")
    assert why in entry.why
    assert entry.allowed is False
    assert server.requests == []


async def test_a_host_of_an_unknown_authority_gets_no_request(issuer, tmp_path_factory):
    stranger = make_issuer(tmp_path_factory.mktemp("stranger"))
    async with api_server(stranger.server_tls(HOST)) as server, sandbox(issuer, [server.port]) as box:
        head, _, writer = await box.proxy.connect(f"{HOST}:{server.port}")
        writer.close()
    assert head.startswith(b"HTTP/1.1 502 ")
    assert server.requests == []


async def test_a_host_without_tls_gets_no_request(issuer):
    async with api_server(None) as server, sandbox(issuer, [server.port]) as box:
        head, _, writer = await box.proxy.connect(f"{HOST}:{server.port}")
        writer.close()
    assert head.startswith(b"HTTP/1.1 502 ")
    assert server.requests == []


def echo_of(form):
    """A response that repeats the secret in its head and body, in pieces of one byte."""

    async def answer(_request, writer):
        writer.write(b"HTTP/1.1 200 It is " + form + b"\r\nX-Echo: a " + form + b" b\r\n")
        writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        for byte in b"<" + form + b">" + form:
            writer.write(b"1\r\n" + bytes([byte]) + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\nX-Trailer: " + form + b"\r\n\r\n")

    return answer


@pytest.mark.parametrize(
    ("form", "certain"),
    [
        (SECRET.encode(), slice(None)),
        (base64.b64encode(SECRET.encode()), slice(None)),
        (base64.b64encode(b"user:" + SECRET.encode() + b":more"), slice(7, 38)),
        (base64.urlsafe_b64encode(b"ab" + SECRET.encode()), slice(3, 34)),
    ],
    ids=["as-it-is", "base64", "base64-within", "base64-url"],
)
async def test_a_secret_that_the_host_repeats_is_masked(issuer, server, form, certain):
    server.answers["/"] = echo_of(form)
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        got = await program.ask(request("/", "Connection: close", port=server.port))
    core = form[certain]
    assert core not in got
    assert b"X-Trailer" not in got
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.count(b"*" * len(core)) == 2
    joined = b"".join(body.split(b"\r\n")[1::2])
    assert core not in joined
    assert joined.count(b"*" * len(core)) == 2


async def test_a_masked_response_has_its_length_and_its_connection_stays_open(issuer, server):
    body = json.dumps({"headers": {"Authorization": f"Bearer {SECRET}"}}).encode()
    server.answers["/"] = ok(body)
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        for _ in range(2):
            program.send(request("/", port=server.port))
            got = await program.response()
            assert got.endswith(body.replace(SECRET.encode(), b"*" * len(SECRET)))
    assert server.connections == 1


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, deflate"])
async def test_a_compressed_response_could_hide_the_secret_and_is_refused(issuer, server, coding):
    server.answers["/"] = ok(b"compressed", f"Content-Encoding: {coding}")
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        got = await program.ask(request("/", "Accept-Encoding: gzip", port=server.port))
    assert got.startswith(b"HTTP/1.1 502 the host compressed its response")
    assert not got.endswith(b"compressed")
    assert server.requests[0].values("accept-encoding") == [b"identity"]


async def test_a_response_without_a_body_may_name_a_coding(issuer, server):
    server.answers["/"] = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n"
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        program.send(request("/", port=server.port).replace("GET", "HEAD"))
        assert (await program.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_requests_in_a_row_are_answered_in_order_on_one_connection_to_the_host(issuer, server):
    async with sandbox(issuer, [server.port]) as box:
        for number in range(3):
            server.answers[f"/{number}"] = ok(b"answer %d" % number)
        program = await box.inside(server.port)
        heads = [request(f"/{number}", "Content-Length: 3", port=server.port) + "abc" for number in range(3)]
        program.send("".join(heads))
        for number in range(3):
            assert (await program.response()).endswith(b"answer %d" % number)
    assert server.connections == 1
    assert [came.body for came in server.requests] == [b"abc"] * 3
    assert all(came.values("authorization") == [VALUE] for came in server.requests)


async def test_a_request_in_the_body_of_another_stays_a_body(issuer, server):
    hidden = f"GET /admin HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        head = request("/", "Transfer-Encoding: chunked", port=server.port).replace("GET", "POST")
        program.send(f"{head}{len(hidden):x};x=1\r\n{hidden}\r\n0\r\nX-Trailer: 1\r\n\r\n")
        await program.response()
    [came] = server.requests
    assert came.body == hidden.encode()


async def test_a_second_response_is_not_the_answer_to_the_next_request(issuer, server):
    server.answers["/"] = ok(b"first") + ok(b"forged")
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        program.send(request("/", port=server.port))
        assert (await program.response()).endswith(b"first")
        program.send(request("/next", port=server.port))
        assert await program.reader.read() == b""
    assert [came.line for came in server.requests] == [b"GET / HTTP/1.1"]


async def test_a_host_that_closes_an_open_connection_ends_that_of_the_program(issuer, server):
    server.answers["/"] = ok(b"last", "Connection: close")
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        got = await program.ask(request("/", port=server.port))
    assert b"Connection: close\r\n" in got
    assert got.endswith(b"last")


async def test_a_program_that_waits_for_100_continue_is_asked_for_its_body(issuer, server):
    server.answers["/"] = ok(b"stored")
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        head = request("/", "Expect: 100-continue", "Content-Length: 3", port=server.port)
        program.send(head.replace("GET", "PUT"))
        assert (await program.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        program.send("abc")
        assert (await program.response()).endswith(b"stored")
    assert server.requests[0].body == b"abc"


@pytest.mark.parametrize("direction", ["down", "up"])
async def test_the_bytes_of_a_call_are_bounded_within_tls_too(issuer, server, direction):
    async def endless(_request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            await writer.drain()

    async def reads(_request, writer):
        await writer.wait_closed()

    server.answers["/"] = endless if direction == "down" else reads

    async with sandbox(issuer, [server.port], limits=replace(LIMITS, bytes_max=1_000_000)) as box:
        program = await box.inside(server.port)
        program.send(request("/", "Content-Length: 9000000", port=server.port))
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            if direction == "up":
                for _ in range(200):
                    program.send(bytes(65_536))
                    await program.writer.drain()
            await program.reader.readexactly(2_000_000)
        entry = await box.ended()
    assert "over 1000000 bytes" in entry.why
    assert entry.bytes_sent + entry.bytes_received <= 1_100_000


@pytest.mark.parametrize("ending", ["tunnel", "ended"])
async def test_bytes_within_tls_are_counted_once(issuer, server, other, ending):
    server.answers["/"] = other.answers["/"] = ok(bytes(300_000))
    host, to, tls = (HOST, server, None) if ending == "ended" else (OTHER, other, issuer.client_tls())
    async with sandbox(issuer, [server.port, other.port]) as box:
        program = await box.inside(to.port, host, tls)
        program.send(request("/", "Content-Length: 200000", host=host, port=to.port))
        program.send(bytes(200_000))
        await program.response()
        entry = await box.ended()
    assert entry.tls_ended is (ending == "ended")
    assert 200_000 < entry.bytes_sent < 220_000
    assert 300_000 < entry.bytes_received < 330_000


async def test_garbage_after_a_refusal_within_tls_ends_the_connection_with_its_reason(issuer, server):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    async with sandbox(issuer, [server.port]) as box:
        _, reader, writer = await box.proxy.connect(f"{HOST}:{server.port}")
        tls = box.trusted.wrap_bio(incoming, outgoing, server_hostname=HOST)

        async def until_done(step):
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                    incoming.write(await reader.read(65_536))

        await until_done(tls.do_handshake)
        tls.write(request("/", host=OTHER, port=server.port).encode())
        assert (await until_done(tls.read)).startswith(b"HTTP/1.1 400 ")
        writer.write(b"no TLS record " * 100)
        entry = await box.proxy.ended.get()
        writer.close()
    assert "names another host than CONNECT" in entry.why
    assert server.requests == []


async def test_a_further_connection_needs_no_thread(issuer, server):
    server.answers["/"] = ok(b"hello")
    begun, free = threading.Event(), threading.Event()

    def keep_busy():
        begun.set()
        free.wait(60)

    with ThreadPoolExecutor(1) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        async with sandbox(issuer, [server.port]) as box:
            first = await box.inside(server.port)
            first.send(request("/", port=server.port))
            await first.response()
            busy = threads.submit(keep_busy)  # with all threads of the service
            assert begun.wait(60)
            further = await box.inside(server.port)
            further.send(request("/", port=server.port))
            assert (await further.response()).endswith(b"hello")
            assert busy.running()
            free.set()


async def test_a_program_that_does_not_trust_the_proxy_sends_nothing_and_reads_how_to(issuer, server):
    async with sandbox(issuer, [server.port]) as box:
        with pytest.raises(ssl.SSLCertVerificationError):
            await box.inside(server.port, HOST, issuer.client_tls())
        entry = await box.ended()
    assert "SSL_CERT_FILE" in entry.why
    assert server.requests == []


async def test_a_sandbox_does_not_trust_the_authority_of_another_call(issuer, server):
    async with sandbox(issuer, [server.port]) as first, sandbox(issuer, [server.port]) as second:
        assert first.proxy.network.roots != second.proxy.network.roots
        with pytest.raises(ssl.SSLCertVerificationError):
            await second.inside(server.port, HOST, first.trusted)


async def test_the_authority_of_a_call_can_speak_for_no_other_host(tmp_path):
    authority = CallAuthority([HOST])
    with pytest.raises(KeyError):
        authority.context(OTHER)
    key = ec.generate_private_key(ec.SECP256R1())
    of_call = x509.load_pem_x509_certificate(authority.pem.encode())
    forged = issue(OTHER, key, of_call.subject, authority._key)
    trusting = ssl.create_default_context(cadata=authority.pem)
    async with api_server(context_of(tmp_path, key, forged)) as server:
        with pytest.raises(ssl.SSLCertVerificationError, match="permitted subtree violation"):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=trusting, server_hostname=OTHER)


async def test_neither_key_nor_secret_is_among_what_a_sandbox_is_given(issuer, server):
    async with sandbox(issuer, [server.port]) as box:
        network = box.proxy.network
        given = network.roots + json.dumps(dict(network.variables))
        assert "PRIVATE" not in given
        assert SECRET not in given
        assert network.variables[VARIABLE] == PLACEHOLDER
        assert SECRET not in repr(host_header(f"{HOST}:443"))


async def test_no_connection_however_it_ends_shows_secret_or_placeholder(issuer, server):
    server.answers["/echo"] = echo_of(SECRET.encode())
    server.answers["/broken"] = b"HTTP/1.1 200 OK\r\nX Y " + SECRET.encode() + b"\r\n\r\n"
    server.answers["/gone"] = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n" + SECRET.encode()
    )
    async with sandbox(issuer, [server.port]) as box:
        for path in ("/echo", "/broken", "/gone"):
            program = await box.inside(server.port)
            sent = f"Authorization: {PLACEHOLDER}"
            got = await program.ask(request(path, sent, "Connection: close", port=server.port))
            assert SECRET.encode() not in got
            program.writer.close()
        for _ in range(3):
            await box.proxy.ended.get()
        text = box.proxy.network.use.model_dump_json()
    assert SECRET not in text
    assert PLACEHOLDER not in text


async def test_a_call_of_another_tenant_has_no_secret_and_untouched_tls(issuer, server):
    own = HostHeaders([host_header(f"{HOST}:{server.port}", projects=(("acme", "*"),))])
    allow = [f"{HOST}:{server.port}"]
    foreign = own.of_call("evil", "acme", [Endpoint.parse(entry) for entry in allow])
    async with program_proxy(allow, all_on("127.0.0.1", HOST), secrets=(foreign, issuer.client_tls())) as proxy:
        assert VARIABLE not in proxy.network.variables
        assert proxy.network.roots == ""
        _, reader, writer = await proxy.connect(allow[0])
        await writer.start_tls(issuer.client_tls(), server_hostname=HOST)
        writer.write(request("/", port=server.port).encode())
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
    assert server.requests[0].values("authorization") == []


async def test_two_headers_of_one_host_are_both_set(issuer, server):
    second = host_header(f"{HOST}:{server.port}", variable="ORG", name="X-Org", secret="org-0123456789", prefix="")
    async with sandbox(issuer, [server.port], host_header(f"{HOST}:{server.port}"), second) as box:
        program = await box.inside(server.port)
        program.send(request("/", "X-Org: mine", port=server.port))
        await program.response()
    [came] = server.requests
    assert came.values("authorization") == [VALUE]
    assert came.values("x-org") == [b"org-0123456789"]


async def test_a_handshake_that_the_program_breaks_off_reaches_no_host(issuer, server):
    async with sandbox(issuer, [server.port]) as box:
        _, _, writer = await box.proxy.connect(f"{HOST}:{server.port}")
        writer.write(client_hello(HOST))
        writer.write_eof()
        entry = await box.proxy.ended.get()
        writer.close()
    assert "during its TLS handshake" in entry.why
    assert server.requests == []


async def test_an_early_answer_ends_the_connection_and_what_the_program_still_sends(issuer, server):
    async def early(_request, writer):
        writer.write(ok(b"too large"))
        await writer.drain()

    server.answers["/"] = early
    async with sandbox(issuer, [server.port]) as box:
        program = await box.inside(server.port)
        program.send(request("/", "Content-Length: 1000000", port=server.port))
        got = await program.response()
        assert b"Connection: close\r\n" in got
        assert got.endswith(b"too large")
        assert await program.reader.read() == b""
