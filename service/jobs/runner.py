"""The job runner: the steps that every program in a sandbox shares, a caller's program and our own alike."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Literal, Protocol

from proofbox.contracts.codes import RuntimeCode
from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import SandboxInfo, Timings
from proofbox.service.artifacts.port import (
    ArtifactStore,
    NewArtifact,
    NewSave,
    PreparedSave,
    SourcePool,
)
from proofbox.service.artifacts.staging import Staging, staging
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.observer import CallObserver, UsedReference
from proofbox.service.calls.param_references import Reference
from proofbox.service.concurrency import wait_to_end
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.failures import RuntimeFailure, classify, left_too_much
from proofbox.service.jobs.file_aliases import placed
from proofbox.service.jobs.inputs import InputRequest, JobInputs
from proofbox.service.jobs.workspace import WorkspaceUse, new_workspace, on_newest, with_free_names
from proofbox.service.observability.log_context import about
from proofbox.service.observability.tracing import Attributes, Span, span
from proofbox.service.sandbox.limits import CallBounds, CallLimits, room_bytes
from proofbox.service.sandbox.port import (
    Collected,
    CollectedFile,
    Job,
    OnOutput,
    OutputSpec,
    ProcessOutcome,
    SandboxEngine,
    SandboxLostError,
    SandboxSpec,
)
from proofbox.service.sandbox.preload import flavour_of

PhaseName = Literal["queue", "rehost", "acquire", "run", "validate", "host"]


@dataclass(frozen=True, slots=True)
class Program:
    """A program for a sandbox.

    Attributes:
        job: the program.
        wanted: what is collected after it.
        on_output: gets what it prints.
    """

    job: Job
    wanted: OutputSpec
    on_output: OnOutput


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a program in a sandbox.

    Attributes:
        outcome: how the program ended.
        collected: the files that it left.
        sandbox: the sandbox that it ran in; None if it did not run.
        failure: why it failed; None if it did not.
    """

    outcome: ProcessOutcome = field(default_factory=ProcessOutcome)
    collected: Collected = field(default_factory=lambda: Collected(()))
    sandbox: SandboxInfo | None = None
    failure: RuntimeFailure | None = None


class PhaseTimer:
    """Measures a call and its phases.

    Args:
        began: when the call came, on the performance counter; None for now.
    """

    __slots__ = ("_began", "_phases_ms", "_total_ms")

    def __init__(self, began: float | None = None) -> None:
        self._began = time.perf_counter() if began is None else began
        self._phases_ms: defaultdict[str, float] = defaultdict(float)
        self._total_ms = 0.0

    def phase(self, name: PhaseName) -> "_Phase":
        """Adds the time of a ``with`` block to a phase, which is also a span and a field of log lines."""
        return _Phase(self._phases_ms, name)

    def stop(self) -> None:
        """Sets the total time."""
        self._total_ms = _ms_since(self._began)

    @property
    def timings(self) -> Timings:
        """What was measured up to now; no total before `stop`."""
        return Timings(**self._phases_ms, total=self._total_ms)


class _Phase:
    __slots__ = ("_about", "_began", "_name", "_phases_ms", "_span")

    def __init__(self, phases_ms: defaultdict[str, float], name: PhaseName) -> None:
        self._phases_ms = phases_ms
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
        self._phases_ms[self._name] += _ms_since(self._began)
        self._span.__exit__(kind, error, traceback)
        self._about.__exit__(kind, error, traceback)


@dataclass(frozen=True, slots=True)
class JobContext:
    """The call that a job belongs to.

    Attributes:
        scope: its conversation.
        request: the request.
        bounds: what it may use.
        observer: observes it.
        timer: measures it.
    """

    scope: ConversationKey
    request: ToolCallRequest
    bounds: CallBounds
    observer: CallObserver
    timer: PhaseTimer = field(default_factory=PhaseTimer)


class InputSource(Protocol):
    """Where the inputs of jobs come from."""

    @property
    def pinned_packages(self) -> Sequence[InstalledPackage] | None:
        """The packages of the call that is run again; None for a call that runs for the first time."""

    async def resolve_inputs(self, request: InputRequest, staging: Staging) -> JobInputs:
        """Returns the files that a call refers to, valid while ``staging`` is.

        Raises:
            ServiceError: an input is refused, or a store failed.
        """

    async def resolve_reference(
        self, scope: ConversationKey, request: ToolCallRequest, reference: Reference
    ) -> tuple[str, UsedReference]:
        """Returns the text that a parameter gives by its path, and its entry in the audit line.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
            ServiceError: a store failed.
        """


