"""The connections of a program over frames: windows, ends, and runners that send what they may not."""

import asyncio

import pytest

from proofbox.sandbox_images.runner_protocol.network import CONNECTION, CREDIT, CREDIT_EVERY_BYTES, WINDOW_BYTES
from proofbox.service.sandbox.network import ConnectionBounds
from proofbox.service.sandbox.port import SandboxLostError
from proofbox.service.sandbox.runner.connections import ProgramConnections
from proofbox.service.sandbox.runner.frames import Frame

ONE, TWO = CONNECTION.pack(1), CONNECTION.pack(2)


class Network:
    """Serves each connection as the test says."""

    def __init__(self, serve, *, open_max=2, accepted_max=3):
        self.bounds = ConnectionBounds(open_max, accepted_max, bytes_max=1_000_000)
        self._serve = serve
        self.cancelled = 0

    async def serve(self, connection):
        try:
            await self._serve(connection)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


class Wire:
    """What the service sends."""

    def __init__(self):
        self.sent = []
        self.grown = asyncio.Event()

    async def send(self, kind, payload):
        self.sent.append((kind, payload))
        self.grown.set()

    @property
    def sent_bytes(self):
        return sum(len(payload) - CONNECTION.size for kind, payload in self.sent if kind is Frame.NET_DATA)

    async def until_sent(self, size):
        while self.sent_bytes < size:
            self.grown.clear()
            await self.grown.wait()

    async def until(self, *kinds):
        """All frames, once there is one of each kind."""
        while not {kind for kind, _ in self.sent} >= set(kinds):
            self.grown.clear()
            await self.grown.wait()
        return self.sent


async def forever(_connection):
    await asyncio.Event().wait()


async def echo(connection):
    while data := await connection.read():
        await connection.write(data)
    await connection.write_end()


def connections(serve=forever, **bounds):
    wire = Wire()
    network = Network(serve, **bounds)
    return ProgramConnections(network, wire.send, wall_s=1), wire, network


async def test_bytes_go_through_and_both_ends_are_passed_on():
    found, wire, _ = connections(echo)
    for kind, payload in ((Frame.NET_OPENED, ONE), (Frame.NET_SENT, ONE + b"ab"), (Frame.NET_ENDED, ONE)):
        await found.take(kind, payload)
    sent = await wire.until(Frame.NET_CLOSE)
    assert sent == [(Frame.NET_DATA, ONE + b"ab"), (Frame.NET_END, ONE), (Frame.NET_CLOSE, ONE)]


