"""The story of an exec call: read, admit, rehost, open a sandbox, put, run, collect, check, host, report."""

import asyncio
from dataclasses import replace
from functools import partial

from contracts.artifacts import GLOB_MATCHES_MAX, Contract, ContractError
from contracts.blocks import TEXT_BYTES_MAX
from contracts.codes import ContractCode
from contracts.exec_params import ExecParams
from contracts.media_types import is_text, mime_of_name
from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import ToolCallResponse
from contracts.tools import exec_language
from service.artifacts.port import NewArtifact
from service.calls.invalid_params import parse_params
from service.calls.param_references import find_reference
from service.calls.tool import CallObserver, PreparedCall
from service.execution.call import ExecCall
from service.execution.report_hints import names_missing_library
from service.execution.response import answered, interrupted, refused
from service.identity import ConversationKey
from service.jobs.failures import memory_failure, room_failure
from service.jobs.input_resolver import InputRequest
from service.jobs.inputs import JobInputs
from service.jobs.produced_files import Content, noted, read_contents
from service.jobs.runner import Attempt, JobRunner, Program, collected_artifact, room_bytes
from service.jobs.verdicts import Verdict, extras, failed_with_bytes, is_kept, judge, mime_to_store
from service.sandbox.image_inventory import ImageInventory
from service.sandbox.limits import CallLimits, CallPolicy
from service.sandbox.port import CollectedFile, ExpectedFile, OutputSpec
from service.timeline.token_counter import TokenCounter

EXTRAS_MAX = 50


