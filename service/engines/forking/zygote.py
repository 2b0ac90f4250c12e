"""One zygote, from the service's side: a process that has imported once, and is asked to fork into containers.

Its program is in the image, ``runner/zygote.py``. All methods block.
"""

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from service.engines.containers import NotForkedError
from service.engines.forking.target import Target

_MESSAGE_BYTES_MAX = 65_536
_REPORT_BYTES_MAX = 4_096
_FORK_S_MAX = 10.0
_DONE = b"."


class Zygote:
    """A zygote behind its socket.

    Attributes:
        forks: how many processes have been forked from it.
        born: when it was ready, on the monotonic clock.
    """

    def __init__(self, door: socket.socket, end: Callable[[], None]) -> None:
        self._door = door
        self._end = end
        self._lock = threading.Lock()
        self.forks = 0
        self.born = 0.0

    def prepare(self, settings: dict[str, Any], within_s: float) -> None:
        """Tells it what to import and what its forks have to be, and waits until it is ready.

        Raises:
            NotForkedError: it died, or was not ready in time.
        """
        try:
            self._door.settimeout(within_s)
            self._door.send(json.dumps(settings).encode())
            said = self._door.recv(_MESSAGE_BYTES_MAX)
        except OSError as exc:
            raise NotForkedError(f"a zygote was not ready within {within_s:.0f} s: {exc}") from exc
        if not said:
            raise NotForkedError("a zygote died while it imported")
        self.born = time.monotonic()

    def fork_into(self, target: Target, *, ahead: bool = False) -> None:
        """Forks a process into a container; it is confined and has met the runner when this returns.

        Args:
            target: the container.
            ahead: whether the process will wait for its call: it copies the memory that one writes to, then.

        Raises:
            NotForkedError: it was not; nothing of it is left.
        """
        reading, writing = os.pipe()
        try:
            try:
                self._ask(target, writing, ahead=ahead)
            finally:
                os.close(writing)
            self._wait(reading)
        finally:
            os.close(reading)
        self.forks += 1

    def _ask(self, target: Target, report: int, *, ahead: bool) -> None:
        numbers = {"namespaces": len(target.namespaces), "control_groups": len(target.control_groups)}
        request = json.dumps({**numbers, "label": target.label, "ahead": ahead}).encode()
        descriptors = [report, target.pids, *target.namespaces, *target.control_groups, *target.group]
        try:
            with self._lock:
                socket.send_fds(self._door, [request], descriptors)
        except OSError as exc:
            self.end()
            raise NotForkedError("the zygote has died") from exc

    def _wait(self, reading: int) -> None:
        told = b""
        deadline = time.monotonic() + _FORK_S_MAX
        # Not select: a service with many clients has descriptors above the thousand that it knows.
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        while told != _DONE:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                self.end()  # with it ends whatever it was about to do
                raise NotForkedError(f"the zygote did not answer within {_FORK_S_MAX:.0f} s")
            piece = os.read(reading, _REPORT_BYTES_MAX)
            if not piece:
                raise NotForkedError(
                    told.decode(errors="replace")
                    or "it was killed, by a lack of memory in the sandbox for one, or the zygote died"
                )
            told += piece

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked."""
        if self._door.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._door.fileno(), 0)
        return not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def end(self) -> None:
        """Hangs up, which ends it, and removes what is left of it; never raises."""
        with self._lock:
            if self._door.fileno() < 0:
                return
            self._door.close()
        with contextlib.suppress(OSError):
            self._end()
