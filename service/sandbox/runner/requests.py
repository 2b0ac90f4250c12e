"""What a runner is asked for: a program, and what is collected after it, as frames."""

import json
import math
from dataclasses import asdict, dataclass

from proofbox.service.sandbox.network import ProgramNetwork
from proofbox.service.sandbox.port import Job, OutputSpec
from proofbox.service.sandbox.runner.file_frames import PIECE_BYTES
from proofbox.service.sandbox.runner.frames import Frame, encode

_WALL_FACTOR = 6


@dataclass(frozen=True, slots=True)
class InspectorBounds:
    """What the inspector may spend on opening files, inside the sandbox.

    Attributes:
        seconds_per_file: processor time for one file.
        image_pixels_max: pixels of one image.
        unpacked_bytes_max: bytes that the members of one archive may claim.
        members_max: members of one archive.
        pages_max: pages of one document.
    """

    seconds_per_file: int
    image_pixels_max: int
    unpacked_bytes_max: int
    members_max: int
    pages_max: int

    @property
    def wall_seconds_per_file(self) -> int:
        """Wall clock for one file: far more than its processor time, so that a busy host changes no verdict."""
        return _WALL_FACTOR * self.seconds_per_file


def job_frames(job: Job, pass_on_bytes: int, nonce: bytes, *, collects: bool) -> bytes:
    """A program: what is to be known of it, its code and its input in pieces.

    Args:
        job: the program.
        pass_on_bytes: how much of each of its outputs is passed on as it comes.
        nonce: what every frame carries.
        collects: whether the frame of a collection follows.
    """
    request = {
        "language": job.language,
        "code_bytes": len(job.code),
        "stdin_bytes": len(job.stdin),
        "prog_name": job.prog_name,
        "args": list(job.args),
        "env": dict(job.env),
        "cwd": job.cwd,
        "turn_id": job.turn_id,
        "wall_s": job.limits.wall_s,
        "cpus": math.ceil(job.limits.cpus),
        "memory_bytes": job.limits.memory_bytes,
        "file_bytes": job.limits.file_bytes,
        "output_bytes": job.limits.output_bytes,
        "pass_on_bytes": pass_on_bytes,
        "collects": collects,
        "packages": "" if job.packages is None else job.packages.path,
        "network": None if job.network is None else _network(job.network),
    }
    pieces = [
        data[at : at + PIECE_BYTES] for data in (job.code, job.stdin) for at in range(0, len(data), PIECE_BYTES)
    ]
    frames = [encode(Frame.DATA, nonce, piece) for piece in pieces]
    return b"".join([encode(Frame.JOB, nonce, json.dumps(request).encode()), *frames])


def _network(network: ProgramNetwork) -> dict[str, int | str]:
    bounds = network.bounds
    return {"open_max": bounds.open_max, "accepted_max": bounds.accepted_max, "roots": network.roots}


def collection_frame(wanted: OutputSpec, bounds: InspectorBounds, nonce: bytes) -> bytes:
    """What is to be judged, opened and sent when the program has ended."""
    request = {
        "files": [
            {
                "rel": w.rel,
                "is_glob": w.is_glob,
                "matches_max": w.matches_max,
                "opened_max": w.opened_max,
                "checks": w.checks,
            }
            for w in wanted.files
        ],
        "extras_max": wanted.extras_max,
        "workspace": None if wanted.workspace is None else asdict(wanted.workspace),
        "limits": {
            "files": wanted.limits.files,
            "depth": wanted.limits.depth,
            "artifact_bytes": wanted.limits.artifact_bytes,
            "out_dir_bytes": wanted.limits.out_dir_bytes,
        },
        "inspect": {
            "seconds_per_file": bounds.seconds_per_file,
            "wall_seconds_per_file": bounds.wall_seconds_per_file,
            "image_pixels_max": bounds.image_pixels_max,
            "unpacked_bytes_max": bounds.unpacked_bytes_max,
            "members_max": bounds.members_max,
            "pages_max": bounds.pages_max,
        },
    }
    return encode(Frame.COLLECT, nonce, json.dumps(request).encode())