class OutputStore(Protocol):
    """Where the files that jobs produce are stored."""

    async def prepare(self, new: NewSave) -> PreparedSave:
        """See `ArtifactStore.prepare`."""


@dataclass(frozen=True, slots=True)
class JobRunner:
    """Runs programs in sandboxes. Stateless.

    Attributes:
        admission: gives the slots.
        inputs: where inputs come from.
        engine: where sandboxes come from.
        artifacts: has the staging folders.
        sources: the sources of conversations.
        outputs: where produced files are stored; None for ``artifacts``.
    """

    admission: Admission
    inputs: InputSource
    engine: SandboxEngine
    artifacts: ArtifactStore
    sources: SourcePool
    outputs: OutputStore | None = None

    async def resolve_reference(self, context: JobContext, reference: Reference) -> str:
        """Returns the text that a parameter gives by its path. Raises as `InputSource.resolve_reference`."""
        with context.timer.phase("rehost"):
            text, used = await self.inputs.resolve_reference(context.scope, context.request, reference)
        context.observer.on_reference(used)
        return text

    @asynccontextmanager
    async def slot(self, context: JobContext) -> AsyncIterator["SandboxJob"]:
        """Waits for a slot; it and the staging folder of the job last as long as the block.

        Args:
            context: the call.

        Raises:
            QueueFullError, QueueTimeoutError: there is no slot.
        """
        observer = context.observer
        with context.timer.phase("queue"):
            slot = await self.admission.enter(context.bounds.deadline, observer.on_queued, observer.owner)
        job: SandboxJob | None = None
        try:
            with slot:
                async with staging(self.artifacts) as folder, AsyncExitStack() as hold:
                    yield (job := SandboxJob(self, context, folder, hold))
        except BaseException:
            if job is not None and job.prepared is not None:
                await wait_to_end(asyncio.ensure_future(job.prepared.discard()))
            raise


