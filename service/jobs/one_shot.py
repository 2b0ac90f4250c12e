"""One-shot jobs: programs whose files last as long as one request; only an audit line of each is stored."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import ContractCode
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_request import Limits, ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, Rehosted, ToolCallResponse
from proofbox.contracts.tools import Language
from proofbox.service.artifacts.port import ArtifactStore, NewSave, PreparedSave, StoredArtifact
from proofbox.service.artifacts.staging import Staging, build_staging_error
from proofbox.service.calls.answer import build_problem_answer
from proofbox.service.calls.audit.audit_port import AuditStore
from proofbox.service.calls.audit.audit_record import AuditedCall, build_draft, log_audit_line
from proofbox.service.calls.invalid_params import prepare_call
from proofbox.service.calls.observer import CallObserver, UsedReference
from proofbox.service.calls.param_references import Reference
from proofbox.service.calls.port import CallKey, CallState
from proofbox.service.calls.registration import payload_sha256
from proofbox.service.errors import UnknownToolError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.inputs import InputRequest, JobInputs
from proofbox.service.jobs.produced_files import usage
from proofbox.service.jobs.replay_inputs import UnstoredSave
from proofbox.service.jobs.rerun import ToolsOver
from proofbox.service.jobs.runner import JobContext, JobResult, JobRunner, Program
from proofbox.service.observability.log_context import about
from proofbox.service.observability.tracing import open_span, span
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.sandbox.port import ExpectedFile, FileState, InputFile, Job, OutputSpec, StreamName
from proofbox.service.timeline.block_writer import now_text

TURN_ID = "turn_1"
"""The turn of every one-shot job."""
_PRINTED_BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class OneShotDependencies:
    """What one-shot jobs need.

    Attributes:
        jobs: runs programs in sandboxes.
        tools_over: builds the tools over a job runner of the caller's.
        artifacts: has the staging folders.
        audit: stores the audit lines.
        policy: the operator's decisions about any call.
        wall_s: wall clock of each job.
        service: the service that writes the audit lines.
    """

    jobs: JobRunner
    tools_over: ToolsOver
    artifacts: ArtifactStore
    audit: AuditStore
    policy: CallPolicy
    wall_s: float
    service: AuditService


@dataclass(frozen=True, slots=True)
class OneShotFile:
    """An input of a job.

    Attributes:
        name: its path below the turn's ``files/``.
        content: its bytes.
    """

    name: str
    content: FileContent


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """The result of a program.

    Attributes:
        job: how it ended.
        printed: what it wrote to stdout.
        output: the file that it was to write; None if it wrote none.
    """

    job: JobResult
    printed: bytes
    output: Path | None


class OneShotJobs:
    """Runs tools and programs for requests that have no conversation."""

    def __init__(self, needs: OneShotDependencies) -> None:
        self._needs = needs

    @asynccontextmanager
    async def open(self, principal: Principal, conversation_id: str, request_id: str) -> AsyncIterator["OneShot"]:
        """Opens the folder of a request: uploads and results are in it, and it is removed on exit.

        Args:
            principal: the caller.
            conversation_id: names the kind of request in audit lines; nothing is stored in such a conversation.
            request_id: the HTTP request.

        Raises:
            StoreFailedError, StoreFullError: the folder cannot be created.
        """
        async with self._needs.artifacts.staging() as folder:
            yield OneShot(self._needs, ConversationKey(principal, conversation_id), request_id, folder)


@dataclass(slots=True)
class OneShot:
    """The jobs of one request.

    Attributes:
        folder: its files; removed at its end.
    """

    _needs: OneShotDependencies
    _scope: ConversationKey
    _request_id: str
    folder: Path
    _results: int = field(default=0)

    async def call_tool(
        self, tool_id: str, params: dict[str, Any], files: Sequence[OneShotFile]
    ) -> tuple[ToolCallResponse, Path | None]:
        """Calls a tool that runs in a sandbox, on these files only.

        Returns:
            Its response, and the file that it made.

        Raises:
            ServiceError: the call cannot be answered.
        """
        outputs = _MovedOutputs(self._next_result())
        jobs = replace(self._needs.jobs, inputs=_GivenInputs(files), outputs=outputs)
        request = self._request(tool_id, params)
        prepared = prepare_call(self._needs.tools_over(jobs), self._scope, request)
        if prepared is None:
            raise UnknownToolError(f"there is no tool '{tool_id}' for one-shot requests")
        observer = CallObserver(self._scope.principal.caller)
        async with self._audited(request, observer) as answer:
            answer.response = response = await prepared.respond(observer)
        return response, outputs.moved

    async def run_program(
        self, tool_id: str, code: bytes, stdin: bytes, files: Sequence[OneShotFile], output: str
    ) -> ProgramResult:
        """Runs a Python program of ours on these files only.

        Args:
            tool_id: names the program in the audit line.
            code: the program.
            stdin: its standard input.
            files: its inputs.
            output: the one file that it may write, below the turn's ``files/``.

        Raises:
            ServiceError: it could not be run.
        """
        request = self._request(tool_id, {})
        bounds = self._needs.policy.bounds(Limits(), timeout_s=self._needs.wall_s)
        observer = CallObserver(self._scope.principal.caller)
        context = JobContext(self._scope, request, bounds, observer)
        printed = bytearray()

        def on_output(stream: StreamName, piece: bytes, _: bool) -> None:
            if stream == "stdout" and len(printed) < _PRINTED_BYTES_MAX:
                printed.extend(piece)

        expected = ExpectedFile(output, is_glob=False, matches_max=1, checks={}, required=False)
        job = Job(Language.PYTHON, code, "program", TURN_ID, bounds.limits, stdin=stdin)
        program = Program(job, OutputSpec(TURN_ID, (expected,), 0, bounds.limits), on_output)
        jobs = replace(self._needs.jobs, inputs=_GivenInputs(files))
        async with self._audited(request, observer) as answer, jobs.slot(context) as slot:
            inputs = await slot.resolve_inputs(_input_request(self._scope))
            result = await slot.run(program, inputs)
            found = next((item for item in result.collected.found if item.state is FileState.FILE), None)
            moved = None
            if found is not None and found.source is not None and result.failure is None:
                moved = self._next_result()
                await asyncio.to_thread(_move, found.source, moved)
                observer.on_stored(
                    [_unsaved(found.path, found.size_bytes, found.sha256 or "", "application/octet-stream")]
                )
            failure = result.failure
            error = (
                None
                if failure is None
                else EnvelopeError(code=failure.code, message=failure.message, where=tool_id, managed=True)
            )
            answer.response = ToolCallResponse(
                ok=failure is None,
                error=error,
                report="",
                blocks=[],
                usage=usage(result.outcome),
                sandbox=result.sandbox,
            )
        return ProgramResult(result, bytes(printed), moved)

    def _request(self, tool_id: str, params: dict[str, Any]) -> ToolCallRequest:
        return ToolCallRequest(
            tool_id=tool_id,
            tool_call_id=f"once_{uuid.uuid4().hex[:24]}",
            conversation_id=self._scope.conversation_id,
            turn_id=TURN_ID,
            params=params,
        )

    def _next_result(self) -> Path:
        self._results += 1
        return self.folder / f"result-{self._results}"

    @asynccontextmanager
    async def _audited(self, request: ToolCallRequest, observer: CallObserver) -> AsyncIterator["_Answer"]:
        """Stores the audit line of a job, also of one that failed after its sandbox had started."""
        key = CallKey(self._scope, request.tool_call_id)
        answer = _Answer()
        with about(call_id=key.tool_call_id), span("one-shot", {"proofbox.tool": request.tool_id}):
            asked = AuditedCall(
                key, request, payload_sha256(request), now_text(), self._request_id, open_span().traceparent
            )
            try:
                yield answer
            except BaseException as exc:
                if observer.record.sandbox is not None:
                    body = build_problem_answer(exc, self._request_id).body
                    await asyncio.shield(self._store_line(asked, observer, CallState.FAILED, body, None))
                raise
            if answer.response is not None:
                body = await asyncio.to_thread(answer.response.model_dump_json)
                await self._store_line(asked, observer, CallState.DONE, body, answer.response)

    async def _store_line(
        self,
        asked: AuditedCall,
        observer: CallObserver,
        state: CallState,
        body: str,
        response: ToolCallResponse | None,
    ) -> None:
        draft = await asyncio.to_thread(
            build_draft, asked, observer.record, self._needs.service, state, body, response
        )
        log_audit_line(await self._needs.audit.add(self._scope.principal, draft))


@dataclass(slots=True)
class _Answer:
    response: ToolCallResponse | None = None


class _GivenInputs:
    """The port ``InputSource``: the files of the request, whatever the document names."""

    def __init__(self, files: Sequence[OneShotFile]) -> None:
        self._files = files

    @property
    def pinned_packages(self) -> None:
        """See `InputSource.pinned_packages`."""

    async def resolve_inputs(self, request: InputRequest, staging: Staging) -> JobInputs:  # noqa: ARG002 - the port's
        """See `InputSource.resolve_inputs`."""
        return await asyncio.to_thread(self._inputs, request.turn_id)

    async def resolve_reference(
        self,
        scope: ConversationKey,  # noqa: ARG002 - the port's
        request: ToolCallRequest,  # noqa: ARG002
        reference: Reference,
    ) -> tuple[str, UsedReference]:
        """See `InputSource.resolve_reference`."""
        raise ContractError(
            ContractCode.PARAM_REF_NOT_VISIBLE,
            f"'{reference.path[:80]}' is the path of a file; send the text itself",
        )

    def _inputs(self, turn_id: str) -> JobInputs:
        inputs = JobInputs()
        for file in self._files:
            path = FilePath(turn_id, Namespace.FILES, file.name)
            size_bytes, sha256 = file.content.measure()
            inputs.places.take(path)
            inputs.files[path.physical] = InputFile(path, file.content, size_bytes, writable=False)
            inputs.ledger.append(
                Rehosted(
                    asked="assets",
                    source="asset",
                    physical_path=path.physical,
                    sha256=sha256,
                    size_bytes=size_bytes,
                    ms=0.0,
                )
            )
        return inputs


class _MovedOutputs:
    """The port ``OutputStore``: the one file of a tool is moved into the folder of the request."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self.moved: Path | None = None

    async def prepare(self, new: NewSave) -> PreparedSave:
        """See `OutputStore.prepare`."""
        for artifact in new.artifacts:
            await asyncio.to_thread(_move, artifact.source, self._target)
            self.moved = self._target
        return UnstoredSave(new)


def _unsaved(path: FilePath, size_bytes: int, sha256: str, mime: str) -> StoredArtifact:
    return StoredArtifact(
        path=path,
        version=0,
        size_bytes=size_bytes,
        sha256=sha256,
        mime=mime,
        visibility="external",
        description="",
        created=now_text(),
    )


def _move(content: FileContent, target: Path) -> None:
    """Moves a staged file; staging folders are on one file system.

    Raises:
        StoreFullError, StoreFailedError: it cannot be moved or written.
    """
    try:
        if content.path is None:
            target.write_bytes(content.read())
        else:
            content.path.replace(target)
    except OSError as exc:
        raise build_staging_error(exc) from exc


def _input_request(scope: ConversationKey) -> InputRequest:
    return InputRequest(scope=scope, turn_id=TURN_ID, text="", assets=(), rows=())
