"""The least that speaks HTTP to a service: a client's own time is a part of what it measures.

A call of httpx takes two milliseconds more.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Self

_ANSWER_BYTES_MAX = 1 << 26
_FAILED = 400


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer.

    Attributes:
        status: its code.
        headers: by their names in lower case.
        body: its bytes.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_error(self) -> bool:
        """Whether it says that something went wrong."""
        return self.status >= _FAILED

    @property
    def text(self) -> str:
        """Its bytes, to be read."""
        return self.body.decode(errors="replace")

    def json(self) -> Any:
        """What it says."""
        return json.loads(self.body)


class LeanClient:
    """Connections to a server that are kept; as many as there are requests at one time."""

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._port, self._host = port, host
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for streams in self._idle:
            streams[1].close()
        self._idle.clear()

    async def send(self, method: str, path: str, body: bytes, key: str = "", lease: int = 0) -> Answer:
        """One request, whose body is JSON, and its answer; with an API key and a run's lease, if these are given.

        Raises:
            OSError, asyncio.IncompleteReadError: the connection was refused or lost.
        """
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof():  # else the service has ended it, as nothing came for a while
                break
            writer.close()
        else:
            reader, writer = await asyncio.open_connection(self._host, self._port, limit=_ANSWER_BYTES_MAX)
        who = f"Authorization: Bearer {key}\r\n" if key else ""
        if lease:
            who += f"Run-Lease: {lease}\r\n"
        try:
            writer.write(
                f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n{who}\r\n".encode()
                + body
            )
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
            answer = Answer(
                int(head[0].split()[1]), headers, await reader.readexactly(int(headers["content-length"]))
            )
        except BaseException:
            writer.close()
            raise
        if headers.get("connection", "").lower() == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return answer