async def test_a_credit_is_sent_for_what_was_passed_on():
    found, wire, _ = connections(echo)
    await found.take(Frame.NET_OPENED, ONE)
    for _ in range(4):
        await found.take(Frame.NET_SENT, ONE + bytes(CREDIT_EVERY_BYTES // 4))
    sent = await wire.until(Frame.NET_CREDIT)
    assert (Frame.NET_CREDIT, CREDIT.pack(1, CREDIT_EVERY_BYTES)) in sent
    await found.close()


async def test_a_program_that_does_not_read_holds_its_host_back():
    async def send_much(connection):
        await connection.write(bytes(3 * WINDOW_BYTES))

    found, wire, _ = connections(send_much)
    await found.take(Frame.NET_OPENED, ONE)
    await wire.until_sent(WINDOW_BYTES)
    for _ in range(10):
        await asyncio.sleep(0)
    assert wire.sent_bytes == WINDOW_BYTES
    await found.take(Frame.NET_TAKEN, CREDIT.pack(1, WINDOW_BYTES))
    await wire.until_sent(2 * WINDOW_BYTES)
    await found.close()


async def test_a_connection_that_the_program_breaks_off_is_not_served_on():
    found, _, network = connections()
    await found.take(Frame.NET_OPENED, ONE)
    await asyncio.sleep(0)
    await found.take(Frame.NET_CLOSED, ONE)
    for _ in range(3):
        await asyncio.sleep(0)
    assert network.cancelled == 1
    await found.close()


async def test_what_came_before_a_close_by_both_is_still_read():
    received = asyncio.Queue()

    async def end_then_read(connection):
        await connection.write_end()
        await is_closed.wait()
        while data := await connection.read():
            received.put_nowait(data)

    is_closed = asyncio.Event()
    found, wire, _ = connections(end_then_read)
    await found.take(Frame.NET_OPENED, ONE)
    await wire.until(Frame.NET_END)
    for kind, payload in ((Frame.NET_SENT, ONE + b"last"), (Frame.NET_ENDED, ONE), (Frame.NET_CLOSED, ONE)):
        await found.take(kind, payload)
    is_closed.set()
    assert await received.get() == b"last"


async def test_the_end_of_the_run_ends_every_connection_before_it_is_confirmed():
    found, wire, network = connections()
    await found.take(Frame.NET_OPENED, ONE)
    await found.take(Frame.NET_OPENED, TWO)
    await asyncio.sleep(0)
    await found.take(Frame.NET_STOP, b"")
    assert network.cancelled == 2
    assert wire.sent == [(Frame.NET_STOPPED, b"")]


async def test_a_connection_that_fails_leaves_the_others_alone(caplog):
    async def fail_first(connection):
        data = await connection.read()
        if data == b"fail":
            raise ValueError("a defect")
        await connection.write(data)

    found, wire, _ = connections(fail_first)
    for payload in (ONE, TWO):
        await found.take(Frame.NET_OPENED, payload)
    await found.take(Frame.NET_SENT, ONE + b"fail")
    await found.take(Frame.NET_SENT, TWO + b"good")
    assert (Frame.NET_DATA, TWO + b"good") in await wire.until(Frame.NET_DATA, Frame.NET_CLOSE)
    assert "a connection of a program failed" in caplog.text


OPENED = (Frame.NET_OPENED, ONE)


@pytest.mark.parametrize(
    "frames",
    [
        [(Frame.NET_OPENED, TWO)],
        [(Frame.NET_OPENED, CONNECTION.pack(0))],
        [OPENED, OPENED],
        [OPENED, (Frame.NET_OPENED, TWO), (Frame.NET_OPENED, CONNECTION.pack(3))],
        [(Frame.NET_SENT, ONE + b"x")],
        [OPENED, (Frame.NET_SENT, TWO + b"x")],
        [OPENED, (Frame.NET_SENT, CONNECTION.pack(2**32 - 1) + b"x")],
        [OPENED, (Frame.NET_SENT, ONE)],
        [OPENED, (Frame.NET_SENT, ONE + bytes(WINDOW_BYTES)), (Frame.NET_SENT, ONE + b"x")],
        [OPENED, (Frame.NET_ENDED, ONE), (Frame.NET_SENT, ONE + b"x")],
        [OPENED, (Frame.NET_TAKEN, CREDIT.pack(1, 1))],
        [OPENED, (Frame.NET_TAKEN, CREDIT.pack(1, 2**32 - 1))],
        [OPENED, (Frame.NET_TAKEN, ONE)],
        [(Frame.NET_OPENED, b"")],
        [OPENED, (Frame.NET_SENT, b"\0")],
        [(Frame.NET_STOP, b""), OPENED],
        [(Frame.NET_STOP, b""), (Frame.NET_STOP, b"")],
    ],
)  # fmt: skip
async def test_a_runner_that_sends_what_it_may_not_loses_its_sandbox(frames):
    found, _, _ = connections()
    for kind, payload in frames[:-1]:
        await found.take(kind, payload)
    with pytest.raises(SandboxLostError):
        await found.take(*frames[-1])
    await found.close()


async def test_connections_that_come_and_go_end_at_their_number():
    found, _, _ = connections()
    for number in (1, 2, 3):
        await found.take(Frame.NET_OPENED, CONNECTION.pack(number))
        await found.take(Frame.NET_CLOSED, CONNECTION.pack(number))
    with pytest.raises(SandboxLostError):
        await found.take(Frame.NET_OPENED, CONNECTION.pack(4))
    await found.close()


async def test_frames_without_end_lose_the_sandbox():
    found, _, _ = connections()
    await found.take(Frame.NET_OPENED, ONE)
    await found.take(Frame.NET_CLOSED, ONE)

    async def flood():
        for _ in range(1_000_000):
            await found.take(Frame.NET_ENDED, ONE)  # as if it had been on its way

    with pytest.raises(SandboxLostError):
        await flood()
    await found.close()


@pytest.mark.parametrize("kind", [Frame.NET_OPENED, Frame.NET_SENT, Frame.NET_TAKEN, Frame.NET_STOP])
async def test_a_program_without_network_has_no_connections(kind):
    found = ProgramConnections(None, Wire().send, wall_s=1)
    with pytest.raises(SandboxLostError):
        await found.take(kind, ONE)
    await found.close()
