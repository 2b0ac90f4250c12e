"""The side that most would write themselves: ``docker run`` of the same image, hardened as our containers are."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bench.serving import ROOT
from bench.speed.model import DOCKER, INPUTS, OUTPUTS, CallFailedError, Job
from proofbox.service.app.settings import Settings

IMAGE = Settings().sandbox_image
SECCOMP = ROOT / "sandbox_images" / "seccomp" / "sandbox.json"
# Hardened as our own containers are, so that both sides do the same work.
DOCKER_RUN = (
    "docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL",
    "--security-opt", "no-new-privileges", "--security-opt", f"seccomp={SECCOMP}",
    "--memory", "1g", "--memory-swap", "1g", "--pids-limit", "256", "--log-driver", "none",
    "--tmpfs", "/out:rw,nosuid,nodev,size=256m,uid=10001", "--tmpfs", "/tmp:rw,nosuid,nodev,size=64m,uid=10001",  # noqa: S108 - in the container
)  # fmt: skip
HOME = "/tmp/home"  # noqa: S108 - in the container
_REQUEST = "request.json"


def command(job: Job) -> list[str]:
    """What runs in the container, from its folder ``/out``.

    A home folder with the image's font list costs a copy of a few milliseconds and saves matplotlib a second.
    """
    if job.document is not None:
        program = f"exec env PYTHONPATH=/opt/proofbox python3 -m render {INPUTS}/{_REQUEST} >/dev/null"
    elif not job.needs_home:
        return ["python3", "-c", job.code or ""]
    else:
        program = 'exec python3 -c "$0"'
    return ["sh", "-c", f"cp -rT /opt/proofbox/skel {HOME}; export HOME={HOME}; {program}", job.code or ""]


@dataclass(slots=True)
class DockerRun:
    """One ``docker run`` a call, from the command line to the removed container.

    Inputs lie in a folder that is mounted, outputs are written to another: no way is faster.

    Attributes:
        folder: where those folders are made.
    """

    folder: Path
    name: str = DOCKER
    pause_s: float = 0.1
    _inputs: dict[str, Path] = field(default_factory=dict)

    async def prepare(self, job: Job) -> None:
        """Writes the inputs, or the renderer's request."""
        if not job.inputs and job.document is None:
            return
        inputs = self.folder / f"{job.name}-in"
        inputs.mkdir(exist_ok=True)
        for name, content in job.inputs.items():
            (inputs / name).write_bytes(content)
        if job.document is not None:
            request = {
                "output": "pdf",
                "source_format": "html",
                "content": job.document,
                "root": "/out",
                "target": f"{OUTPUTS}/report.pdf",
                "metadata": {"title": job.title},
            }
            (inputs / _REQUEST).write_text(json.dumps(request), encoding="utf-8")
        open_to_all(inputs)
        self._inputs[job.name] = inputs

    async def run(self, job: Job) -> None:
        """See `Side.run`."""
        if not job.outputs:
            job.check(await output_of(*self._command(job, None)), {})
            return
        with made_folder(self.folder) as made:
            stdout = await output_of(*self._command(job, made))
            job.check(stdout, {file.name: file.stat().st_size for file in made.iterdir()})

    def _command(self, job: Job, made: Path | None) -> list[str]:
        inputs = self._inputs.get(job.name)
        mounts = [] if inputs is None else ["--volume", f"{inputs}:/out/{INPUTS}:ro"]
        if made is not None:
            mounts += ["--volume", f"{made}:/out/{OUTPUTS}"]
        entrypoint, *arguments = command(job)
        return [*DOCKER_RUN, *mounts, "--workdir", "/out", "--entrypoint", entrypoint, IMAGE, *arguments]


@contextlib.contextmanager
def made_folder(below: Path) -> Iterator[Path]:
    """A folder that the container's user can write to."""
    with tempfile.TemporaryDirectory(dir=below) as name:
        made = Path(name)
        made.chmod(0o777)
        yield made


def open_to_all(folder: Path) -> None:
    """Lets the container's user read what lies there, whatever this user's umask is."""
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)


async def output_of(*arguments: str) -> bytes:
    """What a program printed.

    Raises:
        CallFailedError: it failed; with what it said.
    """
    process = await asyncio.create_subprocess_exec(
        *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await process.communicate()
    except asyncio.CancelledError:
        # Another call has failed: this one ends by itself, and its container with it.
        await process.wait()
        raise
    if process.returncode != 0:
        raise CallFailedError(
            f"{arguments[0]}: status {process.returncode}: {err.decode(errors='replace')[-2000:]}"
        )
    return out
