"""One zygote, from the service's side: a process that has imported once, and is asked to fork into containers.

Its program is in the image, ``runner/zygote/main.py``. All methods block.
"""

import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.zygotes.fork_target import Target

T = TypeVar("T")
_MESSAGE_BYTES_MAX = 65_536
_REPORT_BYTES_MAX = 4_096
_FORK_S_MAX = 10.0
_ANSWER_S_MAX = 3.0
_DONE = b"."


class _SilentError(NotForkedError):
    """Nobody answered in time."""


class Zygote:
    """A zygote behind its socket.

    Attributes:
        forks: how many processes have been forked from it.
        born: when it was ready, on the monotonic clock.
    """

    def __init__(self, connection: socket.socket, end: Callable[[], None]) -> None:
        self._socket = connection
        self._end = end
        self._lock = threading.Lock()
        self.forks = 0
        self.born = 0.0

    def prepare(self, settings: dict[str, Any], within_s: float) -> None:
        """Sends what to import and what its forks have to be, and waits until it is ready.

        Raises:
            NotForkedError: it died, or was not ready in time.
        """
        try:
            self._socket.settimeout(within_s)
            self._socket.send(json.dumps(settings).encode())
            answer = self._socket.recv(_MESSAGE_BYTES_MAX)
        except OSError as exc:
            raise NotForkedError(f"a zygote was not ready within {within_s:.0f} s: {exc}") from exc
        if not answer:
            raise NotForkedError("a zygote died while it imported")
        self.born = time.monotonic()

    def fork_into(self, target: Target) -> None:
        """Forks a process into a container; it is confined and has met the runner when this returns.

        Raises:
            NotForkedError: it was not; no part of it is left.
        """
        reading, writing = _pair(os.pipe)
        try:
            try:
                self._ask(target, writing)
            finally:
                os.close(writing)
            _wait_for_done(reading, _FORK_S_MAX)
        except _SilentError:
            if not self._serves():
                self.end()  # with it ends whatever it was about to do
            raise
        finally:
            os.close(reading)
        self.forks += 1

    def _serves(self) -> bool:
        """Whether it still answers: then a container holds up its fork, and others are forked as ever."""
        reading, writing = _pair(os.pipe)
        try:
            try:
                self._send({}, [writing])
            finally:
                os.close(writing)
            _wait_for_done(reading, _ANSWER_S_MAX)
        except NotForkedError:
            return False
        finally:
            os.close(reading)
        return True

    def _ask(self, target: Target, report: int) -> None:
        numbers = {"namespaces": len(target.namespaces), "control_groups": len(target.control_groups)}
        request = {**numbers, "label": target.label, "user": target.user_id}
        descriptors = [report, target.pids, *target.namespaces, *target.control_groups, *target.group]
        self._send(request, descriptors)

    def _send(self, request: dict[str, Any], descriptors: list[int]) -> None:
        try:
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        except OSError as exc:
            self.end()
            raise NotForkedError("the zygote has died") from exc

    @property
    def is_alive(self) -> bool:
        """Whether it can still be asked."""
        if self._socket.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._socket.fileno(), 0)
        return not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll(0))

    def end(self) -> None:
        """Hangs up, which ends it, and removes what is left of it; never raises."""
        with self._lock:
            if self._socket.fileno() < 0:
                return
            self._socket.close()
        with contextlib.suppress(OSError):
            self._end()


def _pair(make: Callable[[], tuple[T, T]]) -> tuple[T, T]:
    try:
        return make()
    except OSError as exc:
        raise NotForkedError(f"no pipe for the answer: {exc}") from exc


def _wait_for_done(fd: int, within_s: float) -> None:
    """Waits until a fork reports that it has met the runner; raises NotForkedError if it does not."""
    report = b""
    deadline = time.monotonic() + within_s
    # Not select: a service with many clients has descriptors above the thousand that it knows.
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    while report != _DONE:
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise _SilentError(f"the zygote did not answer within {within_s:.0f} s")
        try:
            piece = os.read(fd, _REPORT_BYTES_MAX)
        except ConnectionResetError:
            piece = b""
        if not piece:
            raise NotForkedError(
                report.decode(errors="replace")
                or "it was killed, by a lack of memory in the sandbox for one, or the zygote died"
            )
        report += piece
