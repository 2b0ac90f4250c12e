"""The inspector, asked: one that was forked into this container from outside, or a fork of this runner."""

from __future__ import annotations

import _signal
import _socket
import os
import select
import time

import believing
import frames
import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import adopting

_READ_BYTES = 65_536
_LINE_BYTES_MAX = 4 * believing.VERDICT_BYTES_MAX  # characters that travel as escapes
_SAID_BYTES_MAX = 64 * 1024 * 1024  # a contract has hundreds of files
# The inspector keeps the time of each file; these are for the inspector itself, should it hang as a whole.
_SPARE_S = 30
PATIENCE_S = 1.0
"""How long a name is waited for that a socket of the program's has."""
_LOOK_AGAIN_S = 0.005
_WAKE_S = 0.05


class Inspector:
    """Opens hostile files with libraries that can be hurt: a process that has nothing of the runner's.

    ``door`` is None where nothing is forked in.
    """

    def __init__(self, channel: frames.Channel, door: adopting.Door | None) -> None:
        self._channel = channel
        self._door = door
        self._own: tuple[int, int] | None = None
        self._has_come = False
        self._begun: int | None = None  # the answers of one that has its files already
        self._wake_at = 0.0

    def call(self, *, of_plain_files: bool, patience_s: float) -> None:
        """Asks the service for one, which it forks; to be called before `verdicts`.

        Args:
            of_plain_files: whether no library is needed for the files that it will open.
            patience_s: how long to wait for a socket of the program's that has our name, until the kernel has taken
                it back; if it does not, a fork of this process inspects.

        Raises:
            OSError: there was no patience.
        """
        if self._door is None:
            return
        until = time.monotonic() + patience_s
        while True:
            try:
                self._door.open()
                break
            except OSError:
                if not patience_s:
                    raise
            if time.monotonic() >= until:
                self._door = None
                return
            time.sleep(_LOOK_AGAIN_S)
        self._channel.send(frames.INSPECTOR, b"\1" if of_plain_files else b"\0")

    def begins(self, request: dict[str, Any], within_s: float) -> bool:
        """Whether the one that was called comes in time; it is given its files then, ahead of `verdicts`.

        To be asked only if one `may_come`.
        """
        assert self._door is not None
        came = self._door.inspector_within(within_s)
        if came is not None:
            self._begun = self._handed(came, {**request, "here": True})
        else:
            self._keep_awake()
        return came is not None

    @property
    def may_come(self) -> bool:
        """Whether processes are forked in from outside."""
        return self._door is not None

    def verdicts(self, request: dict[str, Any], *, of_plain_files: bool) -> dict[int, dict[str, Any]]:
        """What it says of the files of a request, by their ids; nothing of those that it died before.

        One from outside may judge files itself that one judge would be forked for. If it ends by that, another one
        is called for those that are left.
        """
        came = self._begun
        if came is None and self._door is not None and (came := self._door.inspector(self._keep_awake)) is not None:
            self._handed(came, {**request, "here": True})
        verdicts: dict[int, dict[str, Any]] = {}
        if came is not None:
            self._has_come = True
            is_done, verdicts = self._of_first(came, request)
            if self._begun is not None:
                # The program still had memory, and leases on its files: whatever is wrong may be its being there.
                verdicts = {file: verdict for file, verdict in verdicts.items() if verdict["ok"]}
                is_done = len(verdicts) == len(request["files"])
            if is_done:
                return verdicts
            left = [file for file in request["files"] if file["id"] not in verdicts]
            request = {**request, "files": left}
            came = self._another(came, of_plain_files=of_plain_files)
        answers = self._forked(request) if came is None else self._handed(came, request)
        lines = self._lines(answers, len(request["files"]), _seconds(request) + _SPARE_S)
        return {**verdicts, **believing.by_id(request["files"], lines)}

    def stop(self) -> None:
        """Stops one from outside, which a file may have taken over, before its files are sent.

        It ends with the container: the kernel takes some milliseconds to take a process apart, which the answer to
        the call would wait for.
        """
        if self._has_come:
            run.signal_all_others(_signal.SIGSTOP)

    def end(self) -> None:
        """Ends a fork of this runner that has said all, having waited for its end a while."""
        if self._own is None:
            return
        pid, answers = self._own
        try:
            self._read(answers, 0, time.monotonic() + _SPARE_S, _SAID_BYTES_MAX)
        finally:
            os.close(answers)
            end(pid)

    def _handed(self, came: int, request: dict[str, Any]) -> int:
        """The same socket, over which a request has gone."""
        with_request = _socket.socket(fileno=came)
        view = memoryview(frames.write_json(request))
        try:
            while view:
                if select.select([], [came], [], _WAKE_S)[1]:
                    view = view[with_request.send(view, _socket.MSG_DONTWAIT) :]
                else:
                    self._keep_awake()
            with_request.shutdown(_socket.SHUT_WR)
        except OSError:
            pass  # it has died, and says nothing
        return with_request.detach()

    def _keep_awake(self) -> None:
        """Lets it go on if it was stopped: what a program has left open can have the kernel send it signals.

        That ends when the kernel has closed it; what kills the inspector by it calls for a second one.
        """
        if time.monotonic() >= self._wake_at:
            self._wake_at = time.monotonic() + _WAKE_S
            run.signal_all_others(_signal.SIGCONT)

    def _of_first(self, answers: int, request: dict[str, Any]) -> tuple[bool, dict[int, dict[str, Any]]]:
        """What the first one says, and whether nobody else has to be asked."""
        files = request["files"]
        lines = self._lines(answers, len(files) + 1, _seconds(request) + _SPARE_S)
        if not lines:
            return False, {}
        announced = frames.read_json(lines[0])  # said before a file was opened
        if not announced["here"]:
            return True, believing.by_id(files, lines[1:])
        verdicts = believing.judged_here(files, announced["mimes"], lines[1:])
        return len(verdicts) == len(files), verdicts

    def _another(self, first: int, *, of_plain_files: bool) -> int | None:
        """One more, after a file has ended the first or has taken it over; what that may have started ends too."""
        os.close(first)
        run.end_all_processes(_reaped)
        if self._door is None:
            return None
        self._door.close()  # with whoever has knocked meanwhile
        self.call(of_plain_files=of_plain_files, patience_s=PATIENCE_S)
        return self._door.inspector(self._keep_awake) if self._door is not None else None

    def _forked(self, request: dict[str, Any]) -> int:
        import forked_inspector  # noqa: PLC0415 - with it come the inspector's modules

        self._has_come = False
        self._own = forked_inspector.start(frames.write_json(request))
        return self._own[1]

    def _lines(self, fd: int, lines: int, seconds: float) -> list[bytes]:
        """So many whole lines, or those that there are after ``seconds``, or when it ends."""
        said = self._read(fd, lines, time.monotonic() + seconds, (lines + 1) * _LINE_BYTES_MAX)
        return said[: said.rfind(b"\n") + 1].splitlines()

    def _heed_service(self) -> None:
        """Meanwhile the service hangs up, or says that no inspector will come any more: one may have died late."""
        kind, _ = self._channel.receive()
        if kind != frames.LAUNCH:
            raise frames.StreamEndedError
        if self._door is not None:
            self._door.close()
            self._door = None

    def _read(self, fd: int, lines: int, deadline: float, bytes_max: int) -> bytes:
        """What comes until so many lines or bytes are there, or nothing more will be; 0 lines: not until then."""
        said, seen = bytearray(), 0
        while len(said) < bytes_max and (not lines or seen < lines):
            left_s = max(0.0, deadline - time.monotonic())
            readable, _, _ = select.select([fd, self._channel.read_fd], [], [], min(left_s, _WAKE_S))
            if not readable and left_s > _WAKE_S:
                self._keep_awake()
                continue
            if self._channel.read_fd in readable:
                self._heed_service()
                continue
            try:
                piece = os.read(fd, _READ_BYTES) if readable else b""
            except ConnectionResetError:
                piece = b""
            if not piece:
                break
            said += piece
            seen += piece.count(b"\n")
        return bytes(said)


def _seconds(request: dict[str, Any]) -> float:
    seconds: float = request["wall_seconds_per_file"]
    return seconds * len(request["files"])


def _reaped(pid: int, status: int) -> None:
    """How a process ends that a file has started is nobody's."""


def end(pid: int) -> None:
    """Kills a fork that inspects, if it still runs, and reaps it."""
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
