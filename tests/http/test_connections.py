"""Bounds of connections, over real sockets: how many there are, and clients that do not read their answers."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from functools import partial

import pytest
import uvicorn

from proofbox.service.api.app import create_app
from proofbox.service.api.connections import ConnectionLimits, client_network
from proofbox.service.api.limited_protocol import LimitedProtocol
from tests.http.conftest import AnnouncedServer

SMALL_BUFFER_BYTES = 4_096
LONG = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
SHORT = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
WITHIN_S = 60
UNREAD_S = 0.3


@pytest.fixture
def unread_s():
    return UNREAD_S


@pytest.fixture
def limits(unread_s):
    return ConnectionLimits(unread_s=unread_s, per_address_max=2, connections_max=3)


class ServedFile:
    """A server with limits, whose kernel buffers are small, and its clients."""

    def __init__(self, server, port):
        self._server = server
        self._port = port

    @property
    def connections(self):
        return len(self._server.server_state.connections)

    async def client(self, address="127.0.0.1"):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER_BYTES)
        connection.settimeout(0)
        connection.bind((address, 0))
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", self._port))
        return connection

    async def until_connections(self, count):
        async with asyncio.timeout(WITHIN_S):
            while self.connections != count:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)

    async def answer(self, address="127.0.0.1"):
        """Status line and body of the answer to a client that asks for little and hangs up."""
        with contextlib.closing(await self.client(address)) as connection:
            await sent(connection, LAST)
            head, _, body = (await read_all(connection)).partition(b"\r\n\r\n")
            return head.partition(b"\r\n")[0], body


@pytest.fixture
async def served(services, limits):
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL_BUFFER_BYTES)
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            create_app(services),
            http=partial(LimitedProtocol, limits),
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        running = AnnouncedServer(config)
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        await running.up.wait()
        yield ServedFile(running, listening.getsockname()[1])
        running.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving


async def sent(connection, data):
    await asyncio.get_running_loop().sock_sendall(connection, data)


async def read_all(connection, piece_bytes=65_536, pause_s=0.0):
    received = b""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(WITHIN_S):
        with contextlib.suppress(ConnectionError):
            while piece := await loop.sock_recv(connection, piece_bytes):
                received += piece
                if pause_s:
                    await asyncio.sleep(pause_s)
    return received


# ---- clients that do not read


@pytest.mark.parametrize("target", ["/openapi.json", "/v1/tools", "/v1/tools?format=openai"])
async def test_a_client_that_reads_nothing_of_one_answer_loses_its_connection(served, target):
    """The application is done with the answer; what is unread of it waits in the buffer of the connection."""
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await served.until_connections(1)
        await served.until_connections(0)
        cut = await read_all(connection)
    assert cut.startswith(b"HTTP/1.1 200 ")
    head, _, body = cut.partition(b"\r\n\r\n")
    declared = int(head.lower().partition(b"content-length: ")[2].split()[0])
    assert len(body) < declared


async def test_a_client_that_asks_to_close_and_reads_nothing_loses_its_connection(served):
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, LONG.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        await served.until_connections(1)
        await served.until_connections(0)


async def test_a_client_that_reads_the_beginning_and_stops_loses_its_connection(served):
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, LONG)
        received = 0
        while received < 100_000:
            received += len(await asyncio.get_running_loop().sock_recv(connection, 8_192))
        await served.until_connections(0)


async def test_a_client_that_reads_byte_by_byte_loses_its_connection(served):
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, LONG)
        dropping = asyncio.create_task(read_all(connection, 1, 0.05))
        await served.until_connections(1)
        await served.until_connections(0)
        dropping.cancel()


async def test_a_client_that_sends_one_request_behind_the_other_and_reads_nothing_loses_its_connection(served):
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, LONG * 30)
        await served.until_connections(1)
        await served.until_connections(0)


@pytest.mark.parametrize("unread_s", [1.5])  # a busy machine may read nothing for a while
async def test_a_client_that_reads_slowly_but_steadily_gets_its_whole_answer(served):
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, LONG.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        body = (await read_all(connection, 4_096, 0.015)).partition(b"\r\n\r\n")[2]
    assert json.loads(body)["openapi"].startswith("3.")


async def test_a_client_that_has_read_everything_may_ask_again_later(served):
    with contextlib.closing(await served.client()) as connection:
        for _ in range(2):
            await sent(connection, SHORT)
            received = b""
            while not received.endswith(b'{"status":"ok"}'):
                received += await asyncio.get_running_loop().sock_recv(connection, 8_192)
            await asyncio.sleep(UNREAD_S * 2)


# ---- how many there are


async def test_more_connections_of_an_address_than_allowed_are_refused_and_room_comes_back(served):
    first, second = [await served.client() for _ in range(2)]
    await served.until_connections(2)
    line, body = await served.answer()
    assert line.startswith(b"HTTP/1.1 429 ")
    assert (json.loads(body)["code"], json.loads(body)["retryable"]) == ("rate_limited", True)
    assert (await served.answer("127.0.0.2"))[0].startswith(b"HTTP/1.1 200 ")
    first.close()
    await served.until_connections(1)
    assert (await served.answer())[0].startswith(b"HTTP/1.1 200 ")
    second.close()


async def test_more_connections_together_than_allowed_are_refused_and_room_comes_back(served):
    held = [await served.client(f"127.0.0.{number}") for number in (1, 2, 3)]
    await served.until_connections(3)
    assert (await served.answer("127.0.0.4"))[0].startswith(b"HTTP/1.1 429 ")
    held.pop().close()
    await served.until_connections(2)
    assert (await served.answer("127.0.0.4"))[0].startswith(b"HTTP/1.1 200 ")
    for connection in held:
        connection.close()


async def test_requests_on_one_connection_are_answered_one_after_another(served):
    with contextlib.closing(await served.client()) as connection:
        await sent(connection, SHORT * 200 + LAST)
        received = await read_all(connection)
    assert [answer[:4] for answer in received.split(b"HTTP/1.1 ")[1:]] == [b"200 "] * 201
    await served.until_connections(0)


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.1", "::ffff:c000:0201", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("::1", "2001:db8::1", False),
        ("", "", True),
    ],
)
def test_one_client_is_one_address_or_one_network_of_ipv6(one, other, are_one):
    assert (client_network(one) == client_network(other)) is are_one


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "expected"),
    [(256, 1_000, 8_000, (500, 1_000)), (256, 1_000, 100, (100, 256)), (400, 400, 300, (200, 400))],
)
def test_the_limit_of_open_files_is_raised_for_connections_and_bounds_them(soft, hard, wanted, expected):
    program = (
        f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "from proofbox.service.api.connections import make_room_for_connections as room\n"
        f"print((room({wanted}), r.getrlimit(r.RLIMIT_NOFILE)[0]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(expected)
