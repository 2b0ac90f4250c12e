"""The HTTP server: when it is told to stop it answers what it has taken before it closes its door."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from service.api.connections import ConnectionLimits
from service.api.limited_protocol import LimitedProtocol

_LOOK_EVERY_S = 0.1


def server_config(
    app: ASGIApp, where: tuple[str, int], *, limits: ConnectionLimits, last_answers_s: int
) -> uvicorn.Config:
    """How the server speaks HTTP.

    Args:
        app: what it serves.
        where: the address and the port that it listens on.
        limits: the bounds of its connections.
        last_answers_s: how long answers that are under way may take when it stops, in seconds.
    """
    host, port = where
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=partial(LimitedProtocol, limits),  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nothing asks for the client's address
        timeout_graceful_shutdown=last_answers_s,
    )


class DrainingServer(uvicorn.Server):
    """While the calls that run end, new ones get a 503 with its reason and not a refused connection."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the form of a signal handler
        """SIGTERM or SIGINT: stop; a second SIGINT: at once.

        The signal is not raised again afterwards, as uvicorn would: a stop that was asked for is no failure.
        """
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drains, still serving, and closes."""
        draining = asyncio.ensure_future(self._drain())
        while not draining.done() and not self.force_exit:
            await asyncio.wait({draining}, timeout=_LOOK_EVERY_S)
        await super().shutdown(sockets)
