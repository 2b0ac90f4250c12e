"""Bodies of plain requests and responses: chunks of any size, early answers, and what fails on the way."""

import asyncio
from contextlib import asynccontextmanager

import h11
import pytest

from proofbox.service.egress.http_relay import MessageReader
from proofbox.service.egress.refusal import ConnectionEnded
from tests.support.program_proxy import Names, Program, all_on, call_network, listener, program_proxy
from tests.support.web_server import response, web_server

HOST = "allowed.test"
CHUNK = b"1\r\na\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def recording_server(answer):
    """A server that reads a request to the end of its chunks, and answers it."""
    received = asyncio.Queue()

    async def serve(reader, writer):
        received.put_nowait(await reader.readuntil(b"\r\n0\r\n\r\n"))
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"{HOST}:{server.sockets[0].getsockname()[1]}", received


def reader_of(data):
    """A reader of a response that came in one piece."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", HOST)]))
    pieces = [data, b""]

    async def receive():
        return pieces.pop(0)

    return MessageReader(parser, receive)


async def test_the_chunks_of_a_response_that_came_together_are_written_together():
    async with web_server() as server:
        server.answers["/"] = CHUNKED + CHUNK * 5_000 + b"0\r\n\r\n"
        host = f"{HOST}:{server.port}"
        program = Program(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        network = call_network([host], all_on("127.0.0.1", HOST))
        await network.serve(program)
    assert b"".join(program.got).count(b"a") >= 5_000
    assert len(program.got) < 500


async def test_the_chunks_of_a_request_that_came_together_are_sent_together():
    async with recording_server(response(b"one")) as (host, received):
        head = f"POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        program = Program(head, CHUNK * 5_000 + b"0\r\n\r\n")
        await call_network([host], all_on("127.0.0.1", HOST)).serve(program)
    body = (await received.get()).partition(b"\r\n\r\n")[2]
    assert body == b"1388\r\n" + b"a" * 5_000 + b"\r\n0\r\n\r\n"


async def test_others_have_their_turn_while_many_chunks_are_read():
    messages, turns = reader_of(CHUNKED + CHUNK * 8_000 + b"0\r\n\r\n"), 0
    assert isinstance(await messages.next(), h11.Response)
    reading = asyncio.ensure_future(messages.next())
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(reading.result().data) == 8_000
    assert turns > 8_000 // 256
    assert isinstance(await messages.next(), h11.EndOfMessage)


async def test_many_chunks_that_are_small_on_average_end_the_connection():
    messages = reader_of(CHUNKED + CHUNK * 10_001)
    await messages.next()
    with pytest.raises(ConnectionEnded, match="over 10000 chunks with under 32 bytes on average"):
        await messages.next()


async def test_many_chunks_of_a_fair_size_pass():
    messages = reader_of(CHUNKED + (b"20\r\n" + b"a" * 32 + b"\r\n") * 10_001 + b"0\r\n\r\n")
    await messages.next()
    assert len((await messages.next()).data) == 32 * 10_001


async def test_an_early_answer_is_not_cut_off_by_what_the_program_still_sends():
    async with web_server() as server:
        server.answers["/"] = response(b"too large")
        host = f"{HOST}:{server.port}"
        head = f"POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: 1000000\r\n\r\n".encode()
        async with program_proxy([host], all_on("127.0.0.1", HOST)) as proxy:
            reader, writer = await proxy.open()
            writer.write(head + bytes(1_000))
            assert (await reader.readuntil(b"too large")).startswith(b"HTTP/1.1 200 ")
            assert await reader.read() == b""
            assert proxy.ended.empty()  # it still reads what the program sends
            writer.close()
            entry = await proxy.ended.get()
    assert entry.why is None


async def test_a_program_that_breaks_its_chunks_reads_who_did():
    async with listener() as (port, _):
        host = f"{HOST}:{port}"
        program = Program(
            f"POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n".encode(),
            b"nonsense\r\n",
        )
        await call_network([host], all_on("127.0.0.1", HOST)).serve(program)
    assert program.got[0].startswith(b"HTTP/1.1 400 the program sent no valid HTTP: ")


async def test_a_connection_that_the_service_fails_says_so_in_the_ledger():
    class Broken(Names):
        async def __call__(self, host, _port):
            raise RuntimeError(host)

    network = call_network([f"{HOST}:80"], Broken({}))
    with pytest.raises(RuntimeError):
        await network.serve(Program(f"GET http://{HOST}/ HTTP/1.0\r\n\r\n".encode()))
    assert [entry.why for entry in network.use.connections] == ["the service failed"]
