"""Why an engine cannot be used: in its own words, without paths of its host."""

import asyncio
import contextlib
import gc
import socket

import pytest

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.docker.client import EngineClient

# The engine's library leaves the socket of a connection that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
SECRET = "/var/lib/docker/secret"
ANSWER = f'{{"message": "error mounting {SECRET}: no space left on device"}}'
HEAD = (
    "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
)


_KNOWN = '{"ApiVersion": "1.41"}'
_VERSION = HEAD.format(status=200, length=len(_KNOWN)) + _KNOWN


@pytest.fixture(autouse=True)
def collected():
    """Collects what the library left within the test that made it."""
    yield
    gc.collect()


async def refusal(path, timeout_s=30.0):
    """What the client of an engine at a socket file raises when it connects."""
    client = EngineClient(f"unix://{path}", timeout_s, threads=1)
    try:
        with pytest.raises(EngineUnavailableError) as refused:
            await client.connect()
    finally:
        await client.close()
    return refused.value.message.partition(f"unix://{path}: ")[2]


@contextlib.asynccontextmanager
async def engine(path, answer):
    """An engine that answers each request with some bytes; with none, it never answers."""
    hung: list[asyncio.StreamWriter] = []

    async def serve(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        if answer is None:
            hung.append(writer)
            return
        writer.write(_VERSION.encode() if answer and b"/version " in head else answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield
    finally:
        for writer in hung:
            writer.close()
        server.close()
        await server.wait_closed()


async def test_a_socket_that_is_not_there(tmp_path):
    assert await refusal(tmp_path / "none.sock") == "no such file or directory"


async def test_a_socket_that_nobody_listens_at(tmp_path):
    path = tmp_path / "e.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
    assert await refusal(path) == "connection refused"


async def test_an_engine_that_answers_with_an_error(tmp_path):
    path = tmp_path / "e.sock"
    answer = HEAD.format(status=500, length=len(ANSWER)) + ANSWER
    async with engine(str(path), answer.encode()):
        client = EngineClient(f"unix://{path}", 30, threads=1)
        await client.connect()
        with pytest.raises(EngineUnavailableError) as refused:
            await client.info()
        await client.close()
    said = "it answered 500: error mounting …: no space left on device"
    assert refused.value.message == f"the container engine could not describe itself: {said}"


async def test_an_engine_that_breaks_the_connection(tmp_path):
    path = tmp_path / "e.sock"
    async with engine(str(path), b""):
        assert await refusal(path) == "it broke the connection"


async def test_an_engine_that_does_not_answer(tmp_path):
    path = tmp_path / "e.sock"
    async with engine(str(path), None):
        assert await refusal(path, timeout_s=0.2) == "it did not answer in time"
