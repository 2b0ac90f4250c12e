"""The exec tools: run a caller's program in a sandbox and check the files that it promises."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

from proofbox.contracts.artifacts import GLOB_MATCHES_MAX, Contract, ContractError
from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.contracts.codes import ContractCode
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.media_types import is_text, mime_of_name
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.artifacts.port import NewArtifact, StoredArtifact
from proofbox.service.calls.invalid_params import Refusals, parse_params
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.param_references import find_reference
from proofbox.service.calls.port import CallStore
from proofbox.service.calls.suspension import CallResponse, Closing
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.egress.policy import CallNetwork, NetworkPolicy
from proofbox.service.execution.call import ExecCall, parse_call
from proofbox.service.execution.earlier_names import earlier_hint, missing_name
from proofbox.service.execution.report_hints import names_missing_library
from proofbox.service.execution.response import ExecRun, build_interrupted, build_response, refuse
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.failures import memory_failure, room_failure
from proofbox.service.jobs.inputs import InputRequest, JobInputs
from proofbox.service.jobs.produced_files import Content, ProducedFiles, annotate, read_contents
from proofbox.service.jobs.runner import (
    JobContext,
    JobResult,
    JobRunner,
    PhaseTimer,
    Program,
    collected_artifact,
    list_removed,
)
from proofbox.service.jobs.verdicts import Verdict, extras, failed_with_bytes, is_storable, judge, mime_to_store
from proofbox.service.jobs.workspace import WorkspaceUse, notes_on
from proofbox.service.packages.port import InstalledPackages, Packages, check_packages
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallLimits, CallPolicy, room_bytes
from proofbox.service.sandbox.port import CollectedFile, ExpectedFile, OutputSpec
from proofbox.service.timeline.token_counter import TokenCounter

EXTRAS_MAX = 500  # a file that is stored costs a call about 0.3 ms
_EARLIER_CALLS = 30
_EARLIER_CHARS_MAX = 200_000


class ExecTool:
    """The tool ``exec_tools.execute_code_*`` of one language.

    Args:
        language: the language of its programs.
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        tokens: counts tokens.
        image: lists the libraries of the sandbox image; None if they are not known.
        calls: the accepted calls, for hints on what an earlier program assigned.
        network: decides about the network of programs.
        packages: installs packages for programs; None if the operator has no index.
    """

    def __init__(  # noqa: PLR0913 - what a run is made of
        self,
        language: Language,
        jobs: JobRunner,
        policy: CallPolicy,
        tokens: TokenCounter,
        image: ImageInventory | None = None,
        *,
        calls: CallStore,
        network: NetworkPolicy,
        packages: Packages | None = None,
    ) -> None:
        self._language = language
        self._jobs = jobs
        self._image = image
        self._calls = calls
        self._policy = policy
        self._tokens = tokens
        self._network = network
        self._packages = packages

    def prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        """See `Tool.prepare`."""
        refusals, params, bounds = Refusals(), ExecParams(), None
        with refusals.collecting():
            params = parse_params(ExecParams, request.params)
        with refusals.collecting():
            bounds = self._policy.bounds(request.limits, timeout_s=params.timeout_s)
        if request.network is not None:
            with refusals.collecting():
                self._network.check(request, scope.principal.caller)
        with refusals.collecting():
            check_packages(request, params, self._language, self._packages, scope.principal.caller)
        given = request.params
        is_explored = given.get("explore") is True
        refusals.raise_any(partial(parse_call, request, given.get("contract"), explore=is_explored))
        if bounds is None:
            raise AssertionError("limits that are not refused have bounds")
        call = ExecCall(scope, request, self._language, params, bounds)
        return PreparedCall(
            partial(self.run, call), partial(build_interrupted, call), check=call.parse, announces_start=True
        )

    async def run(self, call: ExecCall, observer: CallObserver) -> CallResponse:
        """Runs one call.

        Raises:
            ServiceError: the call cannot be answered; a program may have run if ``observer`` has a sandbox.
        """
        timer = PhaseTimer()
        context = JobContext(call.scope, call.request, call.bounds, observer, timer)
        try:
            call = await self._resolve_code(call, context)
            contract, code = call.parse()
        except ContractError as exc:
            return refuse(call, exc, timer.timings)
        if self._packages is None or not call.packages:
            return await self._run_with(None, call, (contract, code), context)
        return await self._install(self._packages, call, (contract, code), context)

    async def _install(
        self, packages: Packages, call: ExecCall, parsed: tuple[Contract, bytes], context: JobContext
    ) -> CallResponse:
        """Runs a call with its packages, which are installed before it waits for a slot."""
        observer = context.observer
        began = time.monotonic()
        async with AsyncExitStack() as stack:
            try:
                with context.timer.phase("rehost"):
                    pinned = self._jobs.inputs.pinned_packages
                    using = packages.use(call.packages, call.scope.principal, pinned)
                    found = await stack.enter_async_context(using)
            except PackageRefusedError as exc:
                return refuse(call, exc, context.timer.timings)
            observer.on_packages(found.packages)
            deadline = context.bounds.deadline + time.monotonic() - began
            context = replace(context, bounds=replace(context.bounds, deadline=deadline))
            return await self._run_with(found, call, parsed, context)

    async def _run_with(
        self,
        packages: InstalledPackages | None,
        call: ExecCall,
        parsed: tuple[Contract, bytes],
        context: JobContext,
    ) -> CallResponse:
        contract, code = parsed
        observer, timer = context.observer, context.timer
        async with self._jobs.slot(context) as job:
            inputs = await job.resolve_inputs(_input_request(call))
            if inputs.all_missing:
                return refuse(call, _missing_paths(inputs), timer.timings, contract, inputs)
            wanted = self._output_spec(call, contract)
            network = None
            if call.request.network is not None:
                await self._network.check_now(call.request, call.scope.principal)
                network = self._open_network(call, observer)
            folder = None if packages is None else packages.folder_of_job
            program = Program(call.job(code, network, folder), wanted, observer.on_output)
            named = await job.name_shown(await job.run(program, inputs), wanted, inputs)
            verdicts, result = check_promises(contract, named, call.bounds.limits)
            contents = await self._read_contents(call.scope, verdicts)
            libraries = await self._list_libraries(contract, result, verdicts)
            earlier = await self._find_earlier(call, result)
            new, lasts = _new_artifacts(call, contract, result, verdicts), wanted.workspace is not None
            removed = list_removed(inputs, result.collected) if lasts else []
            outdated = await job.find_outdated(new, removed)
            workspace = WorkspaceUse(inputs, result.collected, wanted.workspace) if wanted.workspace else None
            save = await job.prepare(new, workspace, removed)
        timer.stop()
        use = None if network is None else network.use
        has_index = self._packages is not None

        def build(stored: Sequence[StoredArtifact]) -> ToolCallResponse:
            by_path = {each.path.physical: each for each in stored}
            files = ProducedFiles(verdicts, contents, by_path, removed)
            notes = notes_on(result.collected, inputs, wanted.workspace, outdated, removed, stored)
            notes = notes if network is None else [*notes, *network.notes]
            run = ExecRun(
                inputs, result, files, libraries, notes, use, packages, has_index=has_index, earlier=earlier
            )
            return build_response(call, contract, run, timer.timings)

        return build(()) if save is None else Closing(save, build)

    def _open_network(self, call: ExecCall, observer: CallObserver) -> CallNetwork | None:
        principal = call.scope.principal
        network = self._network.open(call.request, observer.on_connection, principal.tenant, principal.project)
        if network is not None:
            observer.on_network(network.use)
        return network

    def _output_spec(self, call: ExecCall, contract: Contract) -> OutputSpec:
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
        workspace = self._policy.workspace_bounds if call.params.workspace == "full" else None
        return OutputSpec(call.request.turn_id or "", files, EXTRAS_MAX, call.bounds.limits, workspace)

    async def _resolve_code(self, call: ExecCall, context: JobContext) -> ExecCall:
        """Returns the call with its program, if that was given by its path.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
        """
        reference = find_reference("code", call.request.code or "")
        if reference is None or not call.request.turn_id:
            return call
        code = await self._jobs.resolve_reference(context, reference)
        return replace(call, request=call.request.model_copy(update={"code": code}))

    async def _find_earlier(self, call: ExecCall, result: JobResult) -> str | None:
        """The hint on a name that a failed program misses and an earlier one assigned; None if there is none."""
        name = None if result.failure is None else missing_name(result.outcome.output, call.language)
        if name is None:
            return None
        tool_id = exec_tool_id(call.language)
        found = await self._calls.newest_requests(call.scope, _EARLIER_CALLS, _EARLIER_CHARS_MAX)
        return await asyncio.to_thread(earlier_hint, name, call.language, tool_id, found)

    async def _read_contents(self, scope: ConversationKey, verdicts: list[Verdict]) -> dict[str, Content]:
        """Reads what the blocks of kept files carry, before the store may move the files."""
        if not any(is_storable(verdict) for verdict in verdicts):
            return {}
        # Before the files become sources themselves.
        sids = await self._jobs.sources.sids(scope) if _may_cite(verdicts) else frozenset()

        def read() -> dict[str, Content]:
            return annotate(read_contents(verdicts, self._policy.inline_bytes_max), self._tokens, sids)

        return await asyncio.to_thread(read)

    async def _list_libraries(
        self, contract: Contract, result: JobResult, verdicts: list[Verdict]
    ) -> Mapping[str, str] | None:
        """Returns the libraries of the image if a hint will need them and they are known."""
        if self._image is None or not names_missing_library(contract, result, verdicts):
            return None
        inventory = await self._image.get()
        return inventory.libraries if inventory.is_known else None


def check_promises(contract: Contract, result: JobResult, limits: CallLimits) -> tuple[list[Verdict], JobResult]:
    """Judges the promised files; where one is missing or wrong, the failure of the result may be memory or disk."""
    verdicts = judge(contract.promises, result.collected, limits)
    if result.failure is None and not all(verdict.produced for verdict in verdicts):
        failure = memory_failure(result.outcome, limits) or room_failure(result.outcome, limits)
        result = replace(result, failure=failure)
    return verdicts, result


def _new_artifacts(
    call: ExecCall, contract: Contract, result: JobResult, verdicts: list[Verdict]
) -> list[NewArtifact]:
    """The files of a run to store: promised ones, also those that fail their checks, and others."""
    promised = [verdict for verdict in verdicts if verdict.produced] + failed_with_bytes(verdicts)
    unpromised = [found for found in extras(result.collected, contract.promises) if found.source is not None]
    return [_promise(call, verdict) for verdict in promised] + [_unpromised(call, found) for found in unpromised]


def _may_cite(verdicts: list[Verdict]) -> bool:
    """Whether a block may cite sources, as far as that is known without reading files from disk."""
    return any(
        is_storable(verdict)
        and is_text(verdict.mime)
        and verdict.found is not None
        and verdict.found.source is not None
        and (verdict.found.source.data is None or b"[[" in verdict.found.source.data[:TEXT_BYTES_MAX])
        for verdict in verdicts
    )


def _promise(call: ExecCall, verdict: Verdict) -> NewArtifact:
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


def _missing_paths(inputs: JobInputs) -> ContractError:
    missing = list(dict.fromkeys(inputs.all_missing))
    listed = ", ".join(missing)
    return ContractError(
        ContractCode.PRE_EXEC_MISSING_PATHS,
        f"the code refers to files that are not in the conversation: {listed}{inputs.lost_among(missing)}",
        missing=missing,
    )


def _input_request(call: ExecCall) -> InputRequest:
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
        has_workspace=call.params.workspace != "none",
    )
