"""llm-sandbox and epicbox, in an environment and a process of their own; each call has a fresh container."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.serving import ROOT
from bench.speed.docker_run import HOME, IMAGE, SECCOMP, made_folder, open_to_all, output_of
from bench.speed.model import EPICBOX, INPUTS, LLM_SANDBOX, OUTPUTS, CallFailedError, Job

PEERS = ROOT / "bench" / "peers"
PYTHON = PEERS / ".venv" / "bin" / "python"
PEER_IMAGE = "proofbox-speed-peer:latest"
# epicbox cannot replace an entrypoint, and neither library has a writable home in our image: theirs is the same
# image without its entrypoint, and with the font list where matplotlib looks for it.
_DOCKERFILE = f"""\
FROM {IMAGE}
USER 0:0
RUN cp -rT /opt/proofbox/skel {HOME} && chmod -R a+rwX {HOME}
USER 10001:10001
ENV HOME={HOME}
ENTRYPOINT []
"""
_LINE_MAX = 64 * 1024 * 1024


class Worker:
    """The process in which both libraries are loaded."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())
        self._count = 0

    async def ask(self, request: dict[str, Any]) -> str:
        """What a call printed.

        Raises:
            CallFailedError: it failed; with the library's traceback.
        """
        if self._process.stdin is None or self._reading.done():
            raise CallFailedError("the libraries' process has ended")
        self._count += 1
        number = self._count
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(json.dumps({"id": number, **request}).encode() + b"\n")
        await self._process.stdin.drain()
        said = await answer
        if said["error"]:
            raise CallFailedError(f"{request['side']}: {said['error'][-2000:]}")
        return str(said["stdout"])

    async def _read(self) -> None:
        if self._process.stdout is None:
            return
        async for line in self._process.stdout:
            said = json.loads(line)
            answer = self._asked.pop(said["id"])
            if not answer.done():  # the call was cancelled because another one failed
                answer.set_result(said)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(CallFailedError("the libraries' process ended before its answer"))

    async def close(self) -> None:
        """Lets running calls end and with them their containers."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        await self._process.wait()
        await self._reading


@dataclass(slots=True)
class Library:
    """One of the two as a side.

    Attributes:
        name: `LLM_SANDBOX` or `EPICBOX`.
        worker: the process.
        folder: where inputs and outputs lie on this machine.
    """

    name: str
    worker: Worker
    folder: Path
    pause_s: float = 0.1
    _inputs: dict[str, str] = field(default_factory=dict)

    async def prepare(self, job: Job) -> None:
        """Writes the inputs."""
        if not job.inputs:
            return
        inputs = self.folder / f"{self.name}-{job.name}-in"
        inputs.mkdir(exist_ok=True)
        for name, content in job.inputs.items():
            (inputs / name).write_bytes(content)
        open_to_all(inputs)
        self._inputs[job.name] = str(inputs)

    async def run(self, job: Job) -> None:
        """See `Side.run`. A failed call is repeated: llm-sandbox loses output of many clients now and then."""
        try:
            await self._run_once(job)
        except CallFailedError as exc:
            sys.stderr.write(f"{self.name}: repeated after: {str(exc)[:200]}\n")
            await self._run_once(job)

    async def _run_once(self, job: Job) -> None:
        with made_folder(self.folder) as made:
            stdout = await self.worker.ask(
                {
                    "side": self.name,
                    "code": job.code,
                    "inputs": self._inputs.get(job.name),
                    "into": INPUTS,
                    "out": OUTPUTS,
                    "outputs": str(made) if job.outputs else None,
                }
            )
            sizes = {file.name: file.stat().st_size for file in made.rglob("*") if file.is_file()}
            job.check(stdout.encode(), sizes)


@contextlib.asynccontextmanager
async def libraries(folder: Path) -> AsyncIterator[list[Library]]:
    """Both, as long as the block runs; their image is removed after it.

    Raises:
        RuntimeError: their environment is not there.
    """
    if not PYTHON.exists():
        raise RuntimeError("llm-sandbox and epicbox are not installed: run bench/peers/sandboxes.sh")
    build = ["docker", "build", "--quiet", "--network", "none", "--tag", PEER_IMAGE, "-"]
    await asyncio.to_thread(subprocess.run, build, input=_DOCKERFILE.encode(), capture_output=True, check=True)
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        PEERS / "sandboxes.py",
        PEER_IMAGE,
        SECCOMP,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_MAX,
    )
    worker = Worker(process)
    try:
        yield [Library(name, worker, folder) for name in (LLM_SANDBOX, EPICBOX)]
    finally:
        await worker.close()
        await output_of("docker", "image", "rm", "--force", PEER_IMAGE)
