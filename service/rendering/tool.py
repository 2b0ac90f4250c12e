"""The rendering tools: run the renderer in a sandbox and store its document."""

import asyncio
import contextlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from proofbox.contracts.artifacts import Checks, ContractError, Promise, raise_mistakes
from proofbox.contracts.codes import ContractCode
from proofbox.contracts.paths import FilePath, NamedPath, Namespace, UnsafePathError, in_turn
from proofbox.contracts.render_tools import RENDER_PARAMS, OutputFormat
from proofbox.contracts.tool_call_request import SourceRow, ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.port import NewArtifact, StoredArtifact
from proofbox.service.calls.invalid_params import Refusals, parse_params
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.param_references import ABSENT, Reference, find_reference
from proofbox.service.calls.suspension import CallResponse, Closing
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.calls.validation import invalid_value
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.inputs import InputRequest, JobInputs
from proofbox.service.jobs.produced_files import ProducedFiles, read_contents
from proofbox.service.jobs.runner import JobContext, JobRunner, PhaseTimer, Program, collected_artifact
from proofbox.service.jobs.verdicts import Verdict, is_storable, judge
from proofbox.service.rendering.response import (
    RenderCall,
    RendererAnswer,
    RenderRun,
    build_interrupted,
    build_response,
    refuse,
)
from proofbox.service.sandbox.limits import CallPolicy, room_bytes
from proofbox.service.sandbox.port import ExpectedFile, Job, OnOutput, OutputSpec, StreamName

# Until the path is read; a call that is refused before has no artifact.
_NO_TARGET = FilePath("turn_0", Namespace.FILES, "none")
_PRINTED_BYTES_MAX = 1024 * 1024
# A document that is one name and nothing else is the file of that name.
_BARE_NAME = re.compile(
    r"\s*((?!\w+://)[^\s#*`<>|\[\]][^\n#*`<>|\[\]]{0,250}\.(?:md|markdown|txt|rst|log|html?|svg|mmd|mermaid|csv|tsv"
    r"|json|xml|ya?ml|pdf|docx?|odt|rtf|pptx?|xlsx?|png|jpe?g|gif|webp)|(?:\./)?(?:files|attachments)/\S+)\s*",
    re.IGNORECASE,
)
# If there is no such file, it is a line of text only where it has blanks and no folder of ours.
_SURE_NAME = re.compile(r"\S+|(?:\./)?(?:files|attachments)/.*", re.IGNORECASE)
_FORMAT_OF_SUFFIX = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
    ".csv": "csv",
    ".tsv": "csv",
}


@dataclass(frozen=True, slots=True)
class RenderPolicy:
    """The operator's decisions about rendering calls.

    Attributes:
        calls: those about any call.
        wall_s: wall clock of one rendering.
    """

    calls: CallPolicy
    wall_s: float


class RenderTool:
    """The tool ``rendering_tools.write_*`` of one format.

    Args:
        output: the format that it writes.
        jobs: runs the renderer in sandboxes.
        policy: the operator's decisions.
    """

    def __init__(self, output: OutputFormat, jobs: JobRunner, policy: RenderPolicy) -> None:
        self._output = output
        self._jobs = jobs
        self._policy = policy

    def prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        """See `Tool.prepare`."""
        refusals, params, bounds = Refusals(), None, None
        if request.code is not None:
            with refusals.collecting():
                raise invalid_value("code", "a rendering tool takes no code; its document is params.content")
        with refusals.collecting():
            params = parse_params(RENDER_PARAMS[self._output], request.params)
        with refusals.collecting():
            bounds = self._policy.calls.bounds(request.limits, timeout_s=self._policy.wall_s)
        refusals.raise_any()
        if params is None or bounds is None:
            raise AssertionError("what is not refused is there")
        call = RenderCall(scope, request, self._output, params, bounds, _NO_TARGET)
        return PreparedCall(
            partial(self.run, call),
            partial(build_interrupted, call),
            check=partial(_check, call),
            announces_start=True,
        )

    async def run(self, call: RenderCall, observer: CallObserver) -> CallResponse:
        """Renders one document.

        Raises:
            ServiceError: the call cannot be answered.
        """
        timer = PhaseTimer()
        context = JobContext(call.scope, call.request, call.bounds, observer, timer)
        try:
            target = _check(call)
            call = await self._resolve_content(call, context)
            _require_content(call)
        except ContractError as exc:
            return refuse(call, exc, timer.timings)
        call = replace(call, target=target.file, is_rewritten=target.foreign)
        async with self._jobs.slot(context) as job:
            inputs = await job.resolve_inputs(_input_request(call))
            if call.params.is_strict() and inputs.all_missing:
                return refuse(call, _missing_assets(inputs), timer.timings, inputs)
            printed = bytearray()
            program = Program(_renderer_job(call, inputs), _output_spec(call), _collect_stdout(printed))
            result = await job.run(program, inputs)
            answer = RendererAnswer.parse(bytes(printed))
            (verdict,) = judge((_promise(call),), result.collected, call.bounds.limits)
            contents = await asyncio.to_thread(read_contents, [verdict], self._policy.calls.inline_bytes_max)
            save = await job.prepare(_new_artifacts(call, answer, verdict))
        timer.stop()

        def build(stored: Sequence[StoredArtifact]) -> ToolCallResponse:
            files = ProducedFiles([verdict], contents, {each.path.physical: each for each in stored})
            return build_response(call, RenderRun(inputs, result, answer, files), timer.timings)

        return build(()) if save is None else Closing(save, build)

    async def _resolve_content(self, call: RenderCall, context: JobContext) -> RenderCall:
        """Returns the call with its content, if that was given by its path.

        The extension of the file gives the format if the call does not.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
        """
        reference = find_reference("content", call.params.content)
        if reference is None:
            bare = _BARE_NAME.fullmatch(call.params.content)
            if bare is None:
                return call
            reference = Reference("content", bare[1])
            try:
                text = await self._jobs.resolve_reference(context, reference)
            except ContractError as exc:
                is_no_file = ABSENT in exc.message or isinstance(exc.__cause__, UnsafePathError)
                if is_no_file and _SURE_NAME.fullmatch(reference.path) is None:
                    return call
                raise
        else:
            text = await self._jobs.resolve_reference(context, reference)
        params = call.params.model_copy(update={"content": text})
        source_format = _FORMAT_OF_SUFFIX.get(PurePosixPath(reference.path).suffix.lower())
        if source_format is not None and "format" not in params.model_fields_set:
            with contextlib.suppress(ValidationError):  # the tool does not take that format: its default stays
                fields = {**params.model_dump(exclude_unset=True), "format": source_format}
                params = RENDER_PARAMS[call.output].model_validate(fields)
        return replace(call, params=params)


