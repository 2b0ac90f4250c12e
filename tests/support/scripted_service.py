"""A real HTTP server that answers from a script, records the raw bytes of requests, and cuts connections."""

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

_PIECE_BYTES = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the connection is reset when it is closed


@dataclass(frozen=True)
class Scripted:
    """One answer.

    Attributes:
        status: the HTTP status.
        body: its body.
        headers: further headers.
        cut_at: close the connection after so many bytes of the body.
        request_cut_at: close the connection after so many bytes of the request's body, without an answer.
        is_silent: send nothing (after ``pieces``, if there are any) until the client goes away.
        pieces: in place of a body: its chunks; with ``cut_at`` the connection is closed after them.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_at: int | None = None
    request_cut_at: int | None = None
    is_silent: bool = False
    pieces: tuple[bytes, ...] | None = None


@dataclass(frozen=True)
class Recorded:
    """A request as it came."""

    head: bytes
    body: bytes

    @property
    def line(self) -> str:
        """Method and target."""
        return self.head.partition(b"\r\n")[0].decode().removesuffix(" HTTP/1.1")

    @property
    def headers(self) -> dict[str, str]:
        """The headers by their names in small letters."""
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        pairs = (line.split(": ", 1) for line in lines if line)
        return {name.lower(): value for name, value in pairs}

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class ScriptedService:
    """Answers each request with the next entry of ``script``; the last one is repeated."""

    def __init__(self, *script: Scripted) -> None:
        self.script = deque(script)
        self.requests: list[Recorded] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self._open: set[socket.socket] = set()
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in list(self._open):
            connection.close()
        for thread in self._threads:
            thread.join(10)

    @property
    def lines(self) -> list[str]:
        """Method and target of each request."""
        return [request.line for request in self.requests]

    def answers(self, *script: Scripted) -> None:
        """Set what is answered from now on."""
        self.script = deque(script)

    def _start(self, work: Any, *args: Any) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            self._answer(connection)
        except OSError:
            pass
        finally:
            self._open.discard(connection)
            connection.close()

    def _answer(self, connection: socket.socket) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            piece = connection.recv(_PIECE_BYTES)
            if not piece:
                return  # a connection without a request
            received += piece
        head, _, body = received.partition(b"\r\n\r\n")
        answer = self.script.popleft() if len(self.script) > 1 else self.script[0]
        body, is_whole = _read_body(connection, head, body, answer.request_cut_at)
        self.requests.append(Recorded(head, body))
        if not is_whole:
            _reset(connection)
            return
        _send(connection, answer)


def _read_body(connection: socket.socket, head: bytes, body: bytes, cut_at: int | None) -> tuple[bytes, bool]:
    headers = Recorded(head, b"").headers
    is_chunked = headers.get("transfer-encoding") == "chunked"
    length = int(headers.get("content-length", 0))
    while not body.endswith(b"0\r\n\r\n") if is_chunked else len(body) < length:
        if cut_at is not None and len(body) >= cut_at:
            return body, False
        piece = connection.recv(_PIECE_BYTES)
        if not piece:
            return body, False
        body += piece
    return body, cut_at is None or len(body) < cut_at


def _send(connection: socket.socket, answer: Scripted) -> None:
    length = "Transfer-Encoding: chunked" if answer.pieces is not None else f"Content-Length: {len(answer.body)}"
    lines = [f"HTTP/1.1 {answer.status} Scripted", length, "Connection: close"]
    lines += [f"{name}: {value}" for name, value in answer.headers.items()]
    head = "\r\n".join([*lines, "", ""]).encode()
    if answer.is_silent and answer.pieces is None:
        connection.recv(1)  # until the client closes
        return
    connection.sendall(head)
    for piece in answer.pieces or ():
        connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
    if answer.is_silent:
        connection.recv(1)
    elif answer.cut_at is not None:
        connection.sendall(answer.body[: answer.cut_at])  # closed, not reset, which would lose bytes on their way
    elif answer.pieces is not None:
        connection.sendall(b"0\r\n\r\n")
    else:
        connection.sendall(answer.body)


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    connection.close()
