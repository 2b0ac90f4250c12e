"""PID 1 of a sandbox: ``ready``, files in, one program, files out, over one framed stream.

Arguments: names of modules that the warm interpreter imports before the call.
"""

import json
import os
import shutil
import signal
import sys
from typing import Any

import frames
import run
from collect import Collection
from outdir import OutDir

OUT_DIR = "/out"
JOB_DIR = "/job"
HOME = "/tmp/home"  # noqa: S108 - the container's own
_SKELETON = "/opt/proofbox/skel"
_SUFFIX = {"python": ".py", "bash": ".sh", "render": ".json", "readable": ".json"}


def _environment() -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "LANG": "C.UTF-8",
        "HOME": HOME,
        "TMPDIR": "/tmp",  # noqa: S108 - the container's own
        "OUT_DIR": OUT_DIR,
        "OUTPUT_DIR": OUT_DIR,
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _put(channel: frames.Channel, out: OutDir, request: dict[str, Any]) -> None:
    """Takes one file: its bytes follow in DATA frames."""
    fd = out.create(request["path"])
    try:
        left = request["size"]
        while left > 0:
            kind, piece = channel.receive()
            if kind != frames.DATA:
                raise frames.StreamEndedError
            left -= len(piece)
            view = memoryview(piece)
            while view:
                view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
    out.seal(request["path"], writable=request["writable"])


def _program_path(request: dict[str, Any]) -> str:
    """Where the code lies: the name that its tracebacks show."""
    name = "".join(c if c.isalnum() or c in "_.-" else "_" for c in request["prog_name"]).strip(".")[:100] or "main"
    suffix = _SUFFIX[request["language"]]
    return os.path.join(JOB_DIR, name if name.endswith(suffix) else name + suffix)


def _run(channel: frames.Channel, out: OutDir, launcher: run.Launcher, request: dict[str, Any]) -> None:
    code = bytearray()
    while len(code) < request["code_bytes"]:
        kind, piece = channel.receive()
        if kind != frames.DATA:
            raise frames.StreamEndedError
        code += piece
    path = _program_path(request)
    with open(path, "wb") as file:
        file.write(code)
    job = {
        **request,
        "path": path,
        "cwd": OUT_DIR,
        "env": {"TURN_ID": request["turn_id"]},
    }
    outcome = run.Run(channel, launcher, job).to_end()
    outcome["disk_full"] = out.is_full()
    channel.send_json(frames.EXIT, outcome)


def _serve(channel: frames.Channel, out: OutDir, launcher: run.Launcher) -> None:
    while True:
        kind, payload = channel.receive()
        request = json.loads(payload) if payload else {}
        if kind == frames.PING:
            channel.send(frames.PONG)
        elif kind == frames.PUT:
            out.begin_turn(request["turn_id"])
            try:
                for file in request["files"]:
                    _put(channel, out, file)
            except OSError as exc:
                channel.send_json(
                    frames.FAILED, {"reason": f"OUT_DIR cannot hold the files of the call: {exc.strerror}"}
                )
                return
            channel.send(frames.PUT_DONE)
        elif kind == frames.JOB:
            _run(channel, out, launcher, request)
        elif kind == frames.COLLECT:
            Collection(channel, out, request).send_all()


def main() -> None:
    """Serves one call, or ends when the service hangs up."""
    if os.path.isdir(_SKELETON):
        shutil.copytree(_SKELETON, HOME, dirs_exist_ok=True)
    else:
        os.makedirs(HOME, exist_ok=True)
    channel = frames.Channel(sys.stdin.fileno(), sys.stdout.fileno())
    launcher = run.Launcher(_environment(), sys.argv[1:])
    launcher.wait_ready()
    run.set_dumpable(readable=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # by Python's own handler a program could interrupt process 1
    try:
        channel.send_json(frames.READY, {"python": sys.version.split()[0]})
        _serve(channel, OutDir(OUT_DIR), launcher)
    except (frames.StreamEndedError, BrokenPipeError):
        return


main()
