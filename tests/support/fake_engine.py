"""A sandbox engine in memory: its programs are functions of the test, its containers are dictionaries."""
# ruff: noqa: ARG002 - a port has arguments that this side of it does not need

import asyncio
import fnmatch
import hashlib
import inspect
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from proofbox.contracts.media_types import mime_of_name
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.artifacts.staging import Staging
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.file_content import FileContent
from proofbox.service.sandbox.port import (
    Collected,
    CollectedFile,
    ExpectedFile,
    FileState,
    InputFile,
    Inspection,
    Job,
    OnOutput,
    OutputPiece,
    OutputSpec,
    ProcessOutcome,
    SandboxLostError,
    SandboxSpec,
    StreamName,
)
from proofbox.service.sandbox.workspace import ArchiveBounds, CollectedWorkspace, WorkspaceArchive

INFO = SandboxInfo(engine="fake", runtime="none", image_digest="sha256:0", acquired="cold")


@dataclass
class FakeRun:
    """A program while it runs.

    Attributes:
        job: what was asked for.
        files: the contents of OUT_DIR by physical path; the program may change them.
        wanted: what will be collected.
        on_output: gets what the program prints.
        printed: what it has printed.
    """

    job: Job
    files: dict[str, bytes]
    wanted: OutputSpec
    on_output: OnOutput
    printed: list[OutputPiece]

    def write(self, rel: str, content: bytes) -> None:
        """Writes a file of the current turn."""
        self.files[FilePath(self.job.turn_id, Namespace.FILES, rel).physical] = content

    def print(self, text: str | bytes, stream: StreamName = "stdout") -> None:
        """Prints a text."""
        data = text.encode() if isinstance(text, str) else text
        self.printed.append(OutputPiece(stream, data))
        self.on_output(stream, data, False)  # noqa: FBT003 - the port is called so


FakeProgram = Callable[[FakeRun], Any]
"""What a sandbox runs: it returns, or awaits, a ``ProcessOutcome``, or None for the exit code 0."""


def print_job(run: FakeRun) -> None:
    """The default program: it prints that it ran, and nothing else."""
    run.print("ran\n")


def read_archive(archive: bytes) -> dict[str, bytes]:
    """The files of the archive of a workspace, by their paths."""
    files, at = {}, 0
    while at < len(archive):
        end = archive.index(b"\n", at) + 1
        line = json.loads(archive[at:end])
        at = end + line["size"]
        files[line["path"]] = archive[end:at]
    return files


def write_archive(files: dict[str, bytes], restored: dict[str, bytes]) -> bytes:
    """Those files as such an archive; which of them are as they were restored stands in it."""
    lines = b""
    for rel, data in sorted(files.items()):
        line: dict[str, Any] = {"path": rel, "mode": 0o644, "kind": "file", "mtime_ns": 0, "size": len(data)}
        if restored.get(rel) == data:
            line["is_same"] = True
        lines += json.dumps(line).encode() + b"\n" + data
    return lines


