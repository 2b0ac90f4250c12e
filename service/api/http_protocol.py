"""HTTP/1.1 as the server speaks it: heads are bounded in time and length, and odd ones answered as problems.

Connections are bounded too (`connections`).
"""

import asyncio
import re
import sys
import uuid
from http import HTTPStatus
from typing import Any, ClassVar

from httptools import HttpParserCallbackError
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from contracts.codes import ProblemCode
from contracts.problems import Problem
from service.api.connections import PIPELINED_MAX, ConnectionLimits, UnreadClock, client_network
from service.api.middleware.security_headers import SAFE_HEADERS
from service.api.responses import PROBLEM_JSON, REQUEST_ID_HEADER

HEAD_BYTES_MAX = 32 * 1024
_LONG_TRAILERS = f"the trailers or a chunk's head of the body are longer than {HEAD_BYTES_MAX} bytes"
_HEAD_ENDS = re.compile(rb"\n\r?\n")
_BEGINS_A_HEAD = re.compile(rb"[A-Z\r\n]")
_OFFER = re.compile(rb"\nupgrade[ \t]*:[^\n]*(?=\n)", re.IGNORECASE)
_VERSIONS = {"1.0", "1.1"}
_ANSWER_BEGINS = b"HTTP/1.1 "
_JOINED_BYTES_MAX = 64 * 1024  # more is not copied for that
_FIELD_BYTES = 4  # of a field beside its name and its value: ``: ``, and the end of its line
_KEYS_TO_COME = dict.fromkeys(("method", "path", "raw_path", "query_string", "app"))


class _Line(list[Any]):
    """What uvicorn wants of the line of requests on one connection: a deque has room for 64 at once."""

    def appendleft(self, item: Any) -> None:
        self.insert(0, item)


