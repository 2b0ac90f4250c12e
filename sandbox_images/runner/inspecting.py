"""The inspector, asked: one that was forked into this container from outside, or a fork of this runner."""

from __future__ import annotations

import _signal
import _socket
import os
import select
import time

import frames
import run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import adopting

_READ_BYTES = 65_536
_VERDICT_BYTES_MAX = 65_536
_PROBLEM_CHARS_MAX = 300
_SAID_BYTES_MAX = 64 * 1024 * 1024  # a contract has hundreds of files
# The inspector keeps the time of each file; these are for the inspector itself, should it hang as a whole.
_SPARE_S = 30
PATIENCE_S = 1.0
_LOOK_AGAIN_S = 0.005


class Inspector:
    """Opens hostile files with libraries that can be hurt: a process that has nothing of the runner's.

    ``door`` is None where nothing is forked in.
    """

    def __init__(self, channel: frames.Channel, door: adopting.Door | None) -> None:
        self._channel = channel
        self._door = door
        self._own: tuple[int, int] | None = None
        self._has_come = False

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

    def verdicts(self, request: dict[str, Any], *, of_plain_files: bool) -> dict[int, dict[str, Any]]:
        """What it says of the files of a request, by their ids; nothing of those that it died before.

        One from outside may judge files itself that one judge would be forked for. If it ends by that, another one
        is called for those that are left.
        """
        came = self._door.inspector() if self._door is not None else None
        verdicts: dict[int, dict[str, Any]] = {}
        if came is not None:
            self._has_come = True
            is_done, verdicts = self._of_first(came, request)
            if is_done:
                return verdicts
            left = [file for file in request["files"] if file["id"] not in verdicts]
            request = {**request, "files": left}
            came = self._another(came, of_plain_files=of_plain_files)
        answers = self._forked(request) if came is None else _handed(came, request)
        lines = self._lines(answers, len(request["files"]), _seconds(request) + _SPARE_S)
        return {**verdicts, **_by_id(lines)}

    def stop(self) -> None:
        """Stops one from outside: what is sent is what was judged, even if a file has taken it over.

        It ends with the container: the kernel takes some milliseconds to take a process apart, which the answer to
        the call would wait for.
        """
        if self._has_come:
            try:
                os.kill(-1, _signal.SIGSTOP)
            except ProcessLookupError:  # it has died
                return

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

    def _of_first(self, came: int, request: dict[str, Any]) -> tuple[bool, dict[int, dict[str, Any]]]:
        """What the first one says, and whether nobody else has to be asked."""
        files = request["files"]
        answers = _handed(came, {**request, "here": True})
        lines = self._lines(answers, len(files) + 1, _seconds(request) + _SPARE_S)
        if not lines:
            return False, {}
        announced = frames.read_json(lines[0])  # said before a file was opened
        if not announced["here"]:
            return True, _by_id(lines[1:])
        verdicts = _judged_here(files, announced["mimes"], lines[1:])
        return len(verdicts) == len(files), verdicts

    def _another(self, first: int, *, of_plain_files: bool) -> int | None:
        """One more, after a file has ended the first or has taken it over; what that may have started ends too."""
        os.close(first)
        run.end_all_processes(_reaped)
        if self._door is None:
            return None
        self._door.close()  # with whoever has knocked meanwhile
        self.call(of_plain_files=of_plain_files, patience_s=PATIENCE_S)
        return self._door.inspector() if self._door is not None else None

    def _forked(self, request: dict[str, Any]) -> int:
        import forked_inspector  # noqa: PLC0415 - with it come the inspector's modules

        self._has_come = False
        self._own = forked_inspector.start(frames.write_json(request))
        return self._own[1]

    def _lines(self, fd: int, lines: int, seconds: float) -> list[bytes]:
        """So many whole lines, or those that there are after ``seconds``, or when it ends."""
        said = self._read(fd, lines, time.monotonic() + seconds, (lines + 1) * _VERDICT_BYTES_MAX)
        return said[: said.rfind(b"\n") + 1].splitlines()

    def _read(self, fd: int, lines: int, deadline: float, bytes_max: int) -> bytes:
        """What comes until so many lines or bytes are there, or nothing more will be; 0 lines: not until then."""
        said, seen = bytearray(), 0
        while len(said) < bytes_max and (not lines or seen < lines):
            readable, _, _ = select.select(
                [fd, self._channel.read_fd], [], [], max(0.0, deadline - time.monotonic())
            )
            if self._channel.read_fd in readable:
                raise frames.StreamEndedError  # meanwhile the service only ever hangs up
            try:
                piece = os.read(fd, _READ_BYTES) if readable else b""
            except ConnectionResetError:
                piece = b""
            if not piece:
                break
            said += piece
            seen += piece.count(b"\n")
        return bytes(said)


def _handed(came: int, request: dict[str, Any]) -> int:
    """The same socket, over which a request has gone."""
    with_request = _socket.socket(fileno=came)
    try:
        with_request.sendall(frames.write_json(request))
        with_request.shutdown(_socket.SHUT_WR)
    except OSError:
        pass  # it has died, and says nothing
    return with_request.detach()


def _seconds(request: dict[str, Any]) -> float:
    seconds: float = request["seconds_per_file"]
    return seconds * len(request["files"])


def _by_id(lines: list[bytes]) -> dict[int, dict[str, Any]]:
    verdicts = {}
    for line in lines:
        verdict = frames.read_json(line)
        verdicts[verdict.pop("id")] = verdict
    return verdicts


def _judged_here(files: list[dict[str, Any]], mimes: list[str], lines: list[bytes]) -> dict[int, dict[str, Any]]:
    """The verdicts of a process that has opened the files itself, up to the first that is none."""
    verdicts: dict[int, dict[str, Any]] = {}
    for file, mime, line in zip(files, mimes, lines):  # noqa: B905 - of the last there may be none
        said = _verdict(line)
        if said is None:
            break
        verdicts[file["id"]] = {**said, "mime": mime}
    return verdicts


def _verdict(line: bytes) -> dict[str, Any] | None:
    """What a hostile file may have made up, if it has the shape of a verdict."""
    try:
        said = frames.read_json(line) if len(line) <= _VERDICT_BYTES_MAX else None
    except (ValueError, RecursionError, StopIteration):
        return None
    if not isinstance(said, dict) or set(said) != {"ok", "problem", "facts"} or not _are_facts(said["facts"]):
        return None
    if not isinstance(said["problem"], str | None) or said["ok"] is not (said["problem"] is None):
        return None
    if said["problem"] is not None:
        shown = (character if character.isprintable() else " " for character in said["problem"])
        said["problem"] = "".join(shown)[:_PROBLEM_CHARS_MAX]
    return said


def _are_facts(facts: Any) -> bool:
    """Whole numbers, texts, and lists of texts: nothing that could not be passed on."""
    if not isinstance(facts, dict):
        return False
    values = [each for value in facts.values() for each in (value if isinstance(value, list) else [value])]
    return all(isinstance(each, str | int) for each in values)


def _reaped(pid: int, status: int) -> None:
    """How a process ends that a file has started is nobody's."""


def end(pid: int) -> None:
    """Kills an inspector, if it still runs, and reaps it if it is a child of this process."""
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
