"""Runs of programs: one call of an exec tool in a session of its own, with its inputs and its outputs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import ValidationError
from starlette.requests import Request

from proofbox.contracts.exec_params import ARGS_MAX
from proofbox.contracts.paths import FilePath
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_request import Asset, ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.api.responses import request_id_of
from proofbox.service.api.routes.tool_calls import answer_or_leave
from proofbox.service.api.services import Services
from proofbox.service.artifacts.path_tree import PathTree
from proofbox.service.artifacts.port import NewArtifact, StoredArtifact
from proofbox.service.calls.service import Answer
from proofbox.service.calls.validation import invalid_model
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.files import SessionFile, SessionFiles, safe_path
from proofbox.service.facades.librechat.ids import RUN_TURN, conversation_of, new_id, require_id
from proofbox.service.facades.librechat.owners import Owner, parse_owner
from proofbox.service.facades.librechat.requests import FileReference
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal

WALL_S = 300.0
WORKING_FOLDER = "/mnt/data"
_SHOWN_AS = {"env": {"PROOFBOX_SHOWN_STEM": "plot"}}  # what users of LibreChat know: plot_1.png
_EVERYTHING = [{"glob": "**", "min_count": 0, "description": "A file of the program."}]


class RunProblemError(Exception):
    """The core refused or could not answer the call of a run.

    Attributes:
        problem: why.
        retry_after_s: when to try again; None: not at all.
    """

    def __init__(self, problem: Problem, retry_after_s: float | None) -> None:
        super().__init__(problem.detail)
        self.problem = problem
        self.retry_after_s = retry_after_s


class ClientGoneError(Exception):
    """The client closed the connection; its run was cancelled."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """An input file of a run.

    Attributes:
        file: the file.
        path: where it lies in the run.
        owner: its owner.
    """

    file: SessionFile
    path: FilePath
    owner: Owner


@dataclass(frozen=True, slots=True)
class Run:
    """A program to run.

    Attributes:
        language: its language.
        code: the program.
        inputs: its input files.
        args: its arguments.
        assets: further files, which are not in its folder.
        wall_s: its wall clock.
    """

    language: Language
    code: str
    inputs: Sequence[RunInput] = ()
    args: Sequence[str] = ()
    assets: Sequence[Asset] = ()
    wall_s: float = WALL_S


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that ended.

    Attributes:
        session: its session.
        response: the answer of the exec tool.
        outputs: the files that it left, all of them hosted.
        inputs: its input files.
    """

    session: str
    response: ToolCallResponse
    outputs: list[StoredArtifact] = field(default_factory=list)
    inputs: Sequence[RunInput] = ()