class ExecTool:
    """The story of ``exec_tools.execute_code_*``.

    Args:
        runs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        tokens: counts tokens.
        image: lists the libraries of the sandbox image; None if nobody can.
    """

    def __init__(
        self, runs: JobRunner, policy: CallPolicy, tokens: TokenCounter, image: ImageInventory | None = None
    ) -> None:
        self._runs = runs
        self._image = image
        self._policy = policy
        self._tokens = tokens

    def open(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall | None:
        """See `Tool.open`."""
        language = exec_language(request.tool_id)
        if language is None:
            return None
        params = parse_params(ExecParams, request.params)
        bounds = self._policy.bounds(request.limits, timeout_s=params.timeout_s)
        call = ExecCall(scope, request, language, params, bounds)
        return PreparedCall(partial(self.execute, call), partial(interrupted, call))

    async def execute(self, call: ExecCall, watcher: CallObserver) -> ToolCallResponse:
        """Runs one call to its answer.

        Raises:
            ServiceError: the caller's program or the service is at fault; ``watcher.started`` tells whether the
                program may have run by then.
        """
        attempt = Attempt()
        try:
            call = await self._resolved(call, attempt)
            contract, code = call.plan()
        except ContractError as exc:
            return refused(call, exc, attempt)
        limits, turn_id = call.bounds.limits, call.request.turn_id or ""
        async with self._runs.place(call.bounds, attempt, watcher) as staging:
            await self._runs.gather(_wish(call), attempt, staging)
            if attempt.gathered.missing or attempt.gathered.missing_cited:
                return refused(call, _missing_paths(attempt.gathered), attempt, contract)
            program = Program(call.job(code), _wanted(turn_id, contract, limits), watcher.output)
            await self._runs.run(
                call.request, call.bounds, program, attempt=attempt, staging=staging, watcher=watcher
            )
            verdicts = judge(contract.promises, attempt.collected, limits)
            if not all(verdict.produced for verdict in verdicts):
                ended, was = attempt.failure, attempt.outcome
                attempt.failure = ended or memory_failure(was, limits) or room_failure(was, limits)
            new = [_promised(call, verdict) for verdict in verdicts if verdict.produced]
            new += [_promised(call, verdict) for verdict in failed_with_bytes(verdicts)]
            unpromised = extras(attempt.collected, contract.promises)
            new += [_unpromised(call, found) for found in unpromised if found.source is not None]
            # Before the files become sources of their own.
            sids = await self._runs.known_sids(call.scope) if _may_cite(verdicts) else frozenset()
            contents = self._contents(verdicts, sids)
            stored, read = await self._runs.host_and_read(call.scope, new, attempt, contents)
            attempt.removed = await self._runs.remove(call.scope, attempt)
            if names_missing_library(contract, attempt, verdicts):
                call = await self._with_libraries(call)
            attempt.finish()
            return answered(call, contract, attempt, verdicts, read, stored)

    async def _with_libraries(self, call: ExecCall) -> ExecCall:
        """The call with what is installed in the image, where that is known."""
        if self._image is None:
            return call
        inventory = await self._image.get()
        return replace(call, libraries=inventory.libraries) if inventory.is_known else call

    async def _resolved(self, call: ExecCall, attempt: Attempt) -> ExecCall:
        """The call with its program, if that was given by reference.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
        """
        reference = find_reference("code", call.request.code or "")
        if reference is None or not call.request.turn_id:
            return call
        code = await self._runs.resolve(call.scope, call.request, reference, attempt)
        return replace(call, request=call.request.model_copy(update={"code": code}))

    async def _contents(self, verdicts: list[Verdict], sids: frozenset[int]) -> dict[str, Content]:
        """What the blocks of kept files carry."""
        if not any(is_kept(verdict) for verdict in verdicts):
            return {}
        return await asyncio.to_thread(self._read_and_noted, verdicts, sids)

    def _read_and_noted(self, verdicts: list[Verdict], sids: frozenset[int]) -> dict[str, Content]:
        return noted(read_contents(verdicts, self._policy.inline_bytes_max), self._tokens, sids)


def _may_cite(verdicts: list[Verdict]) -> bool:
    """Whether the block of a kept file may cite sources; of one that is not in memory nobody has looked."""
    return any(
        is_kept(verdict)
        and is_text(verdict.mime)
        and verdict.found is not None
        and verdict.found.source is not None
        and (verdict.found.source.data is None or b"[[" in verdict.found.source.data[:TEXT_BYTES_MAX])
        for verdict in verdicts
    )


def _promised(call: ExecCall, verdict: Verdict) -> NewArtifact:
    """A promised file; one that fails stays in the turn's workspace, to be read, repaired and promised again."""
    found, promise = verdict.found, verdict.promise
    if found is None or promise is None:
        raise AssertionError("a promised file that is stored was found")
    return collected_artifact(
        call.request,
        found,
        mime=verdict.mime if verdict.produced else mime_to_store(verdict),
        visibility=promise.visibility if verdict.produced else "internal",
        description=promise.description,
    )


def _unpromised(call: ExecCall, found: CollectedFile) -> NewArtifact:
    return collected_artifact(call.request, found, mime=mime_of_name(found.path.rel), visibility="internal")


def _missing_paths(gathered: JobInputs) -> ContractError:
    missing = list(dict.fromkeys([*gathered.missing, *gathered.missing_cited]))
    listed = ", ".join(missing)
    return ContractError(
        ContractCode.PRE_EXEC_MISSING_PATHS,
        f"the code refers to files that are not in the conversation: {listed}; the code was not run",
        missing=missing,
    )


def _wanted(turn_id: str, contract: Contract, limits: CallLimits) -> OutputSpec:
    files = tuple(
        ExpectedFile(
            p.path.rel,
            p.is_glob,
            # Surplus matches are stored too; one above the bound shows that there are too many.
            GLOB_MATCHES_MAX + 1 if p.is_glob else 1,
            p.checks.inspected(),
            required=p.min_count > 0,
            opened_max=p.max_count,
        )
        for p in contract.promises
    )
    return OutputSpec(turn_id, files, EXTRAS_MAX, limits)


def _wish(call: ExecCall) -> InputRequest:
    request = call.request
    limits = call.bounds.limits
    return InputRequest(
        scope=call.scope,
        turn_id=request.turn_id or "",
        text=request.code or "",
        further_texts=call.further_texts(),
        language=call.language,
        assets=request.assets,
        rows=request.sources_pool,
        timeline=request.timeline,
        room_bytes=room_bytes(limits),
        room_inodes=limits.out_dir_inodes,
    )
