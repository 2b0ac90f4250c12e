"""PID 1 of a sandbox: ``ready``, files in, one program, files out, over one framed stream.

Arguments: names of modules that the interpreter imports before the call, if this runner starts it. It loads little
itself: this is paid for each container.
"""

from __future__ import annotations

import _signal
import os
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # of runner_protocol

import direct_socket
import environment
import frames
import open_files
import program_run
from collection import Collection
from out_dir import PROGRAM_MARKS, OutDir
from runner_protocol import frame_format
from zygote import fork_receiver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from workspace import Restoration

OUT_DIR = "/out"
JOB_DIR = "/job"
STDIN_PATH = "/job/stdin"  # no program has this name: each has a suffix
RECORD_PATH = "/job/.shown"
WORKSPACE_LINK = "/job/.files"  # by which paths.c knows the workspace
_SUFFIX = {
    "python": ".py",
    "bash": ".sh",
    "node": ".js",
    "render": ".json",
    "page_text": ".json",
    "inventory": ".json",
}


class Runner:
    """Serves one call."""

    def __init__(self, channel: frames.Channel) -> None:
        self._channel = channel
        self._out = OutDir(OUT_DIR)
        self._launcher: program_run.Launcher | None = None
        self._receiver: fork_receiver.ForkReceiver | None = fork_receiver.ForkReceiver(channel)
        self._restored: Restoration | None = None
        self._own: set[str] = set()  # files beside the program that it did not write
        self._shown: list[str] = []

    def serve(self) -> None:
        """Does what the service asks, until it hangs up."""
        while True:
            kind, payload = self._channel.receive()
            request = frames.read_json(payload) if payload else {}
            if kind == frame_format.PING:
                self._channel.send(frame_format.PONG)
            elif kind == frame_format.ADOPT:
                self._adopt()
            elif kind == frame_format.LAUNCH:
                self._launch()
            elif kind in (frame_format.RESTORE, frame_format.PUT):
                take_in = self._restore if kind == frame_format.RESTORE else self._put_all
                if not take_in(request):
                    return
            elif kind == frame_format.JOB:
                self._run(request)
            elif kind == frame_format.COLLECT:
                self._collect(request)

    def _adopt(self) -> None:
        """Takes an interpreter in that is forked into this container, in place of the one that waits."""
        interpreter = self._receiver.receive_interpreter() if self._receiver is not None else None
        if interpreter is None:
            self._launch()
            return
        if self._launcher is not None:
            self._launcher.end()
        self._launcher = interpreter
        self._channel.send(frame_format.LAUNCHED)

    def _launch(self) -> None:
        """Starts an interpreter, unless one waits; from here on nothing is forked into this container."""
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None
        if self._launcher is None:
            import local_inspector  # noqa: F401, PLC0415 - loaded while the container waits
            import spawn_interpreter  # noqa: PLC0415 - heavy, and only needed here

            self._launcher = spawn_interpreter.launch(environment.program_variables(), sys.argv[1:])
        self._channel.send(frame_format.LAUNCHED)

    def _restore(self, request: dict[str, Any]) -> bool:
        """Restores the workspace of the conversation from the archive in the DATA frames that follow."""
        import workspace  # noqa: PLC0415 - only calls with a workspace need it

        self._begin_turn(request["turn_id"])
        try:
            self._restored = workspace.restore(self._out, workspace.Archive(self._data, request["size"]))
        except OSError as exc:
            return self._fail(f"OUT_DIR cannot hold the workspace of the conversation: {exc.strerror}")
        except workspace.DamagedArchiveError:
            return self._fail("the stored workspace of the conversation is damaged")
        self._channel.send(frame_format.PUT_DONE)
        return True

    def _fail(self, reason: str) -> bool:
        self._channel.send_json(frame_format.FAILED, {"reason": reason})
        return False

    def _begin_turn(self, turn_id: str) -> None:
        self._out.begin_turn(turn_id)
        if not os.path.lexists(WORKSPACE_LINK):
            os.symlink(os.path.join(OUT_DIR, turn_id, "files"), WORKSPACE_LINK)

    def _put_all(self, request: dict[str, Any]) -> bool:
        self._begin_turn(request["turn_id"])
        try:
            for file in request["files"]:
                self._put(file)
        except OSError as exc:
            return self._fail(f"OUT_DIR cannot hold the files of the call: {exc.strerror}")
        self._channel.send(frame_format.PUT_DONE)
        return True

    def _put(self, request: dict[str, Any]) -> None:
        """Takes one file: its bytes follow in DATA frames."""
        if self._restored is not None and not self._has_place(request):
            left = request["size"]
            while left > 0:
                left -= len(self._data())
            return
        fd = self._out.create(request["path"])
        is_program = False
        try:
            left = size = request["size"]
            while left > 0:
                piece = self._data()
                is_program = piece.startswith(PROGRAM_MARKS) if left == size else is_program
                left -= len(piece)
                view = memoryview(piece)
                while view:
                    view = view[os.write(fd, view) :]
        finally:
            os.close(fd)
        self._out.seal(
            request["path"],
            writable=request["writable"],
            executable=is_program,
            made_ns=request["made_ns"],
            links=request["links"],
            copies=request["copies"],
        )

    def _has_place(self, request: dict[str, Any]) -> bool:
        import workspace  # noqa: PLC0415 - loaded by now

        return workspace.make_way(self._out, request["path"], yields=request["yields"])

    def _data(self) -> bytes:
        kind, piece = self._channel.receive()
        if kind != frame_format.DATA:
            raise frames.StreamEndedError
        return piece

    def _bytes(self, size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            data += self._data()
        return data

    def _run(self, request: dict[str, Any]) -> None:
        code = self._bytes(request["code_bytes"])
        stdin = self._bytes(request["stdin_bytes"])
        if self._launcher is None:
            raise frames.StreamEndedError  # the service asks for one first
        if self._receiver is not None:
            self._receiver.close()  # from here on, who would connect is not ours
        wanted = self._wanted_then() if request.get("collects") else None
        if self._restored is not None:
            self._restored.finish()
        path = _program_path(request)
        _write(path, code)
        self._own.add(path)
        if stdin:
            _write(STDIN_PATH, stdin)
        job = {
            **request,
            "path": path,
            "stdin": STDIN_PATH if stdin else None,
            "out_dir": OUT_DIR,
            "record": RECORD_PATH,
            "env": {**request["env"], "TURN_ID": request["turn_id"]},
        }
        if request.get("network"):
            from runner_protocol.network import CA_BUNDLE  # noqa: PLC0415 - only calls with a network need it

            self._own.add(CA_BUNDLE)
        outcome = program_run.ProgramRun(self._channel, self._launcher, job).to_end()
        if os.path.lexists(RECORD_PATH):
            import shown_record  # noqa: PLC0415 - few programs show something

            outcome.update(shown_record.read(RECORD_PATH))
            self._shown = outcome.get("shown", [])
        self._channel.send_json(frame_format.EXIT, outcome)
        if wanted is not None:
            self._collect(wanted)

    def _collect(self, wanted: dict[str, Any]) -> None:
        own = {*self._own, STDIN_PATH, RECORD_PATH}
        Collection(self._channel, self._receiver, self._out, wanted, (JOB_DIR, own), self._shown).send_all()

    def _wanted_then(self) -> dict[str, Any]:
        """What is collected as soon as the program has ended: asked for ahead, which saves a way there and back."""
        kind, payload = self._channel.receive()
        if kind != frame_format.COLLECT:
            raise frames.StreamEndedError
        request: dict[str, Any] = frames.read_json(payload)
        return request


def _write(path: str, data: bytearray) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _program_path(request: dict[str, Any]) -> str:
    """Where the code lies: the name that its tracebacks show."""
    name = "".join(c if c.isalnum() or c in "_.-" else "_" for c in request["prog_name"]).strip(".")[:100] or "main"
    suffix = _SUFFIX[request["language"]]
    return os.path.join(JOB_DIR, name if name.endswith(suffix) else name + suffix)


def main() -> None:
    """Serves one call, or ends when the service hangs up; or is a zygote."""
    if sys.argv[1:2] == ["zygote"]:
        from zygote import bootstrap  # noqa: PLC0415 - once for many containers

        bootstrap.become_zygote(sys.argv[2])
    environment.make_home()
    open_files.LIMITS.raise_own()
    program_run.set_dumpable(readable=False)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # by Python's own handler a program could interrupt process 1
    channel = frames.Channel(0, 1)
    try:
        runner = Runner(channel)
        offered = direct_socket.offer_socket()
        channel.send_json(frame_format.READY, {"python": sys.version.split()[0]})
        if offered is not None:
            direct_socket.use_if_chosen(offered, channel)
        runner.serve()
    except (frames.StreamEndedError, ConnectionError):
        return


main()
