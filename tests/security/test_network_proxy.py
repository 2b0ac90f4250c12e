"""Attacks on the proxy of a program's network: real clients and servers on loopback, and no sandbox."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from tests.support.program_proxy import (
    LIMITS,
    Names,
    Program,
    all_on,
    call_network,
    client_hello,
    listener,
    program_proxy,
)
from tests.support.web_server import redirect, response, web_server

HOST = "allowed.test"


@pytest.mark.parametrize(
    "target",
    [
        "127.0.0.1:{port}",
        "2130706433:{port}",
        "0x7f000001:{port}",
        "0x7f.1:{port}",
        "127.1:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "[::1]:{port}",
        "allowed.test.:{port}",
        "user@allowed.test:{port}",
        "allowed.test@127.0.0.1:{port}",
        "*.test:{port}",
        "allowed.test",
        "allowed.test:0",
        "allowed.test:99999",
        "allowed.test:{port}/",
        "http://allowed.test:{port}",
        "allowed%2etest:{port}",
        "evil.test:{port}",
        "allowed.test:22",
        "xallowed.test:{port}",
        "allowed.test.evil.test:{port}",
        "localhost:{port}",
    ],
)
async def test_only_an_exact_host_and_port_of_the_list_is_connected_to(target):
    async with listener() as (port, received):
        names = all_on("127.0.0.1", HOST, "evil.test", "xallowed.test", f"{HOST}.evil.test", "localhost")
        async with program_proxy([f"{HOST}:{port}"], names) as proxy:
            got = await proxy.ask(f"CONNECT {target.format(port=port)} HTTP/1.0\r\n\r\n".encode())
            entry = await proxy.ended.get()
        assert received.empty()
    assert got.startswith((b"HTTP/1.1 403 ", b"HTTP/1.1 400 "))
    assert entry.why
    assert not entry.allowed
    assert names.asked == []


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("a.pool.test", True),
        ("a.b.pool.test", True),
        ("pool.test", False),
        ("evilpool.test", False),
        (".pool.test", False),
    ],
)
async def test_a_wildcard_stands_for_names_below_and_for_nothing_else(host, allowed):
    async with web_server() as server:
        server.answers["/"] = response(b"hello")
        names = all_on("127.0.0.1", "a.pool.test", "a.b.pool.test", "pool.test", "evilpool.test")
        async with program_proxy([f"*.pool.test:{server.port}"], names) as proxy:
            got = await proxy.ask(f"GET http://{host}:{server.port}/ HTTP/1.0\r\n\r\n".encode())
    assert got.endswith(b"hello") is allowed
    assert bool(server.requests) is allowed


@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.1"],
        ["169.254.169.254"],
        ["100.100.100.200"],
        ["::1"],
        ["::ffff:10.0.0.1"],
        ["fd00::1"],
        ["0.0.0.0"],
        ["127.0.0.1"],
        ["93.184.216.34", "192.168.1.1"],
    ],
)
async def test_an_allowed_name_at_a_private_address_is_refused_and_the_address_is_not_shown(addresses):
    names = Names({HOST: [addresses]})
    async with program_proxy([f"{HOST}:80"], names, opened=()) as proxy:
        got = await proxy.ask(f"GET http://{HOST}/ HTTP/1.0\r\n\r\n".encode())
        entry = await proxy.ended.get()
    assert got.startswith(b"HTTP/1.1 403 allowed.test:80: it is not on the public internet")
    assert not any(address.encode() in got for address in addresses)
    assert entry.address is None


async def test_a_name_that_changes_after_the_check_changes_nothing():
    async with web_server() as server:
        server.answers["/"] = response(b"hello")
        names = Names({HOST: [["127.0.0.1"], ["10.0.0.1"]]})
        async with program_proxy([f"{HOST}:{server.port}"], names) as proxy:
            request = f"GET http://{HOST}:{server.port}/ HTTP/1.0\r\n\r\n".encode()
            assert (await proxy.ask(request)).endswith(b"hello")
            assert names.asked == [HOST]
            assert (await proxy.ask(request)).startswith(b"HTTP/1.1 403 ")


async def test_a_redirect_is_the_programs_to_follow_and_its_target_is_checked():
    async with web_server() as server:
        server.answers["/"] = redirect(f"http://inside.test:{server.port}/secret")
        server.answers["/secret"] = response(b"secret")
        names = Names({HOST: [["127.0.0.1"]], "inside.test": [["10.0.0.1"]]})
        allow = [f"{HOST}:{server.port}", f"inside.test:{server.port}"]
        async with program_proxy(allow, names) as proxy:
            got = await proxy.ask(f"GET http://{HOST}:{server.port}/ HTTP/1.0\r\n\r\n".encode())
            assert b"inside.test" in got
            second = await proxy.ask(f"GET http://inside.test:{server.port}/secret HTTP/1.0\r\n\r\n".encode())
    assert second.startswith(b"HTTP/1.1 403 ")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "head",
    [
        "POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        "POST {url} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "GET {url} HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "GET {url} HTTP/1.1\r\nHost: {host}\r\nHost: other.test\r\n\r\n",
        "GET {url} HTTP/1.1\r\n\r\n",
        "GET {url} HTTP/1.1\r\nHost: {host}\r\nX: a\r\n b: c\nEvil : d\r\n\r\n",
        "GET {url} HTTP/1.1\r\nHost : {host}\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET https://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET ftp://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET http://user:pass@{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "GET http://allowed.test:0/ HTTP/1.0\r\n\r\n",
        "GET http://{host}\\@other.test/ HTTP/1.1\r\nHost: {host}\r\n\r\n",
        "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 3\r\n\r\nabc",
        "CONNECT {host} HTTP/1.1\r\nHost: other.test\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET {url} HTTP/1.1\r\nHost: {host}\r\nX: " + "a" * 40_000 + "\r\n\r\n",
        "\x00\x01\x02\r\n\r\n",
    ],
    ids=[
        "two-lengths",
        "lengths-differ",
        "unknown-coding",
        "other-host",
        "two-hosts",
        "no-host",
        "folded",
        "space-name",
        "origin-form",
        "https",
        "ftp",
        "password",
        "port-0",
        "backslash",
        "connect-body",
        "connect-host",
        "http-2",
        "long-head",
        "binary",
    ],
)
async def test_a_request_that_can_be_read_in_two_ways_reaches_no_host(head):
    async with listener() as (port, received):
        host = f"{HOST}:{port}"
        async with program_proxy([host], all_on("127.0.0.1", HOST, "other.test")) as proxy:
            got = await proxy.ask(head.format(url=f"http://{host}/", host=host).encode("latin-1"))
            entry = await proxy.ended.get()
        assert received.empty()
    assert got.startswith(b"HTTP/1.1 400 "), got
    assert got.count(b"HTTP/1.1 400 ") == 1
    assert entry.why


async def test_a_client_that_speaks_tls_to_the_proxy_itself_is_refused():
    async with program_proxy([f"{HOST}:443"], all_on("127.0.0.1", HOST)) as proxy:
        assert (await proxy.ask(client_hello(HOST) + b"\r\n\r\n")).startswith(b"HTTP/1.1 400 ")


async def test_a_second_request_on_a_connection_reaches_no_host():
    async with web_server() as server:
        server.answers["/"] = response(b"one")
        host = f"{HOST}:{server.port}"
        async with program_proxy([host], all_on("127.0.0.1", HOST)) as proxy:
            one = f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"
            got = await proxy.ask((one + one.replace("/ HTTP", "/admin HTTP")).encode())
    assert got.lower().count(b"connection: close") == 1
    assert got.endswith(b"one")
    assert len(server.requests) == 1


async def test_headers_of_the_connection_and_of_the_proxy_stay_here():
    async with web_server() as server:
        server.answers["/a?b"] = response(b"one")
        host = f"{HOST}:{server.port}"
        async with program_proxy([host], all_on("127.0.0.1", HOST)) as proxy:
            await proxy.ask(
                f"GET http://{host}/a?b HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic x\r\n"
                "Upgrade: h2c\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nTE: trailers\r\n"
                "X-Kept: 1\r\n\r\n".encode()
            )
    [head] = server.requests
    lines = head.lower().split("\r\n")
    assert lines[0] == "get /a?b http/1.1"
    assert sorted(line.split(":")[0] for line in lines[1:] if line) == ["connection", "host", "x-kept"]
    assert "connection: close" in lines


async def test_the_chunks_of_a_body_are_written_anew():
    received = asyncio.Queue()

    async def answer(reader, writer):
        received.put_nowait(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(response(b"one"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        host = f"{HOST}:{server.sockets[0].getsockname()[1]}"
        async with program_proxy([host], all_on("127.0.0.1", HOST)) as proxy:
            got = await proxy.ask(
                f"POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
                '3;x="GET /admin HTTP/1.1"\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n'.encode()
            )
    assert got.endswith(b"one")
    assert (await received.get()).partition(b"\r\n\r\n")[2] == b"3\r\nabc\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nContent-Length: 8\r\n\r\n",
        b"",
        b"HTTP/1.1 101 S\r\n\r\n",
    ],
)
async def test_a_host_that_does_not_speak_http_ends_the_connection_with_a_reason(answer):
    async with web_server() as server:
        server.answers["/"] = answer
        host = f"{HOST}:{server.port}"
        async with program_proxy([host], all_on("127.0.0.1", HOST)) as proxy:
            got = await proxy.ask(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            entry = await proxy.ended.get()
    assert got.startswith(b"HTTP/1.1 502 the host ")
    assert entry.why.startswith("the host ")


async def test_a_call_makes_so_many_connections_and_no_more():
    async with web_server() as server:
        server.answers["/"] = response(b"one")
        host = f"{HOST}:{server.port}"
        limits = replace(LIMITS, connections_max=3)
        async with program_proxy([host], all_on("127.0.0.1", HOST), limits=limits) as proxy:
            answers = [await proxy.ask(f"GET http://{host}/ HTTP/1.0\r\n\r\n".encode()) for _ in range(5)]
            for _ in answers:
                await proxy.ended.get()
    assert [answer.split(b" ")[1] for answer in answers] == [b"200", b"200", b"200", b"403", b"403"]
    assert b"has made its 3 connections" in answers[-1]
    assert len(server.requests) == 3
    assert (proxy.network.use.total, proxy.network.use.refused) == (5, 2)


@pytest.mark.parametrize("direction", ["down", "up"])
async def test_the_bytes_of_a_call_are_bounded_in_both_directions(direction):
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            await writer.drain()

    async with web_server() as server:
        server.answers["/"] = endless
        host = f"{HOST}:{server.port}"
        limits = replace(LIMITS, bytes_max=1_000_000)
        async with program_proxy([host], all_on("127.0.0.1", HOST), limits=limits) as proxy:
            if direction == "down":
                got = await proxy.ask(f"GET http://{host}/ HTTP/1.0\r\n\r\n".encode())
                assert len(got) < 1_100_000
            else:
                head = f"POST http://{host}/up HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9000000\r\n\r\n".encode()
                with contextlib.suppress(ConnectionError):
                    await proxy.ask(head + bytes(9_000_000))
            entry = await proxy.ended.get()
    assert "over 1000000 bytes" in entry.why or direction == "up"
    assert entry.bytes_sent + entry.bytes_received <= 1_000_000


async def test_a_connection_on_which_nothing_moves_is_ended():
    async def silent(writer):
        await writer.wait_closed()

    async with web_server() as server:
        server.answers["/"] = silent
        host = f"{HOST}:{server.port}"
        limits = replace(LIMITS, idle_s=0.2)
        async with program_proxy([host], all_on("127.0.0.1", HOST), limits=limits) as proxy:
            await proxy.ask(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            entry = await proxy.ended.get()
    assert "no byte moved for 0.2 s" in entry.why


async def test_a_host_that_has_ended_its_side_still_gets_what_the_program_sends():
    received = asyncio.Queue()

    async def half(reader, writer):
        writer.write_eof()
        received.put_nowait(await reader.read())
        writer.close()

    hello = client_hello(HOST)
    server = await asyncio.start_server(half, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        async with program_proxy([f"{HOST}:{port}"], all_on("127.0.0.1", HOST)) as proxy:
            _, reader, writer = await proxy.connect(f"{HOST}:{port}")
            writer.write(hello)
            assert await reader.read() == b""
            writer.write(b"more")
            writer.write_eof()
            assert await received.get() == hello + b"more"
            writer.close()


async def test_a_host_that_floods_a_program_that_does_not_read_is_held_back():
    written = 0
    is_stuck = asyncio.Event()

    async def flood(writer):
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            written += 65_536
            try:
                async with asyncio.timeout(1):
                    await writer.drain()
            except TimeoutError:
                is_stuck.set()
                raise ConnectionError from None

    async with web_server() as server:
        server.answers["/"] = flood
        host = f"{HOST}:{server.port}"
        async with program_proxy([host], all_on("127.0.0.1", HOST)) as proxy:
            _, writer = await proxy.open()
            writer.write(f"GET http://{host}/ HTTP/1.0\r\n\r\n".encode())
            await is_stuck.wait()
            writer.close()
    assert written < 64 * 1024 * 1024  # what the kernel's buffers hold at the most


async def test_a_name_that_is_not_answered_is_a_gateway_error_with_a_sentence():
    async with program_proxy([f"{HOST}:80"], Names({})) as proxy:
        got = await proxy.ask(f"GET http://{HOST}/ HTTP/1.0\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 502 allowed.test:80: the host has no address\r\n")


async def test_refused_connections_hide_none_that_was_made():
    async with web_server() as server:
        server.answers["/"] = response(b"one")
        host = f"{HOST}:{server.port}"
        network = call_network([host], all_on("127.0.0.1", HOST))
        for _ in range(260):
            await network.serve(Program(b"x\r\n\r\n"))
        for _ in range(3):
            await network.serve(Program(f"GET http://{host}/ HTTP/1.0\r\n\r\n".encode()))
    assert [entry.allowed for entry in network.use.connections] == [False] * 50 + [True] * 3
    assert (network.use.total, network.use.refused) == (263, 260)


async def test_a_call_that_tried_all_its_connections_says_so_in_a_note():
    network = call_network([f"{HOST}:80"], Names({}), limits=replace(LIMITS, connections_max=2))
    for _ in range(9):
        await network.serve(Program(b"x\r\n\r\n"))
    assert network.notes == []
    await network.serve(Program(b"x\r\n\r\n"))
    assert network.notes == [
        "Network: the program tried 10 connections, the most of a call; the proxy took no more"
    ]
