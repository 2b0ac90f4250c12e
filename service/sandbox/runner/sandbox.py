"""A sandbox behind a stream to its runner: what every engine shares, whatever starts the container."""

import asyncio
import contextlib
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any, Protocol

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.sandbox_images.runner_protocol.frame_format import NO_NONCE, OF_PLAIN_FILES
from proofbox.service.artifacts.staging import Staging
from proofbox.service.sandbox.containers import Forks, NotForkedError
from proofbox.service.sandbox.port import (
    Collected,
    CollectedFile,
    InputFile,
    Job,
    OnOutput,
    OutputPiece,
    OutputSpec,
    ProcessOutcome,
    SandboxLostError,
)
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.runner.connections import RUNNER_FRAMES, ProgramConnections
from proofbox.service.sandbox.runner.file_frames import Received, ReceivedFiles, file_frames
from proofbox.service.sandbox.runner.frames import Frame, FrameDecoder, FrameError, encode
from proofbox.service.sandbox.runner.output_relay import OutputRelay
from proofbox.service.sandbox.runner.requests import InspectorBounds, collection_frame, job_frames
from proofbox.service.sandbox.runner.responses import Exit, Failed, Printed, Row, Summary, WorkspaceFacts, rows_max
from proofbox.service.sandbox.workspace import WorkspaceArchive

log = logging.getLogger("proofbox.engine")

_ODD_NAMES_MAX = 50
_FILES_PER_PUT = 100  # of paths of 1,024 bytes, escaped as JSON: they have to fit a frame
_ODD_NAME_CHARS_MAX = 300


class Transport(Protocol):
    """The bytes to and from a runner."""

    async def read(self) -> bytes:
        """The next bytes; empty when the other side is gone. Raises OSError."""

    async def write(self, data: bytes | bytearray) -> None:
        """Writes all of it, waiting while the other side is slow. Raises OSError."""

    async def use_direct_socket(self) -> None:
        """Switches to a direct socket to the runner, if there is one; before anything is written."""


@dataclass(frozen=True, slots=True)
class StreamBounds:
    """How long the service waits and what it passes on.

    Attributes:
        pass_on_bytes: how much of each of stdout and stderr is passed on as it comes.
        grace_s: what the runner has beyond the program's wall clock before it counts as lost.
        collect_s: how long putting files in and taking them out may take.
        answers_s: how long a runner that waits may take to answer; a sound one needs a millisecond.
    """

    pass_on_bytes: int
    grace_s: float
    collect_s: float
    answers_s: float = 2.0