class _Flow(FlowControl):
    """What uvicorn asks whether a client is slow: its event, with room for 64 who wait, is made for one that is."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = False
        self.write_paused = False

    def pause_writing(self) -> None:
        if not self.write_paused:
            self.write_paused = True
            self._is_writable_event = asyncio.Event()


class _OneWrite:
    """The transport of a connection: the head of an answer waits for what comes right behind it.

    Else a client would be woken by the head, and find the rest missing.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """As `asyncio.WriteTransport.write`; what begins an answer is sent with what follows, or a moment later."""
        if self._head:
            head, self._head = self._head, b""
            if len(data) <= _JOINED_BYTES_MAX:
                data = head + data
            else:
                self._transport.write(head)
        elif data[: len(_ANSWER_BEGINS)] == _ANSWER_BEGINS:
            self._head = data
            asyncio.get_running_loop().call_soon(self.flush)
            return
        self._transport.write(data)

    def flush(self) -> None:
        """Sends what waits."""
        head, self._head = self._head, b""
        if head:
            self._transport.write(head)

    def close(self) -> None:
        """As `asyncio.BaseTransport.close`."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class _HeadRefusedError(Exception):
    """A head that the parser takes and this server does not; the message says why."""


class PromptProtocol(HttpToolsProtocol):
    """One connection of a client.

    Whoever opens a connection and sends its head byte by byte, or nothing, holds no connection for longer than
    ``head_s``. What is no HTTP, or has a head that is too long, is answered with a problem document as everything
    else is. Who offers to speak another protocol (``Upgrade``, as Java's client does at first) is answered in this
    one: the parser would take what follows such a head for that protocol.

    Attributes:
        limits: the bounds, of all connections of the server.
    """

    # A thousand clients may wait, and these, `_Line`, `_Flow` and `_KEYS_TO_COME` save 4 KB of each.
    __slots__ = (
        "_deadline",
        "_has_begun",
        "_head",
        "_is_in_body",
        "_is_in_head",
        "_network",
        "_pending_bytes",
        "_trailer_bytes",
        "_unread",
    )

    limits: ClassVar[ConnectionLimits] = ConnectionLimits()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.pipeline = _Line()  # type: ignore[assignment]
        self._deadline: asyncio.TimerHandle | None = None
        self._has_begun = False
        self._head = b""  # of the next request, as far as it has come; the parser has nothing of it
        self._is_in_head = False  # the parser has the beginning of a head, which came right behind another request
        self._pending_bytes = 0  # that the parser was given since a request began, or since something of its body
        self._is_in_body = False
        self._trailer_bytes = 0
        self._unread: UnreadClock | None = None
        self._network = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client is there: its first request is waited for."""
        super().connection_made(transport)
        # Whoever writes waits, and the clock runs, as long as anything is unread: the end of an answer too.
        transport.set_write_buffer_limits(high=0)
        self.transport = _OneWrite(transport)  # type: ignore[assignment]
        self.flow = _Flow(transport)
        self._network = client_network(self.client[0]) if self.client else ""
        if self.limits.enter(self._network):
            self._wait_for_head()
        else:
            told = "there are too many connections; close some, or try again later"
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, ProblemCode.RATE_LIMITED, told)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there any more."""
        self._stop_waiting()
        self.limits.leave(self._network)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Something that was written is unread."""
        super().pause_writing()
        if self._unread is None:
            self._unread = UnreadClock(self.transport, self.limits.unread_s)

    def resume_writing(self) -> None:
        """All that was written is read, or nobody reads any more."""
        if self._unread is not None:
            self._unread.stop()
            self._unread = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Takes bytes in; a head that is whole has come in time."""
        known = self.cycle
        if self._is_in_head or self._is_in_body:
            self._go_on(data)
        else:
            self._begin(self._head + data)
        if self.cycle is not known or (known is not None and not known.response_complete):
            self._stop_waiting()
        elif not self.transport.is_closing():
            self._has_begun = True
            self._wait_for_head()

    def _begin(self, head: bytes) -> None:
        """Hands a request to the parser once its head is whole, or cannot become one."""
        ends = _HEAD_ENDS.search(head, max(0, len(self._head) - 2))
        end = len(head) if ends is None else ends.end()
        self._head = b""
        if end > HEAD_BYTES_MAX:
            self._refuse_long_head()
        elif ends is None and _BEGINS_A_HEAD.match(head):
            self._head = head
            self._unset_keepalive_if_required()
        elif _OFFER.search(head, 0, end) is not None:
            super().data_received(_OFFER.sub(b"", head[:end]) + head[end:])
        else:
            super().data_received(head)

    def _go_on(self, data: bytes) -> None:
        self._pending_bytes += len(data)
        super().data_received(data)
        if self._pending_bytes > HEAD_BYTES_MAX and self._is_in_head:
            self._refuse_long_head()
        elif self._pending_bytes > HEAD_BYTES_MAX and self._is_in_body:
            self._refuse(HTTPStatus.BAD_REQUEST, ProblemCode.INVALID_REQUEST, _LONG_TRAILERS)

    # ---- what the parser tells ----

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        # A dictionary that grows takes twice as much as one that is as large as it will be.
        self.scope = {**self.scope, **_KEYS_TO_COME}  # type: ignore[typeddict-item]
        self._is_in_head = True
        self._pending_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of a head. One behind a chunked body is a trailer, which is dropped (RFC 9110 §6.5)."""
        if not self._is_in_body:
            super().on_header(name, value)
            return
        self._trailer_bytes += len(name) + len(value) + _FIELD_BYTES
        if self._trailer_bytes > HEAD_BYTES_MAX:
            raise _HeadRefusedError(_LONG_TRAILERS)

    def on_headers_complete(self) -> None:
        """A head is whole. What HTTP/1.1 asks of it, and the parser lets pass, is looked at here."""
        self._is_in_head, self._trailer_bytes, self._pending_bytes = False, 0, 0
        version = self.parser.get_http_version()
        hosts = sum(name == b"host" for name, _ in self.headers)
        if version not in _VERSIONS:
            raise _HeadRefusedError(f"HTTP/{version} is not spoken here; use HTTP/1.1")
        if hosts != 1 and (hosts or version != "1.0"):
            raise _HeadRefusedError("a request has one header Host")
        if not self.url.startswith(b"/") or b"#" in self.url:
            raise _HeadRefusedError("the target of a request begins with / and has no #; this is no proxy")
        if len(self.pipeline) >= PIPELINED_MAX:
            raise _HeadRefusedError(f"more than {PIPELINED_MAX} requests wait for one; read its answer first")
        self._is_in_body = True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._pending_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """An answer is sent. Who has not read the whole request by then will not; nobody else does."""
        if self._is_in_body and self.cycle.response_complete:
            self.transport.close()
        super().on_response_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Another protocol is offered right behind another request, where the offer was not taken out."""
        self._refuse(HTTPStatus.BAD_REQUEST, ProblemCode.INVALID_REQUEST, "only HTTP/1.1 is spoken here")

    def send_400_response(self, msg: str) -> None:
        """Answers what cannot be read as a request."""
        error = sys.exc_info()[1]
        if isinstance(error, HttpParserCallbackError) and isinstance(error.__context__, _HeadRefusedError):
            error = error.__context__
        self._refuse(HTTPStatus.BAD_REQUEST, ProblemCode.INVALID_REQUEST, str(error or msg))

    # ---- bounds ----

    def _wait_for_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.limits.head_s, self._give_up)

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
            told = f"the head of the request did not arrive within {self.limits.head_s:g} s"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, ProblemCode.REQUEST_TIMEOUT, told)
        else:
            self.transport.close()

    def _owes_answer(self) -> bool:
        """Whether a request before the one that is being read has no whole answer, or that one has begun."""
        if self.cycle is None or self.cycle.response_complete:
            return False
        return bool(self.pipeline) or self.cycle.response_started or not self._is_in_body

    def _refuse_long_head(self) -> None:
        told = f"the head of the request is longer than {HEAD_BYTES_MAX} bytes"
        self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, ProblemCode.INVALID_REQUEST, told)

    def _refuse(self, status: HTTPStatus, code: ProblemCode, detail: str) -> None:
        """Sends a problem document and hangs up; there is no request that the application could answer.

        Where an earlier answer is under way or to come, it only hangs up: a client would read the document as that
        answer, or as a part of it.
        """
        self._stop_waiting()
        if self._owes_answer():
            self.transport.abort()
            return
        request_id = uuid.uuid4().hex
        problem = Problem(
            title=status.phrase,
            status=status,
            detail=detail,
            code=code,
            request_id=request_id,
            retryable=code in {ProblemCode.REQUEST_TIMEOUT, ProblemCode.RATE_LIMITED},
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


def prompt_protocol(limits: ConnectionLimits) -> type[PromptProtocol]:
    """The protocol with its bounds."""
    return type("PromptProtocol", (PromptProtocol,), {"limits": limits})
