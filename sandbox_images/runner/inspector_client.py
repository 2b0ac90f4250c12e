"""The runner's client of the inspector: one that is forked into this container, or a fork of this process."""

from __future__ import annotations

import _socket
import os
import select
import time

import frames
import program_run
import verdict_validation
from runner_protocol import frame_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zygote import fork_receiver

_READ_BYTES = 65_536
# The inspector bounds the time of each file; these are for the inspector itself, should it hang as a whole.
_SPARE_S = 30.0
# How long to wait until the kernel has closed a socket of the program's that has the name of ours.
_NAME_FREE_WITHIN_S = 1.0
_LOOK_AGAIN_S = 0.005


class InspectorClient:
    """The client of an inspector, a process that opens hostile files and has no descriptor of the runner's.

    ``receiver`` is None where nothing is forked into the container.
    """

    def __init__(self, channel: frames.Channel, receiver: fork_receiver.ForkReceiver | None) -> None:
        self._channel = channel
        self._receiver = receiver

    def judge(self, request: dict[str, Any], *, of_plain_files: bool) -> dict[int, dict[str, Any]]:
        """Has an inspector judge the files of a request, and ends it; no process of the program may be left.

        A file may have taken the inspector over, so it is gone before any file is sent.

        Args:
            request: what the inspector reads.
            of_plain_files: whether no library is needed to open the files.

        Returns:
            Its verdicts by the ids of the files; none on those that it died before.
        """
        data, files = frames.write_json(request), request["files"]
        seconds, began = request["wall_seconds_per_file"] * len(files) + _SPARE_S, time.monotonic()
        answers = self._ask_forked(data, of_plain_files=of_plain_files)
        lines = self._read_and_end(answers, len(files), seconds) if answers is not None else []
        if (
            not lines and time.monotonic() - began < _SPARE_S
        ):  # none was forked, or the host ended it before a verdict
            import local_inspector  # noqa: PLC0415 - with it come the inspector's modules

            lines = self._read_and_end(local_inspector.start(data), len(files), seconds)
        return verdict_validation.validate_verdicts(files, lines)

    def _read_and_end(self, answers: int, count: int, seconds: float) -> list[bytes]:
        """Reads the lines of an inspector, closes its answers and ends it."""
        try:
            return self._read_lines(answers, count, seconds)
        finally:
            os.close(answers)
            program_run.end_all_processes(_ignore_status)

    def _ask_forked(self, request: bytes, *, of_plain_files: bool) -> int | None:
        """Has the service fork an inspector, and sends it the request; None if none comes."""
        if self._receiver is None or not self._is_open(self._receiver):
            return None
        kind = frame_format.OF_PLAIN_FILES if of_plain_files else frame_format.OF_LIBRARY_FILES
        self._channel.send(frame_format.INSPECTOR, kind)
        connection = self._receiver.receive_inspector()
        self._receiver.close()
        if connection is None:
            return None
        connection.settimeout(_SPARE_S)
        try:
            connection.sendall(request)
            connection.shutdown(_socket.SHUT_WR)
        except OSError:
            pass  # it has died, and answers nothing
        connection.settimeout(None)
        return connection.detach()

    @staticmethod
    def _is_open(receiver: fork_receiver.ForkReceiver) -> bool:
        until = time.monotonic() + _NAME_FREE_WITHIN_S
        while True:
            try:
                receiver.open()
            except OSError:
                if time.monotonic() >= until:
                    return False
            else:
                return True
            time.sleep(_LOOK_AGAIN_S)

    def _read_lines(self, fd: int, count: int, seconds: float) -> list[bytes]:
        """Reads ``count`` whole lines; fewer if ``seconds`` are over or the inspector ends first."""
        deadline, bytes_max = time.monotonic() + seconds, (count + 1) * verdict_validation.LINE_BYTES_MAX
        received, lines = bytearray(), 0
        while len(received) < bytes_max and lines < count:
            left_s = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([fd, self._channel.read_fd], [], [], left_s)
            if self._channel.read_fd in readable:
                self._read_service_message()
                continue
            try:
                piece = os.read(fd, _READ_BYTES) if readable else b""
            except OSError:
                piece = b""
            if not piece:
                break
            received += piece
            lines += piece.count(b"\n")
        return bytes(received[: received.rfind(b"\n") + 1]).splitlines()

    def _read_service_message(self) -> None:
        """Reads the service's message: it hangs up, or no inspector comes, since this one has died."""
        kind, _ = self._channel.receive()
        if kind != frame_format.LAUNCH:
            raise frames.StreamEndedError


def _ignore_status(pid: int, status: int) -> None:
    """How the inspector and its judges end is of no interest."""
