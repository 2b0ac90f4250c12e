"""The story of an exec call: admit, rehost, open a sandbox, put, run, collect, check, host, report."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from contracts.artifacts import Contract, ContractError, parse_contract
from contracts.codes import ContractCode, RuntimeCode
from contracts.media_types import mime_of_name
from contracts.paths import FilePath
from contracts.tool_calls import Timings, ToolCallResponse
from service.core.admission import Admission
from service.core.answers import answered, read_contents, refused
from service.core.exec_call import Attempt, ExecCall, Watcher
from service.core.intake import read_code
from service.core.limits import CallLimits
from service.core.outcomes import RuntimeFailure, classify, left_too_much
from service.core.ports import (
    ArtifactStore,
    Collected,
    Found,
    Job,
    NewArtifact,
    ProcessOutcome,
    SandboxEngine,
    SandboxLostError,
    SandboxSpec,
    SourcePool,
    StoredArtifact,
    Wanted,
    WantedFile,
)
from service.core.rehosting import Gathered, Rehosting, Wish
from service.core.verdicts import Verdict, extras, judge

EXTRAS_MAX = 50
# Blocks, tokens and slack of OUT_DIR's file system: inputs may fill it to this share.
_INPUT_SHARE = 0.9


class Execution:
    """Runs exec calls; holds nothing of any of them."""

    def __init__(
        self,
        admission: Admission,
        rehosting: Rehosting,
        engine: SandboxEngine,
        artifacts: ArtifactStore,
        sources: SourcePool,
        *,
        inline_bytes_max: int,
    ) -> None:
        self._admission = admission
        self._rehosting = rehosting
        self._engine = engine
        self._artifacts = artifacts
        self._sources = sources
        self._inline_bytes_max = inline_bytes_max

    async def execute(self, call: ExecCall, watcher: Watcher) -> ToolCallResponse:
        """Runs one call to its answer.

        Raises:
            ServiceError: the caller's program or the service is at fault; ``watcher.started`` tells whether the
                program may have run by then.
        """
        began = time.perf_counter()
        timings = Timings()
        try:
            contract = parse_contract(call.params.contract, call.request.turn_id)
            code = read_code(call.request.code)
        except ContractError as exc:
            return refused(call, exc, timings)
        attempt = Attempt(contract, code, Gathered(), timings, ProcessOutcome(), Collected(()))
        async with (
            _timed(timings, "queue", self._admission.place(call.deadline, watcher.queued)),
            self._artifacts.staging() as staging,
        ):
            async with _phase(timings, "rehost"):
                attempt.gathered = await self._rehosting.gather(_wish(call), staging)
            if attempt.gathered.missing:
                return refused(call, _missing_paths(attempt.gathered), timings, attempt)
            await self._run(call, attempt, staging, watcher)
            verdicts = judge(contract.promises, attempt.collected, call.limits)
            contents = await asyncio.to_thread(read_contents, verdicts, self._inline_bytes_max)
            async with _phase(timings, "host"):
                stored = await self._host(call, verdicts, attempt.collected)
            timings.total = _ms_since(began)
            return answered(call, attempt, verdicts, contents, stored)

    async def _run(self, call: ExecCall, attempt: Attempt, staging: Path, watcher: Watcher) -> None:
        """Container, put, run, collect. The container is gone when this returns, whatever happened."""
        limits, timings = call.limits, attempt.timings
        gathered = attempt.gathered
        if gathered.out_dir_bytes > _room_bytes(limits) or gathered.out_dir_inodes > limits.out_dir_inodes:
            attempt.failure = _inputs_too_large(gathered, limits)
            return
        turn_id = call.request.turn_id or ""
        spec = SandboxSpec(call.request.tool_call_id, limits, call.lifetime_s)
        async with _timed(timings, "acquire", self._engine.open(spec)) as sandbox:
            attempt.sandbox = sandbox.info
            watcher.started(sandbox.info)
            try:
                async with _phase(timings, "run"):
                    await sandbox.put(turn_id, list(attempt.gathered.inputs.values()))
                    job = Job(call.language, attempt.code, call.params.prog_name, turn_id, limits)
                    attempt.outcome = await sandbox.run(job, on_output=watcher.output)
                if attempt.outcome.lost is None:
                    async with _phase(timings, "validate"):
                        wanted = _wanted(turn_id, attempt.contract, limits)
                        attempt.collected = await sandbox.collect(wanted, staging)
            except SandboxLostError as exc:
                attempt.outcome = ProcessOutcome(lost=str(exc))
        attempt.failure = classify(attempt.outcome, limits) or left_too_much(attempt.collected, limits)

    async def _host(
        self, call: ExecCall, verdicts: list[Verdict], collected: Collected
    ) -> dict[str, StoredArtifact]:
        """Stores what was produced and what nobody promised; all of it or nothing."""
        new = [_promised(call, verdict) for verdict in verdicts if verdict.produced]
        new += [_unpromised(call, found) for found in extras(collected) if found.local is not None]
        # A file that two entries promise, by name and by pattern, is one version; the first entry describes it.
        once: dict[FilePath, NewArtifact] = {}
        for file in new:
            once.setdefault(file.path, file)
        stored = await self._artifacts.save(call.scope, list(once.values())) if once else []
        for artifact in stored:
            if artifact.visibility == "external":
                await self._sources.add_file(call.scope, artifact)
        return {artifact.path.physical: artifact for artifact in stored}


def _promised(call: ExecCall, verdict: Verdict) -> NewArtifact:
    found, promise = verdict.found, verdict.promise
    if found is None or found.local is None or found.sha256 is None or promise is None:
        raise AssertionError("a produced file has been collected")
    return NewArtifact(
        path=verdict.path,
        source=found.local,
        size_bytes=found.size_bytes,
        sha256=found.sha256,
        mime=verdict.mime,
        visibility=promise.visibility,
        description=promise.description,
        tool_call_id=call.request.tool_call_id,
    )


def _unpromised(call: ExecCall, found: Found) -> NewArtifact:
    if found.local is None or found.sha256 is None:
        raise AssertionError("only collected files are stored")
    return NewArtifact(
        path=found.path,
        source=found.local,
        size_bytes=found.size_bytes,
        sha256=found.sha256,
        mime=mime_of_name(found.path.rel),
        visibility="internal",
        description="",
        tool_call_id=call.request.tool_call_id,
    )


def _missing_paths(gathered: Gathered) -> ContractError:
    listed = ", ".join(gathered.missing)
    return ContractError(
        ContractCode.PRE_EXEC_MISSING_PATHS,
        f"the code refers to files that are not in the conversation: {listed}; the code was not run",
        missing=gathered.missing,
    )


def _inputs_too_large(gathered: Gathered, limits: CallLimits) -> RuntimeFailure:
    return RuntimeFailure(
        RuntimeCode.DISK_LIMIT,
        f"the files that the call refers to take {gathered.out_dir_bytes} bytes and {gathered.out_dir_inodes} "
        f"files and folders, OUT_DIR holds {limits.out_dir_bytes} and {limits.out_dir_inodes}; nothing was run",
    )


def _wanted(turn_id: str, contract: Contract, limits: CallLimits) -> Wanted:
    files = tuple(
        # One more than allowed, to see that there are too many.
        WantedFile(p.path.rel, p.is_glob, p.max_count + 1, p.checks.inspected())
        for p in contract.promises
    )
    return Wanted(turn_id, files, EXTRAS_MAX, limits)


def _wish(call: ExecCall) -> Wish:
    request = call.request
    return Wish(
        scope=call.scope,
        turn_id=request.turn_id or "",
        text=request.code or "",
        assets=request.assets,
        rows=request.sources_pool,
        room_bytes=_room_bytes(call.limits),
        room_inodes=call.limits.out_dir_inodes,
    )


def _room_bytes(limits: CallLimits) -> int:
    return int(limits.out_dir_bytes * _INPUT_SHARE)


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)


@asynccontextmanager
async def _phase(timings: Timings, name: str) -> AsyncIterator[None]:
    """Adds the time of a block to a phase."""
    began = time.perf_counter()
    try:
        yield
    finally:
        setattr(timings, name, getattr(timings, name) + _ms_since(began))


@asynccontextmanager
async def _timed(timings: Timings, name: str, entered: Any) -> AsyncIterator[Any]:
    """Enters a context; the time that entering took is a phase."""
    began = time.perf_counter()
    async with entered as value:
        setattr(timings, name, _ms_since(began))
        yield value
