"""Servers of the older transport that name no endpoint that can be used: refused before their timeout."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tests.support.mcp_servers import begin_with
from tests.support.web_server import redirect, response

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
TIMEOUT_MS = 30_000  # the text of a failure tells whether it had to pass


@asynccontextmanager
async def streaming(stream, posted=None):
    """A server that sends a stream and leaves it open, and answers each message with the same response."""
    let_go = asyncio.Event()

    async def serve(reader, writer):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                writer.write(STREAM + stream)
                await writer.drain()
                await let_go.wait()
            else:
                writer.write(await posted(port) if callable(posted) else posted)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        try:
            yield {
                "name": "old",
                "url": f"http://127.0.0.1:{port}/sse",
                "transport": "sse",
                "timeout": TIMEOUT_MS,
            }
        finally:
            let_go.set()


async def warning_of(loop, server):
    async with server as entry:
        begun = await begin_with(loop, entry)
    [warning] = begun.json()["warnings"]
    assert warning["code"] == "mcp_unavailable"
    return warning["message"]


def endpoint(data, end=b"\n"):
    return end.join([b"event: endpoint", b"data: " + data, b"", b""])


@pytest.mark.parametrize(
    "stream",
    [
        endpoint(b"https://elsewhere.example/messages"),
        endpoint(b"//elsewhere.example/messages", b"\r\n"),
        b": hello\n\nevent: ping\ndata: 1\n\n" + endpoint(b"http://[half/messages", b"\r") + b"\n",
        b"data:\n\ndata: http://127.0.0.1:1/\nevent: endpoint\n\n",
    ],
)
async def test_an_endpoint_of_another_origin_is_refused_at_once(loop, stream):
    assert "names another origin" in await warning_of(loop, streaming(stream))


async def test_a_message_before_the_endpoint_is_refused_at_once(loop):
    assert "before its event endpoint" in await warning_of(loop, streaming(b"data: {}\n\n"))


@pytest.mark.parametrize(
    ("posted", "why"),
    [
        (response(b"", status="404 Not Found"), "HTTP status 404"),
        (redirect("/login"), "HTTP status 302"),
        (redirect("https://elsewhere.example/", "307 Temporary Redirect"), "another origin"),
        (redirect("http://a:b/", "308 Permanent Redirect"), "cannot be read"),
        (response(b"", status="307 Temporary Redirect"), "HTTP status 307 without Location"),
        (redirect("/messages", "307 Temporary Redirect"), "too often"),
        (redirect("", "308 Permanent Redirect"), "too often"),
    ],
)
async def test_an_endpoint_that_takes_no_message_is_refused_at_once(loop, posted, why):
    assert why in await warning_of(loop, streaming(endpoint(b"/messages"), posted))


@pytest.mark.parametrize("second", [b"https://elsewhere.example/", b"/messages"])
async def test_a_second_endpoint_is_refused_at_once(loop, second):
    stream = endpoint(b"/messages") + b": keep\n\n" + b"data: " + b"x" * 5_000 + b"\n"
    assert "a second event endpoint" in await warning_of(loop, streaming(stream + endpoint(second)))


async def test_an_address_with_a_user_name_is_refused_at_once(loop):
    async def posted(port):
        return redirect(f"http://ann@127.0.0.1:{port}/messages", "307 Temporary Redirect")

    assert "a user name" in await warning_of(loop, streaming(endpoint(b"/messages"), posted))


async def test_the_bytes_of_the_event_may_come_one_by_one(loop):
    async def send(pieces, reader, writer):
        try:
            if (await reader.readuntil(b"\r\n\r\n")).startswith(b"GET"):
                for at in range(len(pieces)):
                    writer.write(pieces[at : at + 1])
                    await writer.drain()
                await reader.read()
        finally:
            writer.close()

    pieces = STREAM + endpoint("https://älsewhere.example/".encode(), b"\r\n")
    async with await asyncio.start_server(partial(send, pieces), "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        entry = {"name": "old", "url": f"http://127.0.0.1:{port}/sse", "transport": "sse", "timeout": TIMEOUT_MS}
        begun = await begin_with(loop, entry)
    assert "names another origin" in begun.json()["warnings"][0]["message"]
