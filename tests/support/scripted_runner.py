"""The other side of `ScriptedContainers`: a process that speaks to the service as runners do, without containers.

Descriptors of streams come over the socket that is its standard input; each is served by a thread. The code of a
job is JSON: ``{"stdout": text, "files": {path: size}}``. Every file holds a pattern that begins with its path.
"""

import array
import fnmatch
import json
import os
import socket
import sys
import threading
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "sandbox_images" / folder) for folder in ("runner", "")]

import frames  # noqa: E402 - found by the line above

from proofbox.sandbox_images.runner_protocol import frame_format  # noqa: E402 - found by the line above

_PIECE_BYTES = 256 * 1024


def content(rel: str, size: int) -> bytes:
    """What a file holds."""
    pattern = f"{rel} ".encode()
    return (pattern * (size // len(pattern) + 1))[:size]


def _put(channel: frames.Channel, request: dict) -> None:
    for file in request["files"]:
        left = file["size"]
        while left > 0:
            _, piece = channel.receive()
            left -= len(piece)
    channel.send(frame_format.PUT_DONE)


def _run(channel: frames.Channel, request: dict) -> dict:
    code = b""
    while len(code) < request["code_bytes"]:
        code += channel.receive()[1]
    job = json.loads(code)
    if job.get("stdout"):
        channel.send(frame_format.STDOUT, b"\0" + job["stdout"].encode())
    channel.send_json(frame_format.EXIT, {"exit_code": 0, "output": [], "cpu_ms": 1.0})
    return job


def _collect(channel: frames.Channel, request: dict, files: dict[str, int]) -> None:
    for promise, wanted in enumerate(request["files"]):
        matches = [rel for rel in sorted(files) if rel == wanted["rel"] or fnmatch.fnmatchcase(rel, wanted["rel"])]
        if not matches:
            channel.send_json(
                frame_format.FOUND, {**_row(promise, wanted["rel"]), "state": "missing", "keep": False}
            )
        for rel in matches:
            size = files[rel]
            mime = "text/plain" if rel.endswith(".txt") else "application/octet-stream"
            inspection = {"ok": True, "mime": mime, "problem": None, "facts": {}}
            row = {**_row(promise, rel), "size": size, "inspection": inspection, "same_as": None}
            channel.send_json(frame_format.FOUND, row)
            data = memoryview(content(rel, size))
            for at in range(0, size, _PIECE_BYTES):
                channel.send(frame_format.DATA, data[at : at + _PIECE_BYTES].tobytes())
    done = {"extras_total": 0, "files_exceeded": False, "depth_exceeded": False}
    channel.send_json(frame_format.COLLECTED, done)


def _row(promise: int, rel: str) -> dict:
    return {"promise": promise, "rel": rel, "state": "file", "size": 0, "inspection": None, "keep": True}


def _serve(fd: int) -> None:
    channel = frames.Channel(fd, fd)
    files: dict[str, int] = {}
    try:
        channel.send_json(frame_format.READY, {})
        while True:
            kind, payload = channel.receive()
            request = json.loads(payload) if payload else {}
            if kind == frame_format.PING:
                channel.send(frame_format.PONG)
            elif kind == frame_format.LAUNCH:
                channel.send(frame_format.LAUNCHED)
            elif kind == frame_format.PUT:
                _put(channel, request)
            elif kind == frame_format.JOB:
                files = _run(channel, request).get("files", {})
            elif kind == frame_format.COLLECT:
                _collect(channel, request, files)
    except (frames.StreamEndedError, OSError):
        os.close(fd)


def main() -> None:
    """Serves streams until the service closes the socket."""
    door = socket.socket(fileno=0)
    room = socket.CMSG_SPACE(array.array("i", [0]).itemsize)
    while True:
        said, ancillary, _, _ = door.recvmsg(1, room)
        if not said:
            return
        for _, _, data in ancillary:
            for fd in array.array("i", data[: len(data) - len(data) % 4]):
                threading.Thread(target=_serve, args=(fd,), daemon=True).start()


if __name__ == "__main__":
    main()
