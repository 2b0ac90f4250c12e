"""The runner's side of the stream: whatever the service sends, or stops sending, the container ends by itself."""

import json
import struct
import subprocess

import pytest

from proofbox.service.app.own_image import own_image

pytestmark = pytest.mark.docker

IMAGE = own_image()
HEADER = struct.Struct(">B16sI")
NONCE = bytes(range(16))
PUT, DATA, JOB, COLLECT = 1, 2, 3, 4
# Far above what an end takes; below it nothing is waited for.
ENDS_WITHIN_S = 60


def frame(kind: int, payload: object = b"", nonce: bytes = NONCE, length: int | None = None) -> bytes:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return HEADER.pack(kind, nonce, len(body) if length is None else length) + body


def put(*files: dict) -> bytes:
    return frame(PUT, {"turn_id": "turn_1", "files": list(files)})


def job(code: bytes, **fields: object) -> bytes:
    told = {
        "language": "python",
        "code_bytes": len(code),
        "prog_name": "main",
        "turn_id": "turn_1",
        "wall_s": 600,
        "file_bytes": 1_000_000,
        "output_bytes": 1_000_000,
        "pass_on_bytes": 1_000_000,
        "collects": False,
    }
    return frame(JOB, {**told, **fields}) + frame(DATA, code)


FILE = {"path": "turn_0/files/a", "size": 1_000_000, "writable": False}
COLLECTS = {
    "files": [],
    "extras_max": 5,
    "limits": {"files": 5, "depth": 5, "artifact_bytes": 100, "out_dir_bytes": 100},
    "inspect": {
        "seconds_per_file": 1,
        "wall_seconds_per_file": 1,
        "image_pixels_max": 1,
        "unpacked_bytes_max": 1,
        "members_max": 1,
        "pages_max": 1,
    },
}
SLEEPS = b"import time\nprint('runs', flush=True)\ntime.sleep(600)"
SENT = {
    "nothing": b"",
    "no frames": b"GET / HTTP/1.1\r\n\r\n" * 100,
    "half a header": frame(PUT)[:9],
    "half a payload": put()[:-3],
    "a payload of four gigabytes": frame(PUT, b"x", length=2**32 - 1),
    "another nonce": put() + frame(PUT, b"{}", NONCE[::-1]),
    "types that there are none of": b"".join(frame(kind, b"{}") for kind in (0, 9, 99, 255)),
    "no JSON": frame(PUT, b"\xff{"),
    "JSON without end": frame(PUT, b"[" * 1_000_000),
    "JSON of another shape": frame(PUT, [1, 2]),
    "fields that are missing": frame(JOB, {}),
    "a file that stops": put(FILE) + frame(DATA, b"x" * 1_000),
    "a file of a negative size": put({**FILE, "size": -5}) + frame(DATA, b"x"),
    "a file where none can be": put({**FILE, "path": "../../etc/x", "size": 0}),
    "a job whose code stops": job(b"", code_bytes=9),
    "a job and nobody there any more": put() + job(SLEEPS),
    "a job and noise while it runs": put() + job(SLEEPS) + b"\0" * 1_000,
    "a job of another language": put() + job(b"x", language="cobol"),
    "a job that collects, and nothing to collect": put() + job(SLEEPS, collects=True),
    "a job that collects, and another frame": put() + job(SLEEPS, collects=True) + put(),
    "a job that collects without limits": put() + job(b"", collects=True) + frame(COLLECT, {}),
    "a collection before anything": frame(COLLECT, COLLECTS),
    "a collection without its limits": put() + frame(COLLECT, {}),
}  # fmt: skip


@pytest.mark.parametrize("name", SENT)
def test_a_runner_whose_service_talks_nonsense_ends_and_leaves_nothing(name):
    folders = [f"--tmpfs={folder}:uid=10001,gid=10001,mode=700" for folder in ("/out", "/job", "/tmp")]
    command = ["docker", "run", "--rm", "--interactive", "--network=none", "--read-only", *folders, IMAGE]
    done = subprocess.run(command, input=SENT[name], capture_output=True, check=False, timeout=ENDS_WITHIN_S)
    assert done.stdout[:1] == b"\x10"  # it was ready
    assert done.returncode in {0, 1}
