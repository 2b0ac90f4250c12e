"""An engine whose sandboxes run the program that reads pages and documents, unconfined, in a folder of the test."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.file_content import FileContent
from proofbox.service.sandbox.port import (
    Collected,
    CollectedFile,
    FileState,
    ProcessOutcome,
    SandboxLostError,
    SandboxSpec,
)
from proofbox.service.sandbox.runner.file_frames import PIECE_BYTES

PROGRAMS = Path(__file__).parents[2] / "sandbox_images"


class ReadingSandbox:
    """The port ``Sandbox`` for jobs of the kind ``page_text``."""

    def __init__(self, folder: Path, engine: "ReadingEngine") -> None:
        self.info = SandboxInfo(engine="none", runtime="none", image_digest="none", acquired="cold")
        self._folder = folder
        self._engine = engine

    async def put(self, turn_id, files, workspace=None) -> None:
        del workspace  # these jobs have none
        (self._folder / turn_id / "files").mkdir(parents=True)
        for file in files:
            (self._folder / file.path.physical).write_bytes(file.source.read())

    async def run(self, job, *, on_output, wanted=None) -> ProcessOutcome:
        del on_output, wanted  # what the program prints is nobody's
        self._engine.jobs.append(json.loads(job.code))
        if self._engine.writes is not None:
            (self._folder / job.turn_id / "files" / "page_text.json").write_bytes(self._engine.writes)
            return ProcessOutcome(exit_code=0)
        if self._engine.dies:
            raise SandboxLostError("the sandbox ended by itself")
        request = self._folder / "request.json"
        request.write_bytes(job.code)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "page_text", str(request)),
            cwd=PROGRAMS,
            env={**os.environ, "OUT_DIR": str(self._folder)},
        )
        return ProcessOutcome(exit_code=await process.wait())

    async def collect(self, wanted, into) -> Collected:
        found = []
        for index, file in enumerate(wanted.files):
            path = FilePath(wanted.turn_id, Namespace.FILES, file.rel)
            data = (self._folder / path.physical).read_bytes()
            source = FileContent(data)
            if len(data) > PIECE_BYTES:
                source = FileContent(await into.folder() / "0")
                source.path.write_bytes(data)
            sha256 = hashlib.sha256(data).hexdigest()
            found.append(CollectedFile(path, index, FileState.FILE, len(data), source=source, sha256=sha256))
        return Collected(tuple(found))


class ReadingEngine:
    """The port ``SandboxEngine``.

    Attributes:
        jobs: the requests that were run.
        writes: what a page that took the program over would write in its place.
        dies: the sandbox is lost while it runs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.jobs: list[dict] = []
        self.writes: bytes | None = None
        self.dies = False

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[ReadingSandbox]:
        del spec
        folder = self._folder / f"sandbox-{len(self.jobs)}"
        folder.mkdir(parents=True)
        yield ReadingSandbox(folder, self)
