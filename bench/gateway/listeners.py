"""A process with many event streams of spaces, which notes when each event arrives.

Usage: python -m bench.gateway.listeners PORT PER_SPACE SPACE_ID…

It prints a line when all streams are open. Then each line on its input is a number: it prints, as JSON, the
latencies of so many events in milliseconds once they have arrived. A message has the time when it was sent as its
text; the clock is the machine's, so the processes agree. It ends with its input.
"""

import json
import os
import re
import resource
import select
import socket
import sys
import time

_SENT = re.compile(rb'"text":\s?"sent (\d+)"')
_HEAD_END = b"\r\n\r\n"
_EVENT_END = b"\n\n"
_BUFFER = 1 << 16
_LINE_MAX = 100
_CONNECTING = 50
_PATIENCE_S = 30.0


class Listeners:
    """Open streams.

    Args:
        port: of the service, on this machine.
        paths: the stream that each listens to.
    """

    def __init__(self, port: int, paths: list[str]) -> None:
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._unread: dict[int, bytes] = {}
        self.latencies: list[float] = []
        """Milliseconds, in the order of arrival."""
        self.ended = 0
        """Streams that the service ended."""
        for first in range(0, len(paths), _CONNECTING):
            opened = [self._connect(port, path) for path in paths[first : first + _CONNECTING]]
            for connection in opened:  # the head of the response: the service has them all now
                self._unread[connection.fileno()] = _read_head(connection)
                connection.settimeout(0)
                self._poll.register(connection.fileno(), select.EPOLLIN)

    def _connect(self, port: int, path: str) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self._sockets[connection.fileno()] = connection
        return connection

    def collect(self, count: int) -> list[float]:
        """The latencies of so many events; fewer if none comes for half a minute."""
        while len(self.latencies) < count:
            if not self.read(_PATIENCE_S):
                break
        found, self.latencies = self.latencies, []
        return found

    def read(self, timeout_s: float, beside: int | None = None) -> bool:
        """Read what has come; whether anything has, or ``beside`` can be read."""
        ready = self._poll.poll(timeout_s)
        for number, _ in ready:
            if number != beside:
                self._read_one(number)
        return bool(ready)

    def watch(self, beside: int) -> None:
        """Let `read` return when another file can be read too."""
        self._poll.register(beside, select.EPOLLIN)

    def _read_one(self, number: int) -> None:
        data = self._sockets[number].recv(_BUFFER)
        now = time.perf_counter_ns()
        if not data:
            self._poll.unregister(number)
            self.ended += 1
            return
        whole, end, rest = (self._unread[number] + data).rpartition(_EVENT_END)
        self._unread[number] = rest
        self.latencies += [(now - int(sent)) / 1e6 for sent in _SENT.findall(whole + end)]


def _read_head(connection: socket.socket) -> bytes:
    """Read the head of a response; what came behind it."""
    data = b""
    while _HEAD_END not in data:
        more = connection.recv(_BUFFER)
        if not more:
            raise SystemExit("the service ended a stream before its head")
        data += more
    head, _, body = data.partition(_HEAD_END)
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(head.decode(errors="replace"))
    return body


def main() -> None:
    """Opens the streams and answers its input."""
    port, per_space, *spaces = sys.argv[1:]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    began = time.perf_counter()
    paths = [f"/v1/spaces/{space}/events?after=1" for space in spaces for _ in range(int(per_space))]
    listeners = Listeners(int(port), paths)
    print(json.dumps({"opened": len(paths), "opened_s": time.perf_counter() - began}), flush=True)
    reading = sys.stdin.fileno()
    listeners.watch(reading)
    while True:
        ready = select.select([reading], [], [], 0)[0]
        if not ready:
            listeners.read(_PATIENCE_S, reading)
            continue
        line = os.read(reading, _LINE_MAX)  # the parent waits for the answer before it writes the next line
        if not line:
            return
        found = listeners.collect(int(line))
        print(json.dumps({"latencies": found, "ended": listeners.ended}), flush=True)


if __name__ == "__main__":
    main()
