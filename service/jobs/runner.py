"""What every tool that runs in a sandbox does the same way: a place, what the call refers to, put, run, collect."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from contracts.codes import RuntimeCode
from contracts.paths import FilePath
from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import SandboxInfo, Timings
from service.artifacts.port import ArtifactStore, NewArtifact, SourcePool, StoredArtifact
from service.artifacts.staging import Staging, staging
from service.calls.admission import Admission
from service.calls.param_references import Reference
from service.calls.run_record import call_record
from service.calls.tool import CallObserver
from service.identity import ConversationKey
from service.jobs.failures import RuntimeFailure, classify, left_too_much
from service.jobs.file_aliases import add_aliases
from service.jobs.hosting import host
from service.jobs.input_resolver import InputRequest, InputResolver
from service.jobs.inputs import JobInputs
from service.jobs.produced_files import Content
from service.observability.log_context import about
from service.observability.tracing import Attributes, Span, span
from service.sandbox.limits import CallBounds, CallLimits
from service.sandbox.port import (
    Collected,
    CollectedFile,
    InputFile,
    Job,
    OnOutput,
    OutputSpec,
    ProcessOutcome,
    SandboxEngine,
    SandboxLostError,
    SandboxSpec,
)
from service.sandbox.preload import flavour_of

# Blocks, tokens and slack of OUT_DIR's file system: inputs may fill it to this share.
_INPUT_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Program:
    """What runs in a sandbox, and what is wanted of it.

    Attributes:
        job: the program.
        wanted: what is collected after it.
        on_output: who gets its output.
    """

    job: Job
    wanted: OutputSpec
    on_output: OnOutput


_NOTHING = JobInputs()
"""What is known to be put into OUT_DIR before it was looked for; nobody adds to it."""


@dataclass(slots=True)
class Attempt:
    """What is known of a call while it goes through its story; the answer is written from it."""

    timings: Timings = field(default_factory=Timings)
    gathered: JobInputs = field(default_factory=lambda: _NOTHING)
    outcome: ProcessOutcome = field(default_factory=ProcessOutcome)
    collected: Collected = field(default_factory=lambda: Collected(()))
    sandbox: SandboxInfo | None = None
    removed: list[str] = field(default_factory=list)
    failure: RuntimeFailure | None = None
    began: float = field(default_factory=time.perf_counter)

    def phase(self, name: str) -> "_Phase":
        """Adds the time of a ``with`` block to a phase, which is a span too."""
        return _Phase(self.timings, name)

    def finish(self) -> None:
        """Notes the time from the door to here."""
        self.timings.total = _ms_since(self.began)


class _Phase:
    """A context manager: the time of its block is a phase of a call, a span, and what the log lines tell."""

    __slots__ = ("_about", "_began", "_name", "_span", "_timings")

    def __init__(self, timings: Timings, name: str) -> None:
        self._timings = timings
        self._name = name
        self._about = about(phase=name)
        self._span = span(name)
        self._began = time.perf_counter()

    def __enter__(self) -> Span:
        self._about.__enter__()
        return self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        setattr(self._timings, self._name, getattr(self._timings, self._name) + _ms_since(self._began))
        self._span.__exit__(kind, error, traceback)
        self._about.__exit__(kind, error, traceback)


class JobRunner:
    """Runs programs, the user's or ours; holds nothing of any call."""

    def __init__(
        self,
        admission: Admission,
        rehosting: InputResolver,
        engine: SandboxEngine,
        artifacts: ArtifactStore,
        sources: SourcePool,
    ) -> None:
        self._admission = admission
        self._rehosting = rehosting
        self._engine = engine
        self._artifacts = artifacts
        self._sources = sources
        self.parts = (admission, rehosting, engine, artifacts, sources)
        """What it was made of."""

    @asynccontextmanager
    async def place(self, bounds: CallBounds, attempt: Attempt, watcher: CallObserver) -> AsyncIterator[Staging]:
        """A place to run and a staging folder, for the time of the block.

        Raises:
            QueueFullError, QueueTimeoutError: there is no place.
        """
        with attempt.phase("queue"):
            place = await self._admission.enter(bounds.deadline, watcher.queued, watcher.owner)
        with place:
            async with staging(self._artifacts) as folder:
                yield folder

    async def resolve(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference, attempt: Attempt
    ) -> str:
        """The text that a parameter names by its path.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
            StoreFailedError: a store failed.
        """
        with attempt.phase("rehost"):
            text, used = await self._rehosting.references.resolve(scope, request, reference)
        call_record().references.append(used)
        return text

    async def gather(self, wish: InputRequest, attempt: Attempt, staging: Staging) -> None:
        """Resolves what the call refers to; raises what `InputResolver.gather` does."""
        with attempt.phase("rehost"):
            attempt.gathered = await self._rehosting.gather(wish, staging)
            attempt.gathered.tell(call_record())

    async def run(
        self,
        request: ToolCallRequest,
        bounds: CallBounds,
        program: Program,
        *,
        attempt: Attempt,
        staging: Staging,
        watcher: CallObserver,
    ) -> None:
        """Container, put, run, collect. The container is gone when this returns, whatever happened."""
        limits, record = bounds.limits, call_record()
        record.limits = limits
        gathered = attempt.gathered
        if gathered.out_dir_bytes > room_bytes(limits) or gathered.out_dir_inodes > limits.out_dir_inodes:
            attempt.failure = _inputs_too_large(gathered, limits)
            return
        flavour = flavour_of(program.job.language, program.job.code)
        spec = SandboxSpec(
            request.tool_call_id,
            limits,
            bounds.lifetime_s,
            flavour,
            watcher.owner,
            is_only_call=self._admission.running_of(watcher.owner) <= 1,  # itself
        )
        async with AsyncExitStack() as stack:
            with attempt.phase("acquire"):
                sandbox = await stack.enter_async_context(self._engine.open(spec))
            attempt.sandbox = record.sandbox = sandbox.info
            watcher.started(sandbox.info)
            try:
                with attempt.phase("run") as phase:
                    await sandbox.put(program.job.turn_id, _named_inputs(program.job, attempt.gathered))
                    attempt.gathered.inputs.clear()  # which may hold megabytes
                    attempt.outcome = await sandbox.run(
                        program.job, on_output=program.on_output, wanted=program.wanted
                    )
                    phase.set(_told(attempt.outcome))
                if attempt.outcome.lost is None:
                    with attempt.phase("validate"):
                        attempt.collected = await sandbox.collect(program.wanted, staging)
            except SandboxLostError as exc:
                attempt.outcome = ProcessOutcome(lost=str(exc), lost_to_memory=exc.to_memory)
        failure = classify(attempt.outcome, limits, program.job)
        attempt.failure = failure or left_too_much(attempt.collected, limits)

    async def remove(self, scope: ConversationKey, attempt: Attempt) -> list[str]:
        """Notes which files of the turn the program removed: the next call of the turn finds them no more.

        Returns:
            Their physical paths; those that were made by the same call are none of them.

        Raises:
            StoreFailedError, StoreFullError: the store failed.
        """
        inputs = {line.physical_path for line in attempt.gathered.ledger}
        made = {found.path.physical for found in attempt.collected.found if found.source is not None}
        removed = [path for path in attempt.collected.removed if path in inputs and path not in made]
        stored = [attempt.gathered.stored[path] for path in removed if path in attempt.gathered.stored]
        if stored:
            with attempt.phase("host"):
                await self._artifacts.remove(scope, stored)
        return removed

    async def known_sids(self, scope: ConversationKey) -> frozenset[int]:
        """The ids of the conversation's sources.

        Raises:
            StoreFailedError: the store failed.
        """
        return await self._sources.sids(scope)

    async def host(
        self, scope: ConversationKey, artifacts: Sequence[NewArtifact], attempt: Attempt
    ) -> dict[str, StoredArtifact]:
        """Stores artifacts, all of them or none, by physical path; external ones become sources."""
        with attempt.phase("host"):
            # A file that two entries promise, by name and by pattern, is one version; the first entry describes it.
            once: dict[FilePath, NewArtifact] = {}
            for artifact in artifacts:
                once.setdefault(artifact.path, artifact)
            stored = await host(self._artifacts, scope, list(once.values()))
        return {version.path.physical: version for version in stored}

    async def host_and_read(
        self,
        scope: ConversationKey,
        artifacts: Sequence[NewArtifact],
        attempt: Attempt,
        contents: Coroutine[Any, Any, dict[str, Content]],
    ) -> tuple[dict[str, StoredArtifact], dict[str, Content]]:
        """What `host` returns, and contents of the same files.

        What is in memory is read while it is stored; a file is read before, as the store may move it.

        Raises:
            StoreFailedError, StoreFullError: a store failed.
        """
        reading = asyncio.create_task(contents)
        try:
            if any(artifact.source.path is not None for artifact in artifacts):
                await reading
            stored = await self.host(scope, artifacts, attempt)
            return stored, await reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def _named_inputs(job: Job, gathered: JobInputs) -> list[InputFile]:
    """What is put in; for a program of the user's with the further names that it may use."""
    inputs = list(gathered.inputs.values())
    if job.language in {"render", "readable"}:
        return inputs
    return add_aliases(inputs, job.turn_id, job.code.decode(errors="replace"))


