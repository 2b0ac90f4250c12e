"""The HTTP server: it finishes accepted requests before it closes its socket."""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from proofbox.service.api.connections import ConnectionLimits
from proofbox.service.api.limited_protocol import LimitedProtocol

_POLL_S = 0.1


def server_config(
    app: ASGIApp, where: tuple[str, int], *, limits: ConnectionLimits, last_answers_s: int
) -> uvicorn.Config:
    """Build the configuration of the server.

    Args:
        app: the application.
        where: the address and the port.
        limits: the limits of connections.
        last_answers_s: how long responses may take when the server stops, in seconds.
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
        proxy_headers=False,  # the client's address is not used
        timeout_graceful_shutdown=last_answers_s,
    )


class DrainingServer(uvicorn.Server):
    """A server that answers new calls with 503 while running calls end."""

    def __init__(self, config: uvicorn.Config, drain: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._drain = drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the form of a signal handler
        """SIGTERM or SIGINT: stop; a second SIGINT: at once.

        Unlike uvicorn, do not raise the signal again: a requested stop is not a failure.
        """
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain while serving, then close."""
        draining = asyncio.ensure_future(self._drain())
        while not draining.done() and not self.force_exit:
            await asyncio.wait({draining}, timeout=_POLL_S)
        await super().shutdown(sockets)
