"""HTTP/1.1 over uvicorn's h11 protocol: strict request heads, and limits on connections (`connections`)."""

import asyncio
import re
import sys
import uuid
from http import HTTPStatus
from typing import Any

import h11
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import Problem
from proofbox.service.api.connections import ConnectionLimits, UnreadClock, client_network
from proofbox.service.api.middleware.security_headers import SAFE_HEADERS
from proofbox.service.api.responses import PROBLEM_JSON, REQUEST_ID_HEADER

HEAD_BYTES_MAX = 32 * 1024
_VERSIONS = {b"1.0", b"1.1"}
# A line feed or carriage return alone, a folded line, another control character.
_AMBIGUOUS = re.compile(rb"(?<!\r)\n|\r(?!\n)|\n[ \t]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FRAMING_HEADER = re.compile(rb"\n(?:content-length|transfer-encoding)[ \t]*:", re.IGNORECASE)
_LENGTH_LIST = re.compile(rb"\ncontent-length[ \t]*:[^\r]*,", re.IGNORECASE)
_TRANSFER_ENCODING = re.compile(rb"\ntransfer-encoding[ \t]*:", re.IGNORECASE)
# After the end of another chunk.
_LAST_CHUNK = re.compile(rb"\r?\n?0+(?![0-9A-Fa-f])")
_LAST_CHUNK_BYTES = 24
_CHUNKS_FREE = 20_000
_CHUNK_BYTES_MEAN = 64
_DETAIL_CHARS_MAX = 300
_BEFORE_RESPONSE = (h11.IDLE, h11.SEND_RESPONSE)


class StrictConnection(h11.Connection):
    """Refuse request heads that a proxy in front of the service could read differently.

    RFC 9112 allows a server to accept bare line feeds (§2.2), folded lines (§5.2) and two equal lengths (§6.3), and
    h11 does. h11 also accepts any version and target, control characters, and a head of any length that arrives in
    one piece. The end of a body in chunks is held to the same rules. Bodies of tiny chunks, each of which costs as
    much as a large one, are refused.

    Attributes:
        method: the method of the request that was read last; empty while the next head is not complete.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER, HEAD_BYTES_MAX)
        self.method = b""
        self._chunks = self._chunk_bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the next event.

        Raises:
            h11.RemoteProtocolError: the client does not keep to HTTP/1.1, or the head is too long.
        """
        is_idle, has_last_chunk = self.their_state is h11.IDLE, getattr(self._reader, "_reading_trailer", False)
        received = self.trailing_data[0] if is_idle or has_last_chunk or self._may_have_last_chunk() else b""
        if is_idle:
            self.method = b""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.method, self._chunks, self._chunk_bytes = event.method, 0, 0
            _check_head(event, received[: len(received) - len(self.trailing_data[0])])
        elif isinstance(event, h11.EndOfMessage):
            end = received[: len(received) - len(self.trailing_data[0])]
            # Before the last chunk stands the line end of the chunk before it, perhaps the second half alone.
            if _AMBIGUOUS.search(end if has_last_chunk else end.lstrip(b"\r\n")):
                raise h11.RemoteProtocolError(
                    "a line of the trailers is folded, has a control character or has no CRLF"
                )
        elif isinstance(event, h11.Data):
            self._count_chunk(event)
        return event

    def _may_have_last_chunk(self) -> bool:
        """Whether the next bytes may be the last chunk; to copy all bytes for each chunk would be quadratic."""
        if self.their_state is not h11.SEND_BODY:
            return False
        begins = bytes(self._receive_buffer._data[:_LAST_CHUNK_BYTES])  # noqa: SLF001
        return len(begins) < _LAST_CHUNK_BYTES or _LAST_CHUNK.match(begins) is not None

    def _count_chunk(self, event: h11.Data) -> None:
        self._chunks += event.chunk_start
        self._chunk_bytes += len(event.data)
        if self._chunks > _CHUNKS_FREE and self._chunk_bytes < self._chunks * _CHUNK_BYTES_MEAN:
            raise h11.RemoteProtocolError(
                f"the chunks of the body have less than {_CHUNK_BYTES_MEAN} bytes on average; send larger ones"
            )


def _check_head(request: h11.Request, head: bytes) -> None:
    if len(head) > HEAD_BYTES_MAX:
        raise h11.RemoteProtocolError("the head is too long", HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    if request.http_version not in _VERSIONS:
        raise h11.RemoteProtocolError(f"HTTP/{request.http_version.decode()} is not supported; use HTTP/1.1")
    if not request.target.startswith(b"/") or b"#" in request.target:
        raise h11.RemoteProtocolError("the target of a request begins with / and has no #; this is not a proxy")
    if _AMBIGUOUS.search(head):
        raise h11.RemoteProtocolError("a line of the head is folded, has a control character or has no CRLF")
    if len(_FRAMING_HEADER.findall(head)) > 1:
        raise h11.RemoteProtocolError("a request has one header of Content-Length and Transfer-Encoding")
    if _LENGTH_LIST.search(head):
        raise h11.RemoteProtocolError("Content-Length is one number")
    if request.http_version == b"1.0" and _TRANSFER_ENCODING.search(head):
        raise h11.RemoteProtocolError("HTTP/1.0 has no Transfer-Encoding; use HTTP/1.1")


class LimitedProtocol(H11Protocol):
    """One connection of a client.

    The keep-alive timeout of uvicorn covers the time until the head of a request is complete: it starts with the
    connection, and received bytes do not restart it. A refused request is answered with a problem document.

    Args:
        limits: the limits, shared by all connections of the server.
        args: the arguments of `H11Protocol`.
        kwargs: the same.
    """

    def __init__(self, limits: ConnectionLimits, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conn: StrictConnection = StrictConnection()
        self.timeout_keep_alive = limits.head_s  # type: ignore[assignment]  # seconds of `call_later`
        self._limits = limits
        self._network = ""
        self._unread: UnreadClock | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Writing pauses, and the unread clock runs, while any byte is unread: the end of a response too.
        transport.set_write_buffer_limits(high=0)
        self._network = client_network(self.client[0]) if self.client else ""
        if self._limits.enter(self._network):
            self.timeout_keep_alive_task = self.loop.call_later(
                self._limits.head_s, self.timeout_keep_alive_handler
            )
        else:
            detail = "there are too many connections; close some, or try again later"
            self._refuse(HTTPStatus.TOO_MANY_REQUESTS, ProblemCode.RATE_LIMITED, detail)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._limits.leave(self._network)
        self._unset_keepalive_if_required()
        self.resume_writing()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        # Without restarting the time limit of the head, as uvicorn does.
        self.conn.receive_data(data)
        self.handle_events()

    @override
    def on_response_complete(self) -> None:
        if self.conn.their_state is h11.SEND_BODY:  # what comes now is the rest of a body, and not a request
            self.transport.close()
        super().on_response_complete()

    @override
    def timeout_keep_alive_handler(self) -> None:
        if self.conn.trailing_data[0]:
            detail = f"the head of the request did not arrive within {self._limits.head_s:g} s"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, ProblemCode.REQUEST_TIMEOUT, detail)
        else:
            self.transport.close()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._unread is None:
            self._unread = UnreadClock(self.transport, self._limits.unread_s)

    @override
    def resume_writing(self) -> None:
        if self._unread is not None:
            self._unread.stop()
            self._unread = None
        super().resume_writing()

    @override
    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]
        if getattr(error, "error_status_hint", None) == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            detail = f"the head of the request, a chunk's head or the trailers exceed {HEAD_BYTES_MAX} bytes"
        else:
            status, detail = HTTPStatus.BAD_REQUEST, str(error or msg)[:_DETAIL_CHARS_MAX]
        self._refuse(status, ProblemCode.INVALID_REQUEST, detail)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: Java's client offers HTTP/2 with each first request, and is answered in HTTP/1.1."""

    def _refuse(self, status: HTTPStatus, code: ProblemCode, detail: str) -> None:
        """Send a problem document and close; where a response is under way, only close."""
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        if self.conn.our_state not in _BEFORE_RESPONSE:
            self.transport.abort()
            return
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        problem = Problem(
            title=status.phrase,
            status=status,
            detail=detail,
            code=code,
            request_id=uuid.uuid4().hex,
            retryable=code in {ProblemCode.REQUEST_TIMEOUT, ProblemCode.RATE_LIMITED},
            where="head",
        )
        body = problem.model_dump_json(exclude_none=True).encode()
        headers = {
            "Content-Type": PROBLEM_JSON,
            "Content-Length": str(len(body)),
            REQUEST_ID_HEADER: problem.request_id,
            "Connection": "close",
            **SAFE_HEADERS,
        }
        response = h11.Response(status_code=status, headers=list(headers.items()), reason=status.phrase)
        content = [] if self.conn.method == b"HEAD" else [h11.Data(data=body)]
        for event in (response, *content, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