class RunObserver(Protocol):
    """Observes a run, and may cancel it."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the run is to end."""

    def start(self, conversation: str, call: str) -> None:
        """Note conversation and call id of a run that is about to start; an exception keeps it from that."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs programs of users.

    Attributes:
        services: the services of the application.
        files: the files of sessions.
    """

    services: Services
    files: SessionFiles

    async def resolve_inputs(self, caller: Principal, references: Sequence[FileReference] | None) -> list[RunInput]:
        """Find the input files of a run.

        Raises:
            RefusedError: a reference is malformed, two cannot lie beside each other, or a file is not the caller's.
            StoreFailedError: the store failed.
        """
        places, inputs = PathTree(), list[RunInput]()
        seen: set[FilePath] = set()
        known: dict[tuple[Principal, str], dict[str, SessionFile]] = {}
        for index, given in enumerate(references or ()):
            where = f"files[{index}]"
            session = require_id(f"{where}.storage_session_id", given.storage_session_id or given.session_id or "")
            wanted = require_id(f"{where}.id", given.id)
            path = safe_path(f"{where}.name", RUN_TURN, given.name)
            if path in seen or not places.take(path):
                raise RefusedError(f"{where}.name: '{path.rel}' is also another file or a folder of one")
            seen.add(path)
            owner = parse_owner(given.kind, given.resource_id, given.version, given.entity_id)
            key = (owner.principal(caller), session)
            if key not in known:
                known[key] = {file.id: file for file in await self.files.all(*key)}
            if wanted not in known[key]:
                # Whether the file is another one's or does not exist is not shown.
                raise RefusedError("Unauthorized file reference", status=403)
            inputs.append(RunInput(known[key][wanted], path, owner))
        return inputs

    async def run(
        self, request: Request, caller: Principal, run: Run, observer: RunObserver | None = None
    ) -> EndedRun:
        """Run a program and wait for its end.

        Raises:
            RefusedError, ServiceError, RunProblemError: the call was refused or could not be answered.
            ClientGoneError: the client went away; the run was cancelled.
        """
        if len(run.args) > ARGS_MAX:
            raise RefusedError(f"args: there are {len(run.args)} (limit {ARGS_MAX}); put them into a file")
        session = new_id()
        try:
            call = _call(session, run)
        except ValidationError as exc:
            raise invalid_model(exc) from exc
        if observer is not None:
            observer.start(call.conversation_id, call.tool_call_id)
        ticket = await self.services.calls.submit(
            caller, call, idempotency_key=None, request_id=request_id_of(request), detached=False
        )
        if observer is not None and observer.is_cancelled:  # while the call was registered
            await self.services.calls.cancel(caller, call.tool_call_id, call.conversation_id)
        answer = await answer_or_leave(request, ticket)
        if answer is None:
            await self.services.calls.cancel(caller, call.tool_call_id, call.conversation_id)
            raise ClientGoneError
        response = await asyncio.to_thread(_response, answer)
        outputs = await self._host(ConversationKey(caller, call.conversation_id), call, response)
        return EndedRun(session, response, outputs, run.inputs)

    async def _host(
        self, scope: ConversationKey, call: ToolCallRequest, response: ToolCallResponse
    ) -> list[StoredArtifact]:
        """Return the files of a run; hosts those that fail a check or exceed the contract, as later runs get them.

        Raises:
            StoreFailedError, StoreFullError: the store failed.
        """
        stored_paths = {entry.physical_path for entry in response.artifacts if entry.sha256 is not None}
        if not stored_paths:
            return []
        store = self.services.artifacts
        stored = [each for each in await store.of_turn(scope, RUN_TURN) if each.path.physical in stored_paths]
        internal = [each for each in stored if each.hosted_uri is None]
        if not internal:
            return stored
        async with store.staging() as folder:
            local = await store.fetch_all(scope, internal, folder)
            again = [
                NewArtifact(
                    path=each.path,
                    source=FileContent(file),
                    size_bytes=each.size_bytes,
                    sha256=each.sha256,
                    mime=each.mime,
                    visibility="external",
                    description=each.description,
                    tool_call_id=call.tool_call_id,
                )
                for each, file in zip(internal, local, strict=True)
            ]
            hosted = {each.path: each for each in await store.save(scope, again)}
        return [hosted.get(each.path, each) for each in stored]


def _call(session: str, run: Run) -> ToolCallRequest:
    assets = [
        Asset(physical_path=given.path.physical, uri=given.file.artifact.hosted_uri, mime=given.file.artifact.mime)
        for given in run.inputs
    ]
    return ToolCallRequest(
        tool_id=exec_tool_id(run.language),
        tool_call_id=f"exec:{session}",
        conversation_id=conversation_of(session),
        turn_id=RUN_TURN,
        params={
            "contract": _EVERYTHING,
            "timeout_s": run.wall_s,
            "args": list(run.args),
            "cwd": WORKING_FOLDER,
            **_SHOWN_AS,
        },
        code=run.code,
        assets=[*assets, *run.assets],
    )


def _response(answer: Answer) -> ToolCallResponse:
    if answer.is_problem:
        raise RunProblemError(Problem.model_validate_json(answer.body), answer.retry_after_s)
    return ToolCallResponse.model_validate_json(answer.body)
