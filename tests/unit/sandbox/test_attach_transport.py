"""The stream through an engine, and its way past the engine, over socket pairs."""

import asyncio
import contextlib
import socket
import struct

import pytest

from proofbox.service.sandbox.docker import transport as module
from proofbox.service.sandbox.docker.direct_socket import DirectSocketError
from proofbox.service.sandbox.docker.transport import AttachTransport

OUT, ERR = 1, 2


def piece(kind, data):
    return struct.pack(">BxxxI", kind, len(data)) + data


@contextlib.asynccontextmanager
async def over(shortcut=None):
    ours, theirs = socket.socketpair()
    with theirs:
        transport = await AttachTransport.over(ours, shortcut)
        try:
            yield transport, theirs
        finally:
            await transport.close()


@contextlib.asynccontextmanager
async def switched():
    ours, theirs = socket.socketpair()

    async def take():
        return ours

    async with over(take) as (transport, engine):
        await transport.use_direct_socket()
        with theirs:
            yield transport, engine, theirs


async def test_pieces_of_output_are_put_together_and_complaints_kept():
    async with over() as (transport, engine):
        engine.sendall(piece(ERR, b"oh no") + piece(OUT, b"ab") + piece(OUT, b"c") + piece(OUT, b"d")[:-1])
        assert await transport.read() == b"abc"
        engine.sendall(b"d")
        assert (await transport.read(), transport.stderr_tail) == (b"d", b"oh no")
        engine.close()
        assert (await transport.read(), transport.is_open) == (b"", False)


async def test_where_no_way_past_the_engine_is_known_the_stream_stays():
    async with over() as (transport, engine):
        await transport.use_direct_socket()
        await transport.write(b"question")
        assert engine.recv(99) == b"question"


async def test_past_the_engine_bytes_go_as_they_are_in_both_directions():
    async with switched() as (transport, engine, runner):
        await transport.write(b"question")
        runner.sendall(b"answer")
        assert (runner.recv(99), await transport.read()) == (b"question", b"answer")
        engine.settimeout(0)
        with pytest.raises(BlockingIOError):
            engine.recv(99)


async def test_past_the_engine_the_last_complaint_is_waited_for_when_the_runner_has_ended(monkeypatch):
    monkeypatch.setattr(module, "_COMPLAINT_S", 30)
    async with switched() as (transport, engine, runner):
        runner.close()
        reading = asyncio.create_task(transport.read())
        await asyncio.sleep(0.02)
        engine.sendall(piece(ERR, b"Traceback"))
        engine.close()
        assert (await reading, transport.stderr_tail) == (b"", b"Traceback")


async def test_past_the_engine_the_end_is_that_of_the_runner_and_not_of_what_the_engine_relays():
    async with switched() as (transport, engine, runner):
        engine.close()
        await asyncio.sleep(0.01)
        assert transport.is_open is True
        runner.close()
        assert (await transport.read(), transport.is_open) == (b"", False)


async def test_hanging_up_ends_both_ways():
    async with switched() as (transport, engine, runner):
        await transport.close()
        assert (engine.recv(1), runner.recv(1)) == (b"", b"")


async def test_hanging_up_waits_for_no_runner_that_has_stopped_reading():
    async with switched() as (transport, _, runner):
        writing = asyncio.create_task(transport.write(bytes(4_000_000)))
        await asyncio.sleep(0.01)
        assert not writing.done()
        async with asyncio.timeout(60):
            await transport.close()
            await writing
        runner.close()


async def test_a_runner_that_offers_no_socket_is_talked_to_through_the_engine():
    async def take():
        raise DirectSocketError("there is none")

    async with over(take) as (transport, engine):
        await transport.use_direct_socket()
        await transport.write(b"question")
        engine.sendall(piece(OUT, b"answer"))
        assert (engine.recv(99), await transport.read()) == (b"question", b"answer")
