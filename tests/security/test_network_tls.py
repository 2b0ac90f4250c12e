"""Attacks on CONNECT of a program's proxy: what else than TLS for the named host gets through. No sandbox."""

import ssl

import pytest

from tests.support.program_proxy import all_on, as_records, client_hello, listener, program_proxy, with_extension
from tests.support.web_server import certificate, response, web_server

HOST = "allowed.test"
_FATAL_UNRECOGNIZED_NAME = b"\x15\x03\x03\x00\x02\x02\x70"


@pytest.fixture
def tls(tmp_path):
    """A server's certificate for the allowed host, and a client that trusts it."""
    path = certificate(tmp_path, HOST)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    client = ssl.create_default_context(cafile=str(path))
    return server, client


async def sent_through(hello: bytes, host: str = HOST):
    """What a program gets that sends ``hello`` through CONNECT, what the host gets, and the entry of the ledger."""
    async with (
        listener() as (port, received),
        program_proxy([f"{HOST}:{port}"], all_on("127.0.0.1", HOST)) as proxy,
    ):
        head, reader, writer = await proxy.connect(f"{host}:{port}")
        assert head.startswith(b"HTTP/1.1 200 ")
        writer.write(hello)
        writer.write_eof()
        got = await reader.read()
        writer.close()
        return got, await received.get(), await proxy.ended.get()


async def test_tls_to_the_allowed_host_passes_untouched(tls):
    server_tls, client_tls = tls
    async with web_server(server_tls) as server:
        server.answers["/"] = response(b"hello")
        async with program_proxy([f"{HOST}:{server.port}"], all_on("127.0.0.1", HOST)) as proxy:
            _, reader, writer = await proxy.connect(f"{HOST}:{server.port}")
            await writer.start_tls(client_tls, server_hostname=HOST)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.read()).endswith(b"hello")
            writer.close()
            entry = await proxy.ended.get()
    assert (entry.host, entry.address, entry.allowed, entry.why) == (HOST, "127.0.0.1", True, None)
    assert entry.bytes_sent > 200
    assert entry.bytes_received > 500


@pytest.mark.parametrize(
    ("hello", "why"),
    [
        (client_hello("other.test"), "names other.test, CONNECT allowed.test"),
        (client_hello(None), "names no server"),
        (client_hello(f"{HOST}.evil.test"), f"names {HOST}.evil.test"),
        (with_extension(client_hello(HOST), 0xFE0D, bytes(200)), "encrypted"),
        (with_extension(client_hello(HOST), 0, b"\0\x0d\0\0\x0aother.test"), "twice"),
        (b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n", "for TLS only"),
        (b"SSH-2.0-client\r\n", "for TLS only"),
        (b"\x80\x2e\x01\0\x02" + bytes(60), "for TLS only"),
        (client_hello(HOST)[:60], "closed"),
        (b"\x16\x03\x01\0\0" * 1_000, "TLS"),
        (as_records(b"\x01\xff\xff\xff" + bytes(40_000)), "over 32768 bytes"),
        (client_hello(HOST) + b"\x16\x03\x01\0\x04\x01\0\0\0", None),
    ],
    ids=[
        "another-name",
        "no-name",
        "longer-name",
        "encrypted",
        "two-names",
        "plain-http",
        "ssh",
        "ssl-2",
        "cut-off",
        "empty-records",
        "endless",
        "second-hello",
    ],
)
async def test_connect_carries_tls_that_names_the_host_and_nothing_else(hello, why):
    got, received, entry = await sent_through(hello)
    if why is None:
        assert received == hello  # the host's own TLS refuses what follows
        return
    assert got == _FATAL_UNRECOGNIZED_NAME
    assert received == b""
    assert not entry.allowed
    assert why in entry.why


async def test_a_client_hello_that_is_cut_anywhere_is_read_as_a_whole():
    message = client_hello(HOST)[5:]
    _, received, entry = await sent_through(as_records(message, 16))
    assert received == as_records(message, 16)
    assert entry.allowed