class SandboxJob:
    """A job that has a slot: its steps, to be called in their order. Each returns its result."""

    def __init__(self, runner: JobRunner, context: JobContext, folder: Staging, hold: AsyncExitStack) -> None:
        self._runner = runner
        self._context = context
        self._hold = hold
        self._holds_workspace = False
        self.prepared: PreparedSave | None = None
        self.staging = folder

    async def resolve_inputs(self, request: InputRequest) -> JobInputs:
        """Resolves what the call refers to; raises as `InputSource.resolve_inputs`."""
        with self._context.timer.phase("rehost"):
            inputs = await self._runner.inputs.resolve_inputs(request, self.staging)
        self._context.observer.on_inputs(inputs.used(), inputs.all_missing, inputs.cited)
        return inputs

    async def run(self, program: Program, inputs: JobInputs) -> JobResult:
        """Runs a program in a sandbox of its own, which is gone when this returns, whatever happened.

        ``inputs`` have no files any more afterwards, for these may hold megabytes while the program runs.

        Raises:
            EngineUnavailableError: there is no sandbox.
            StoreFailedError, StoreFullError: the staging folder cannot take what the program left.
        """
        limits, observer, timer = self._context.bounds.limits, self._context.observer, self._context.timer
        observer.on_limits(limits)
        if inputs.out_dir_bytes > room_bytes(limits) or inputs.out_dir_inodes > limits.out_dir_inodes:
            return JobResult(failure=_inputs_too_large(inputs, limits))
        outcome, collected = ProcessOutcome(), Collected(())
        async with AsyncExitStack() as stack:
            with timer.phase("acquire"):
                sandbox = await stack.enter_async_context(self._runner.engine.open(self._spec(program.job)))
            await observer.before_start()
            observer.on_started(sandbox.info)
            try:
                with timer.phase("run") as phase:
                    archive = inputs.workspace.archive if inputs.workspace is not None else None
                    files = placed(program.job, inputs)
                    await sandbox.put(program.job.turn_id, files, archive)
                    inputs.files.clear()
                    files.clear()
                    outcome = await sandbox.run(program.job, on_output=program.on_output, wanted=program.wanted)
                    phase.set(_span_attributes(outcome))
                if outcome.lost is None:
                    with timer.phase("validate"):
                        collected = await sandbox.collect(program.wanted, self.staging)
            except SandboxLostError as exc:
                outcome = ProcessOutcome(lost=str(exc), lost_to_memory=exc.to_memory)
        failure = classify(outcome, limits, program.job) or left_too_much(collected, limits)
        return JobResult(outcome, collected, sandbox.info, failure)

    async def name_shown(self, result: JobResult, wanted: OutputSpec, inputs: JobInputs) -> JobResult:
        """The result, where no file with what the program showed has the name of one that another call stored.

        No other call gets these names until the files of this one are stored.

        Raises:
            StoreFailedError: the store failed.
        """
        if not result.outcome.shown:
            return result
        before, scope = inputs.outputs_before, self._context.scope
        if before is None:
            await self._hold_workspace()
        stored = await self._runner.artifacts.of_turn(scope, wanted.turn_id) if before is None else []
        others = {file.path.rel.partition(".")[0] for file in stored if not file.removed}

        def is_free(name: str) -> bool:
            if before is None:
                return name.partition(".")[0] not in others
            return f"{wanted.turn_id}/{Namespace.FILES}/{name}" in before

        promised = {file.rel for file in wanted.files if not file.is_glob}
        outcome, collected = with_free_names(result.outcome, result.collected, promised, is_free)
        return replace(result, outcome=outcome, collected=collected)

    async def _hold_workspace(self) -> None:
        """Keeps other calls from the workspace of the conversation, until the files of this one are stored."""
        if not self._holds_workspace:
            await self._hold.enter_async_context(self._runner.artifacts.hold_workspace(self._context.scope))
            self._holds_workspace = True

    async def prepare(
        self, artifacts: Sequence[NewArtifact], use: WorkspaceUse | None = None, removed: Sequence[str] = ()
    ) -> PreparedSave | None:
        """Puts the bytes of files and of the workspace in place, to be stored with the answer; None without any.

        Args:
            artifacts: the files.
            use: the workspace of a program, if it lasts.
            removed: the physical paths of the files that the program removed.

        Raises:
            StoreFailedError, StoreFullError: the store failed.
        """
        # A file that two entries promise, by name and by pattern, is one version; the first entry describes it.
        once: dict[FilePath, NewArtifact] = {}
        for artifact in artifacts:
            once.setdefault(artifact.path, artifact)
        new = None if use is None else new_workspace(self._context.request, use)
        gone = [] if use is None else [use.inputs.stored[path] for path in removed if path in use.inputs.stored]
        if not once and new is None and not gone:
            return None
        scope, store = self._context.scope, self._runner.artifacts
        with self._context.timer.phase("host"):
            if new is not None and use is not None:
                await self._hold_workspace()
                new = await on_newest(new, use, store, scope, self.staging)
            save = NewSave(scope, list(once.values()), workspace=new, removed=gone, hold=self._hold.pop_all())
            self.prepared = await self._outputs.prepare(save)
        return self.prepared

    async def find_outdated(self, artifacts: Sequence[NewArtifact], removed: Sequence[str]) -> list[str]:
        """The names of files that the program wrote or removed, and of which the user has an older version.

        Args:
            artifacts: the files that are to be stored.
            removed: the physical paths of those that the program removed.

        Raises:
            StoreFailedError: the store failed.
        """
        internal = [each.path for each in artifacts if each.visibility == "internal"]
        paths = [path for path in internal if path.namespace is Namespace.FILES]
        names = {path.rel for path in [*paths, *map(FilePath.from_physical, removed)]}
        return sorted(await self._runner.artifacts.hosted_names(self._context.scope, names)) if names else []

    @property
    def _outputs(self) -> OutputStore:
        return self._runner.outputs or self._runner.artifacts

    def _spec(self, job: Job) -> SandboxSpec:
        bounds, owner = self._context.bounds, self._context.observer.owner
        return SandboxSpec(
            self._context.request.tool_call_id,
            bounds.limits,
            bounds.lifetime_s,
            flavour_of(job.language, job.code),
            owner,
            is_only_call=self._runner.admission.running_of(owner) <= 1,  # itself
            is_bare=job.packages is not None and job.packages.replaces_libraries,
        )


def _span_attributes(outcome: ProcessOutcome) -> Attributes:
    return {
        "process.exit.code": outcome.exit_code,
        "proofbox.signal": outcome.signal,
        "proofbox.timed_out": outcome.timed_out or None,
        "proofbox.cpu_ms": round(outcome.cpu_ms, 3),
        "proofbox.memory_peak_bytes": outcome.memory_peak_bytes,
    }


def _inputs_too_large(inputs: JobInputs, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.DISK_LIMIT,
        f"the files that the call refers to take {inputs.out_dir_bytes} bytes and {inputs.out_dir_inodes} "
        f"files and folders, OUT_DIR holds {limits.out_dir_bytes} and {limits.out_dir_inodes}; nothing was run",
    )


def list_removed(inputs: JobInputs, collected: Collected) -> list[str]:
    """The physical paths of files that a program removed from the workspace, without those that it wrote."""
    made = {found.path.rel for found in collected.found if found.source is not None}
    rels = [FilePath.from_physical(path).rel for path in collected.removed]
    return [inputs.names[rel] for rel in rels if rel in inputs.names and rel not in made]


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