def _told(outcome: ProcessOutcome) -> Attributes:
    """What the span of a run says of it."""
    return {
        "process.exit.code": outcome.exit_code,
        "proofbox.signal": outcome.signal,
        "proofbox.timed_out": outcome.timed_out or None,
        "proofbox.cpu_ms": round(outcome.cpu_ms, 3),
        "proofbox.memory_peak_bytes": outcome.memory_peak_bytes,
    }


def room_bytes(limits: CallLimits) -> int:
    """How many bytes of OUT_DIR the inputs of a call may fill."""
    return int(limits.out_dir_bytes * _INPUT_SHARE)


def _inputs_too_large(gathered: JobInputs, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.DISK_LIMIT,
        f"the files that the call refers to take {gathered.out_dir_bytes} bytes and {gathered.out_dir_inodes} "
        f"files and folders, OUT_DIR holds {limits.out_dir_bytes} and {limits.out_dir_inodes}; nothing was run",
    )


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)


def collected_artifact(
    request: ToolCallRequest,
    found: CollectedFile,
    *,
    mime: str,
    visibility: Literal["external", "internal"],
    description: str = "",
) -> NewArtifact:
    """A file of the sandbox that has been collected, on its way into the store."""
    if found.source is None or found.sha256 is None:
        raise AssertionError("only a collected file is stored")
    return NewArtifact(
        path=found.path,
        source=found.source,
        size_bytes=found.size_bytes,
        sha256=found.sha256,
        mime=mime,
        visibility=visibility,
        description=description,
        tool_call_id=request.tool_call_id,
    )
