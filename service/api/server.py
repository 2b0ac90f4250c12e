"""The HTTP server: when it is told to stop it answers what it has taken before it closes its door."""

import asyncio
import signal
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from types import FrameType
from typing import ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from contracts.codes import ProblemCode
from contracts.problems import Problem
from service.api.responses import PROBLEM_JSON, REQUEST_ID_HEADER
from service.api.safe_headers import SAFE_HEADERS

_LOOK_EVERY_S = 0.1


class PromptProtocol(H11Protocol):
    """HTTP/1.1 as the server speaks it, with a bound on how long the head of a request may take to arrive.

    Whoever opens a connection and sends its head byte by byte, or nothing, holds no connection for longer. What is
    no HTTP, or has a head that is too long, is answered with a problem document as everything else is.

    Attributes:
        head_s: the bound, in seconds; of the whole process.
    """

    head_s: ClassVar[float] = 10.0
    _deadline: asyncio.TimerHandle | None = None
    _has_begun = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: its first request is waited for."""
        super().connection_made(transport)
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Takes bytes in; a head that is whole has come in time."""
        known = self.cycle
        super().data_received(data)
        if self.cycle is not known or (known is not None and not known.response_complete):
            self._stop_waiting()
        else:
            self._has_begun = True
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answers what cannot be read as a request."""
        self._stop_waiting()
        status = getattr(sys.exc_info()[1], "error_status_hint", HTTPStatus.BAD_REQUEST)
        self._refuse(HTTPStatus(status), ProblemCode.INVALID_REQUEST, msg)

    def _wait_for_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        self._has_begun = False
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._has_begun:
            told = f"the head of the request did not arrive within {self.head_s:g} s"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, ProblemCode.REQUEST_TIMEOUT, told)
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, code: ProblemCode, detail: str) -> None:
        """Sends a problem document and hangs up; there is no request that the application could answer."""
        request_id = uuid.uuid4().hex
        problem = Problem(
            title=status.phrase,
            status=status,
            detail=detail,
            code=code,
            request_id=request_id,
            retryable=code is ProblemCode.REQUEST_TIMEOUT,
            where="head",
        )
        body = problem.model_dump_json(exclude_none=True).encode()
        headers = {
            "Content-Type": PROBLEM_JSON,
            "Content-Length": str(len(body)),
            REQUEST_ID_HEADER: request_id,
            "Connection": "close",
            **SAFE_HEADERS,
        }
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers.items())
        self.transport.write(head.encode() + b"\r\n" + body)
        self.transport.close()


def prompt_protocol(head_s: float) -> type[PromptProtocol]:
    """The protocol with its bound, in seconds."""
    return type("PromptProtocol", (PromptProtocol,), {"head_s": head_s})


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
