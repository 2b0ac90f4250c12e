"""The story of a rendering call: read, admit, rehost, render in a sandbox, check, host, blocks."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from contracts.artifacts import Checks, ContractError, Promise
from contracts.codes import ContractCode
from contracts.paths import FilePath, NamedPath, Namespace, UnsafePathError, in_turn
from contracts.render_tools import RENDER_PARAMS, render_format
from contracts.tool_calls import SourceRow, ToolCallRequest, ToolCallResponse
from service.artifacts.port import NewArtifact
from service.calls.invalid_params import parse_params
from service.calls.param_references import find_reference
from service.calls.tool import OpenedCall, Watcher
from service.calls.validation import invalid_value
from service.identity import Scope
from service.jobs.input_resolver import Wish
from service.jobs.produced_files import read_contents
from service.jobs.runner import Attempt, Program, SandboxRuns, collected_artifact, room_bytes
from service.jobs.verdicts import is_kept, judge
from service.rendering.response import RenderCall, RenderResult, answered, interrupted, refused
from service.sandbox.limits import CallPolicy
from service.sandbox.port import Job, OnOutput, StreamName, Wanted, WantedFile

# Until the path is read; a call that is refused before has no artifact.
_NO_TARGET = FilePath("turn_0", Namespace.FILES, "none")
_SAID_BYTES_MAX = 1024 * 1024
_FORMAT_OF_SUFFIX = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".svg": "svg",
    ".mmd": "mermaid",
    ".mermaid": "mermaid",
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


class Rendering:
    """The story of ``rendering_tools.write_*``."""

    def __init__(self, runs: SandboxRuns, policy: RenderPolicy) -> None:
        self._runs = runs
        self._policy = policy

    def open(self, scope: Scope, request: ToolCallRequest) -> OpenedCall | None:
        """See `Story.open`."""
        output = render_format(request.tool_id)
        if output is None:
            return None
        if request.code is not None:
            raise invalid_value("code", "a rendering tool takes no code; its document is params.content")
        params = parse_params(RENDER_PARAMS[output], request.params)
        bounds = self._policy.calls.bounds(request.limits, timeout_s=self._policy.wall_s)
        call = RenderCall(scope, request, output, params, bounds, _NO_TARGET)
        return OpenedCall(lambda watcher: self.render(call, watcher), partial(interrupted, call))

    async def render(self, call: RenderCall, watcher: Watcher) -> ToolCallResponse:
        """Renders one document to its answer.

        Raises:
            ServiceError: the caller's program or the service is at fault.
        """
        attempt = Attempt()
        try:
            target = _target(call)
            call = await self._resolved(call, attempt)
            _require_content(call)
        except ContractError as exc:
            return refused(call, exc, attempt)
        call = replace(call, target=target.file, is_rewritten=target.foreign)
        async with self._runs.place(call.bounds, attempt, watcher) as staging:
            await self._runs.gather(_wish(call), attempt, staging)
            missing = [*attempt.gathered.missing, *attempt.gathered.missing_cited]
            if call.params.strict and missing:
                return refused(call, _missing_assets(missing), attempt)
            said = bytearray()
            program = Program(_job(call, attempt), _wanted(call), _into(said))
            await self._runs.run(
                call.request, call.bounds, program, attempt=attempt, staging=staging, watcher=watcher
            )
            result = RenderResult.read(bytes(said))
            (verdict,) = judge((_promise(call),), attempt.collected, call.bounds.limits)
            found = verdict.found
            new: list[NewArtifact] = []
            if result.error is None and is_kept(verdict) and found is not None:
                title = call.params.title
                new = [
                    collected_artifact(
                        call.request, found, mime=verdict.mime, visibility="external", description=title
                    )
                ]
            reading = asyncio.to_thread(read_contents, [verdict], self._policy.calls.inline_bytes_max)
            stored, contents = await self._runs.host_and_read(call.scope, new, attempt, reading)
            attempt.finish()
            return answered(call, attempt, result, verdict, contents, stored)

    async def _resolved(self, call: RenderCall, attempt: Attempt) -> RenderCall:
        """The call with its content, if that was given by reference.

        The extension of the file gives the format if the call does not.

        Raises:
            ContractError: ``param_ref_not_visible``: the conversation has no such text.
        """
        reference = find_reference("content", call.params.content)
        if reference is None:
            return call
        text = await self._runs.resolve(call.scope, call.request, reference, attempt)
        params = call.params.model_copy(update={"content": text})
        source_format = _FORMAT_OF_SUFFIX.get(PurePosixPath(reference.path).suffix.lower())
        if source_format is not None and "format" not in params.model_fields_set:
            with contextlib.suppress(ValidationError):  # the tool does not take that format: its default stays
                fields = {**params.model_dump(exclude_unset=True), "format": source_format}
                params = RENDER_PARAMS[call.output].model_validate(fields)
        return replace(call, params=params)


def _require_content(call: RenderCall) -> None:
    """Refuses a blank content.

    Raises:
        ContractError: ``empty_content``.
    """
    if not call.params.content.strip() and not getattr(call.params, "merge", ()):
        raise ContractError(
            ContractCode.EMPTY_CONTENT, "params.content is blank; give the document, or the path of a file with it"
        )


def _target(call: RenderCall) -> NamedPath:
    """The file to write, in the current turn.

    Raises:
        ContractError: no turn, an unsafe path, or another format's extension.
    """
    if not call.request.turn_id:
        raise ContractError(ContractCode.MISSING_TURN_ID, "the call has no turn_id; give the current turn's id")
    suffix = f".{call.output}"
    path = call.params.path.strip()
    name = path.rsplit("/", 1)[-1]
    if "." not in name:
        path += suffix
    elif not name.lower().endswith(suffix):
        raise ContractError(ContractCode.INVALID_FILENAME, f"params.path '{path}' does not end in {suffix}")
    try:
        return in_turn(path, call.request.turn_id)
    except UnsafePathError as exc:
        raise ContractError(ContractCode.UNSAFE_PATH, f"params.path: {exc}") from exc


def _wish(call: RenderCall) -> Wish:
    request = call.request
    limits = call.bounds.limits
    return Wish(
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
    )


def _job(call: RenderCall, attempt: Attempt) -> Job:
    params = call.params
    request = {
        "output": call.output,
        "source_format": params.format,
        "content": params.content,
        "root": "/out",
        "target": call.target.physical,
        "metadata": {
            "title": params.title,
            "author": params.author,
            "subject": params.subject,
            "keywords": params.keywords,
            "language": params.language,
            "date": getattr(params, "date", ""),
        },
        "theme": params.theme,
        "sources": [_source(row) for row in attempt.gathered.cited],
        "missing": [*attempt.gathered.missing, *attempt.gathered.missing_cited],
        "options": params.options(),
        "strict": params.strict,
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


def _wanted(call: RenderCall) -> Wanted:
    file = WantedFile(call.target.rel, is_glob=False, matches_max=1, checks=call.params.checks())
    return Wanted(call.target.turn_id, (file,), 0, call.bounds.limits)


def _into(said: bytearray) -> OnOutput:
    """Keeps what the renderer says on stdout; its libraries' chatter on stderr is nobody's."""

    def on_output(stream: StreamName, piece: bytes, _: bool) -> None:
        if stream == "stdout" and len(said) < _SAID_BYTES_MAX:
            said.extend(piece)

    return on_output


def _missing_assets(missing: list[str]) -> ContractError:
    return ContractError(
        ContractCode.MISSING_ASSETS,
        f"the document names files that are not in the conversation: {', '.join(missing)}; nothing was rendered",
        missing=missing,
    )