class RunnerSandbox:
    """The port `Sandbox` over a stream to a runner."""

    def __init__(  # noqa: PLR0913 - what a container is made of
        self,
        transport: Transport,
        info: SandboxInfo,
        bounds: StreamBounds,
        inspector: InspectorBounds,
        *,
        died_of_memory: Callable[[], Awaitable[bool]],
        died_of_processes: Callable[[], Awaitable[bool]] | None = None,
        forks: Forks | None = None,
    ) -> None:
        self._transport = transport
        self._forks = forks
        self._bounds = bounds
        self._inspector = inspector
        self._died_of_memory = died_of_memory
        self._died_of_processes = died_of_processes
        self._decoder = FrameDecoder()
        self._nonce = NO_NONCE
        self._frames: deque[tuple[Frame, bytes]] = deque()
        self._put_unanswered = False
        self._inspector_fork: asyncio.Task[None] | None = None
        self._wanted: OutputSpec | None = None  # what the runner collects without being asked again
        self.info = info
        self.flavour = PreloadSet.BARE
        """What the interpreter that waits inside has imported."""
        self.is_over = False
        """Whether the call had an orderly end: its files were collected, and no process of its program is left."""

    async def wait_ready(self, flavour: PreloadSet = PreloadSet.BARE) -> None:
        """Waits for READY, draws the nonce that every later frame has to carry, gets an interpreter to wait inside.

        Args:
            flavour: what that one has imported, if it can be had.

        Raises:
            SandboxLostError: the container ended before.
        """
        kind, _ = await self._receive()
        if kind is not Frame.READY:
            raise SandboxLostError(f"the runner began with {kind.name}")
        self._nonce = self._decoder.nonce = secrets.token_bytes(16)
        await self._transport.use_direct_socket()
        forks = self._forks
        if forks is None:
            self.flavour = flavour  # its container imports that itself
        else:
            ready = next(filter(forks.has, (flavour, PreloadSet.BARE)), None)
            if ready is not None:
                await self._fork(forks, ready)
                return
        await self._launch()
        await self._expect(Frame.LAUNCHED)

    async def become(self, flavour: PreloadSet) -> bool:
        """Puts an interpreter that has imported the libraries of ``flavour`` in the place of the one that waits.

        A bare one is put in no other's place. False if none can be had: any interpreter runs any program.

        Raises:
            SandboxLostError: the container has ended, or does not answer in time.
        """
        if flavour in {self.flavour, PreloadSet.BARE}:
            return True
        return self._forks is not None and self._forks.has(flavour) and await self._fork(self._forks, flavour)

    async def _fork(self, forks: Forks, flavour: PreloadSet) -> bool:
        """Has an interpreter forked in; where that fails the runner starts one, unless it has one."""
        async with self._answers_within(self._bounds.collect_s):
            await self._send(Frame.ADOPT, {})
            try:
                await forks.interpreter(flavour)
            except NotForkedError as exc:
                log.warning("no %s interpreter was forked, the sandbox starts its own: %s", flavour.value, exc)
                await self._launch()
                await self._expect(Frame.LAUNCHED)
                return False
            await self._expect(Frame.LAUNCHED)
        self.flavour = flavour
        return True

    async def _launch(self) -> None:
        """Has the runner start an interpreter if none waits; from here on nothing is forked in."""
        self._forks = None
        await self._write(encode(Frame.LAUNCH, self._nonce))

    async def answers(self) -> bool:
        """Whether the runner answers at once; only to be asked before anything else is wanted of it."""
        try:
            async with asyncio.timeout(self._bounds.answers_s):
                await self._write(encode(Frame.PING, self._nonce))
                kind, _ = await self._receive()
        except (TimeoutError, SandboxLostError):
            return False
        return kind is Frame.PONG

    async def put(
        self, turn_id: str, files: Sequence[InputFile], workspace: WorkspaceArchive | None = None
    ) -> None:
        """See `Sandbox.put`."""
        rows = [
            {
                "path": file.path.physical,
                "size": file.size_bytes,
                "writable": file.writable,
                "links": file.links,
                "copies": file.copies,
                "yields": file.yields,
                "made_ns": file.made_ns,
            }
            for file in files
        ]
        async with self._answers_within(self._bounds.collect_s):
            if workspace is not None:
                await self._restore(turn_id, workspace)
            for at in range(0, max(1, len(files)), _FILES_PER_PUT):
                part = slice(at, at + _FILES_PER_PUT)
                await self._send(Frame.PUT, {"turn_id": turn_id, "files": rows[part]})
                if not files:
                    self._put_unanswered = True
                    return
                async with aclosing(file_frames(files[part], self._nonce)) as pieces:
                    async for piece in pieces:
                        await self._write(piece)
                await self._expect(Frame.PUT_DONE)

    async def _restore(self, turn_id: str, workspace: WorkspaceArchive) -> None:
        await self._send(Frame.RESTORE, {"turn_id": turn_id, "size": workspace.size_bytes})
        path = FilePath(turn_id, Namespace.FILES, "workspace")  # what an error of the store names
        archive = InputFile(path, workspace.source, workspace.size_bytes, writable=False)
        async with aclosing(file_frames([archive], self._nonce)) as pieces:
            async for piece in pieces:
                await self._write(piece)
        await self._expect(Frame.PUT_DONE)

    async def run(self, job: Job, *, on_output: OnOutput, wanted: OutputSpec | None = None) -> ProcessOutcome:
        """See `Sandbox.run`."""
        limits = job.limits
        try:
            async with self._answers_within(limits.wall_s + self._bounds.grace_s):
                frames_out = job_frames(job, self._bounds.pass_on_bytes, self._nonce, collects=wanted is not None)
                if wanted is not None:
                    frames_out += collection_frame(wanted, self._inspector, self._nonce)
                    self._wanted = wanted
                await self._write(frames_out)
                if self._put_unanswered:
                    await self._expect(Frame.PUT_DONE)
                return await self._follow(job, on_output)
        except SandboxLostError as exc:
            of_memory = await self._died_of_memory()
            of_processes = self._died_of_processes is not None and await self._died_of_processes()
            return ProcessOutcome(lost=str(exc), lost_to_memory=of_memory, lost_to_processes=of_processes)

    async def collect(self, wanted: OutputSpec, into: Staging) -> Collected:
        """See `Sandbox.collect`."""
        # Twice: a glob has several files, of which most take no time.
        budget_s = self._bounds.collect_s + 2 * self._inspector.wall_seconds_per_file * len(wanted.files)
        async with self._answers_within(budget_s):
            if self._wanted is None:
                await self._write(collection_frame(wanted, self._inspector, self._nonce))
            elif self._wanted is not wanted:
                raise AssertionError("the runner collects only the files that came with the job")
            files = ReceivedFiles(into)
            try:
                collected = await self._receive_collection(wanted, files)
            finally:
                await files.close()
        self.is_over = True
        return collected

    async def _receive_collection(self, wanted: OutputSpec, files: ReceivedFiles) -> Collected:
        found: list[tuple[CollectedFile, Received | None]] = []
        odd_names: list[str] = []
        sent: list[Received] = []
        rows_left = rows_max(wanted)
        taken: set[FilePath] = set()  # a name in another Unicode form is no version of the file it looks like
        bytes_left = wanted.limits.out_dir_bytes
        workspace: tuple[WorkspaceFacts, Received | None] | None = None
        while True:
            kind, payload = await self._receive()
            if kind is Frame.COLLECTED:
                await files.all_written()
                with _reading():
                    names = tuple(odd_names[:_ODD_NAMES_MAX])
                    files_found = tuple(_with_received(*each) for each in found)
                    packed = None if workspace is None else workspace[0].collected(workspace[1])
                    return Summary.read(payload).collected(found=files_found, odd_names=names, workspace=packed)
            if kind is Frame.WORKSPACE and wanted.workspace is not None and workspace is None:
                with _reading():
                    facts = WorkspaceFacts.read(payload)
                    facts.require_bounds(wanted.workspace)
                follows = not (facts.is_too_large or facts.is_same)
                workspace = facts, await self._receive_file(files, facts.size) if follows else None
                continue
            if kind is Frame.INSPECTOR and self._inspector_fork is None:
                are_plain = payload == OF_PLAIN_FILES
                self._inspector_fork = asyncio.create_task(self._fork_inspector(of_plain_files=are_plain))
                continue
            if kind is not Frame.FOUND:
                raise SandboxLostError(f"the runner sent {kind.name} while it collected")
            rows_left -= 1
            if rows_left < 0:
                raise SandboxLostError("the runner listed more files than it was asked for")
            with _reading():
                row = Row.read(payload)
                path, same_as = row.path(wanted), row.same_as if row.keep else None
            if row.keep and same_as is None:
                bytes_left -= row.size
                if bytes_left < 0:
                    raise SandboxLostError("the runner sent more bytes than OUT_DIR can hold")
                same_as = len(sent)
                sent.append(await self._receive_file(files, row.size))
            if path is None or (row.promise is None and path in taken):
                odd_names.append(row.rel.encode("unicode_escape").decode("ascii")[:_ODD_NAME_CHARS_MAX])
                continue
            taken.add(path)
            with _reading():
                found.append((row.collected(path), sent[same_as] if same_as is not None else None))

    async def _fork_inspector(self, *, of_plain_files: bool) -> None:
        """Forks an inspector into the container; where that fails, has the runner fork one itself."""
        if self._forks is None:  # the runner asks for none then
            return
        try:
            await self._forks.inspector(of_plain_files=of_plain_files)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the runner waits for an inspector or for this message
            if self.is_over:
                return
            log.warning("no inspector was forked, the sandbox starts its own: %s", exc)
            with contextlib.suppress(SandboxLostError):  # the coroutine that reads raises it
                await self._launch()

    async def _receive_file(self, files: ReceivedFiles, size: int) -> Received:
        file = await files.begin(size)
        left = size
        while left > 0:
            kind, piece = await self._receive()
            if kind is not Frame.DATA or not 0 < len(piece) <= left:
                raise SandboxLostError("the runner broke off in a file")
            left -= len(piece)
            await files.add(file, piece)
        return file

    async def _follow(self, job: Job, on_output: OnOutput) -> ProcessOutcome:
        output = OutputRelay(on_output, self._bounds.pass_on_bytes, job.limits.wall_s)
        connections = ProgramConnections(job.network, self._send_now, job.limits.wall_s)
        printed: list[OutputPiece] = []
        try:
            while True:
                kind, payload = await self._receive()
                if kind in RUNNER_FRAMES:
                    await connections.take(kind, payload)
                elif kind is Frame.EXIT:
                    with _reading():
                        return Exit.read(payload).outcome(printed)
                elif kind is Frame.PRINTED:
                    with _reading():
                        Printed.read(payload).add_to(printed)
                else:
                    output.take(kind, payload)
        finally:
            await connections.close()

    async def _send_now(self, kind: Frame, payload: bytes) -> None:
        await self._transport.write(encode(kind, self._nonce, payload))

    async def _send(self, kind: Frame, value: dict[str, Any]) -> None:
        await self._write(encode(kind, self._nonce, json.dumps(value).encode()))

    async def _write(self, data: bytes | bytearray) -> None:
        try:
            await self._transport.write(data)
        except OSError as exc:
            raise await self._lost() from exc

    async def _expect(self, wanted: Frame) -> None:
        kind, payload = await self._receive()
        if kind is Frame.FAILED:
            with _reading():
                reason = Failed.read(payload).reason
            raise SandboxLostError(reason)
        if kind is not wanted:
            raise SandboxLostError(f"the runner sent {kind.name} in place of {wanted.name}")

    async def _receive(self) -> tuple[Frame, bytes]:
        while not self._frames:
            try:
                data = await self._transport.read()
            except OSError as exc:
                raise await self._lost() from exc
            if not data:
                raise await self._lost()
            try:
                self._frames.extend(self._decoder.feed(data))
            except FrameError as exc:
                raise SandboxLostError(f"the stream of the sandbox is broken: {exc}") from exc
        return self._frames.popleft()

    async def _lost(self) -> SandboxLostError:
        if await self._died_of_memory():
            return SandboxLostError("the sandbox was killed for memory", to_memory=True)
        return SandboxLostError("the sandbox ended by itself")

    @contextlib.asynccontextmanager
    async def _answers_within(self, seconds: float) -> AsyncIterator[None]:
        """The host's own clock: a runner that does not answer in time counts as lost."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as exc:
            raise SandboxLostError(f"the sandbox did not answer within {seconds:.0f} s") from exc


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    """A payload that no runner of ours sends means a broken sandbox, not a mistake of the service."""
    try:
        yield
    except (ValueError, IndexError, RecursionError) as exc:
        raise SandboxLostError("the runner sent an answer that cannot be read") from exc


def _with_received(found: CollectedFile, received: Received | None) -> CollectedFile:
    return found if received is None else replace(found, source=received.source, sha256=received.sha256)