class FakeSandbox:
    """The port ``Sandbox``."""

    def __init__(self, engine: "FakeSandboxEngine") -> None:
        self.info = INFO
        self._engine = engine
        self._files: dict[str, bytes] = {}
        self._put: dict[str, bytes] = {}
        self._restored: dict[str, bytes] = {}

    async def put(
        self, turn_id: str, files: Sequence[InputFile], workspace: WorkspaceArchive | None = None
    ) -> None:
        if workspace is not None:
            self._restored = read_archive(workspace.source.read())
            self._files = {f"{turn_id}/files/{rel}": data for rel, data in self._restored.items()}
        for file in files:
            if file.yields and file.path.physical in self._files:
                continue
            content = file.source.read()
            for path in (file.path.physical, *file.links, *file.copies):
                self._files[path] = content
            if self._engine.keeps_inputs:
                self._put[file.path.physical] = content
        if self._engine.is_lost_at == "put":
            raise SandboxLostError("the container is gone")

    async def run(self, job: Job, *, on_output: OnOutput, wanted: OutputSpec | None = None) -> ProcessOutcome:
        self._engine.jobs.append(job)
        if self._engine.keeps_inputs:
            self._engine.inputs.append(dict(self._files))
        run = FakeRun(job, self._files, wanted or OutputSpec(job.turn_id, (), 0, job.limits), on_output, [])
        outcome = self._engine.program(run)
        if inspect.isawaitable(outcome):
            outcome = await outcome
        if self._engine.is_lost_at == "run":
            return ProcessOutcome(lost="the container is gone")
        return outcome or ProcessOutcome(
            exit_code=0,
            output=tuple(run.printed),
            stdout_bytes=sum(len(piece.data) for piece in run.printed if piece.stream == "stdout"),
            stderr_bytes=sum(len(piece.data) for piece in run.printed if piece.stream == "stderr"),
        )

    async def collect(self, wanted: OutputSpec, into: Staging) -> Collected:
        if self._engine.is_lost_at == "collect":
            raise SandboxLostError("the runner does not answer in time")
        own = f"{wanted.turn_id}/{Namespace.FILES}/"
        present = {path.removeprefix(own): data for path, data in self._files.items() if path.startswith(own)}
        found: list[CollectedFile] = []
        for index, expected in enumerate(wanted.files):
            found += await self._expected(wanted, index, expected, present, into)
        promised = {file.path.physical for file in found}
        extras = [
            await self._collected(FilePath.from_physical(f"{own}{rel}"), None, data, into)
            for rel, data in sorted(present.items())
            if f"{own}{rel}" not in promised and data not in (self._put.get(f"{own}{rel}"), self._restored.get(rel))
        ]
        removed = tuple(path for path in self._put if path not in self._files)
        workspace = None
        if wanted.workspace is not None:
            sent = {file.path.physical for file in (*found, *extras[: wanted.extras_max]) if file.source}
            rest = {
                rel: data
                for rel, data in present.items()
                if f"{own}{rel}" not in sent and self._put.get(f"{own}{rel}") != data
            }
            workspace = await self._pack(wanted.workspace, rest, into)
        return Collected(
            (*found, *extras[: wanted.extras_max]), extras_total=len(extras), removed=removed, workspace=workspace
        )

    async def _pack(self, bounds: ArchiveBounds, rest: dict[str, bytes], into: Staging) -> CollectedWorkspace:
        archive = write_archive(rest, self._restored)
        is_too_large = len(rest) > bounds.entries_max or len(archive) > bounds.bytes_max
        packed = CollectedWorkspace(len(rest), len(archive), self._engine.left_out, is_too_large)
        if is_too_large or rest == self._restored:
            return packed
        source = FileContent(await into.write("workspace", archive))
        return replace(packed, source=source, sha256=hashlib.sha256(archive).hexdigest())

    async def _expected(
        self, wanted: OutputSpec, index: int, expected: ExpectedFile, present: dict[str, bytes], into: Staging
    ) -> list[CollectedFile]:
        matches = [
            rel
            for rel in sorted(present)
            if (fnmatch.fnmatchcase(rel, expected.rel) if expected.is_glob else rel == expected.rel)
        ]
        path = FilePath(wanted.turn_id, Namespace.FILES, expected.rel)
        if not matches:
            return [CollectedFile(path, index, FileState.MISSING)]
        return [
            await self._collected(FilePath(wanted.turn_id, Namespace.FILES, rel), index, present[rel], into)
            for rel in matches[: expected.matches_max]
        ]

    async def _collected(self, path: FilePath, promise: int | None, data: bytes, into: Staging) -> CollectedFile:
        source = FileContent(data)
        if len(data) > self._engine.in_memory_bytes_max:
            source = FileContent(await into.write(hashlib.sha256(path.physical.encode()).hexdigest(), data))
        inspection = self._engine.inspections.get(path.rel) or Inspection(ok=True, mime=mime_of_name(path.rel))
        return CollectedFile(
            path,
            promise,
            FileState.FILE,
            len(data),
            inspection=inspection if promise is not None else None,
            source=source,
            sha256=hashlib.sha256(data).hexdigest(),
        )


class FakeSandboxEngine:
    """The port ``SandboxEngine``.

    Attributes:
        program: what each sandbox runs.
        inspections: what the inspector reports of a promised file, by its name; any other file is fine.
        is_lost_at: the step at which the sandbox is lost: ``put``, ``run`` or ``collect``.
        left_out: how many entries the archive of a workspace lacks.
        is_down: the engine does not answer.
        is_hanging: the engine never answers a ping.
        in_memory_bytes_max: larger collected files lie in the staging folder.
        keeps_inputs: the engine itself keeps what programs find.
        jobs: what was run.
        inputs: the files that each of those found, by physical path.
        open_sandboxes: how many sandboxes there are.
    """

    def __init__(self, program: FakeProgram = print_job) -> None:
        self.program = program
        self.inspections: dict[str, Inspection] = {}
        self.is_lost_at = ""
        self.left_out = 0
        self.is_down = False
        self.is_hanging = False
        self.in_memory_bytes_max = 64 * 1024
        self.keeps_inputs = True
        self.jobs: list[Job] = []
        self.inputs: list[dict[str, bytes]] = []
        self.open_sandboxes = 0

    async def start(self) -> None:
        await self.ping()

    async def stop(self) -> None:
        self.is_down = True

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[FakeSandbox]:
        if self.is_down:
            raise EngineUnavailableError("the container engine does not answer")
        self.open_sandboxes += 1
        try:
            yield FakeSandbox(self)
        finally:
            self.open_sandboxes -= 1

    async def ping(self) -> None:
        if self.is_hanging:
            await asyncio.Event().wait()
        if self.is_down:
            raise EngineUnavailableError("the container engine does not answer")

    async def sweep(self) -> int:
        return 0