def _new_artifacts(call: RenderCall, answer: RendererAnswer, verdict: Verdict) -> list[NewArtifact]:
    if answer.error is not None or not is_storable(verdict) or verdict.found is None:
        return []
    title = call.params.title
    return [
        collected_artifact(call.request, verdict.found, mime=verdict.mime, visibility="external", description=title)
    ]


def _require_content(call: RenderCall) -> None:
    """Refuses a blank content.

    Raises:
        ContractError: ``empty_content``.
    """
    if not call.params.content.strip() and not getattr(call.params, "merge", ()):
        raise ContractError(
            ContractCode.EMPTY_CONTENT, "params.content is blank; give the document, or the path of a file with it"
        )


def _check(call: RenderCall) -> NamedPath:
    """The file to write, in the current turn.

    Raises:
        ContractError: no turn, an unsafe path, another format's extension, or no content; it lists all of that.
    """
    target = NamedPath(_NO_TARGET, call.params.path, foreign=False, source=_NO_TARGET)
    mistakes: list[ContractError] = []
    if not call.request.turn_id:
        message = "the call has no turn_id; give the current turn's id"
        mistakes.append(ContractError(ContractCode.MISSING_TURN_ID, message))
    for part in (_parse_target, _require_content):
        try:
            target = part(call) or target
        except ContractError as exc:
            mistakes.append(exc)
    raise_mistakes(mistakes)
    return target


def _parse_target(call: RenderCall) -> NamedPath:
    """The file to write, in the current turn.

    Raises:
        ContractError: an unsafe path, or another format's extension.
    """
    suffix = f".{call.output}"
    path = call.params.path.strip()
    name = path.rsplit("/", 1)[-1]
    if "." not in name:
        path += suffix
    elif not name.lower().endswith(suffix):
        raise ContractError(ContractCode.INVALID_FILENAME, f"params.path '{path}' does not end in {suffix}")
    try:
        return in_turn(path, call.request.turn_id or _NO_TARGET.turn_id)
    except UnsafePathError as exc:
        raise ContractError(ContractCode.UNSAFE_PATH, f"params.path: {exc}") from exc


def _input_request(call: RenderCall) -> InputRequest:
    request = call.request
    limits = call.bounds.limits
    return InputRequest(
        scope=call.scope,
        turn_id=call.target.turn_id,
        text=call.params.mentions(),
        assets=request.assets,
        rows=request.sources_pool,
        timeline=request.timeline,
        own_may_be_absent=False,
        room_bytes=room_bytes(limits),
        room_inodes=limits.out_dir_inodes,
        theme=call.params.documents(),
        target=call.target.rel,
    )


def _renderer_job(call: RenderCall, inputs: JobInputs) -> Job:
    params = call.params
    request = {
        "output": call.output,
        "source_format": params.format,
        "content": params.content,
        "root": "/out",
        "target": call.target.physical,
        "metadata": params.metadata(),
        "theme": params.theme,
        "sources": [_source(row) for row in inputs.cited],
        "missing": inputs.all_missing,
        "names": inputs.names,
        "encodings": inputs.encodings,
        "options": params.options(),
        "strict": params.is_strict(),
    }
    limits = call.bounds.limits
    return Job(
        "render", json.dumps(request, ensure_ascii=False).encode(), call.target.rel, call.target.turn_id, limits
    )


def _source(row: SourceRow) -> dict[str, Any]:
    path = row.file
    return {"sid": row.sid, "title": row.title, "url": row.url, "path": path.physical if path else None}


def _promise(call: RenderCall) -> Promise:
    return Promise(
        path=call.target,
        is_glob=False,
        description=call.params.title,
        visibility="external",
        min_count=1,
        max_count=1,
        checks=Checks(**call.params.checks()),
    )


def _output_spec(call: RenderCall) -> OutputSpec:
    file = ExpectedFile(call.target.rel, is_glob=False, matches_max=1, checks=call.params.checks())
    return OutputSpec(call.target.turn_id, (file,), 0, call.bounds.limits)


def _collect_stdout(printed: bytearray) -> OnOutput:
    """Collects what the renderer prints on stdout; what its libraries print on stderr is dropped."""

    def on_output(stream: StreamName, piece: bytes, _: bool) -> None:
        if stream == "stdout" and len(printed) < _PRINTED_BYTES_MAX:
            printed.extend(piece)

    return on_output


def _missing_assets(inputs: JobInputs) -> ContractError:
    missing = inputs.all_missing
    return ContractError(
        ContractCode.MISSING_ASSETS,
        f"the document names files that are not in the conversation: {', '.join(missing)}"
        f"{inputs.lost_among(missing)}; nothing was rendered",
        missing=missing,
    )
