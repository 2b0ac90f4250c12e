"""Programs that call tools of the client: run again from the start with each round of results."""

import asyncio
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from proofbox.contracts.tools import Language
from proofbox.service.api.strict_json import parse_model
from proofbox.service.errors import InvalidRequestError
from proofbox.service.facades.librechat.answers import build_output, failure_message, succeeded
from proofbox.service.facades.librechat.cancellations import Cancellable
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.ids import conversation_of
from proofbox.service.facades.librechat.replay_state import ReplayState, ReplayStates, parse_token
from proofbox.service.facades.librechat.requests import (
    PARAMETERS_MAX,
    TIMEOUT_MS_MAX,
    TOOLS_MAX,
    FileReference,
    PendingCalls,
    ProgrammaticRequest,
    ProgrammaticTool,
)
from proofbox.service.facades.librechat.runs import EndedRun, Run, Runs
from proofbox.service.facades.librechat.wrapping import (
    CALLS_FILE,
    bash_name,
    bash_with_tools,
    python_name,
    python_with_tools,
)
from proofbox.service.identity import ConversationKey, Principal

CALLS_BYTES_MAX = 5_000_000
"""The bytes of the calls of one round; those of their results have the same bound."""
_LANGUAGES = ("python", "bash")
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class ProgrammaticRuns:
    """Runs programs with tools.

    Attributes:
        runs: runs their programs.
        states: what is stored between rounds.
    """

    runs: Runs
    states: ReplayStates

    async def start(
        self, request: Request, caller: Principal, asked: ProgrammaticRequest, cancellable: Cancellable
    ) -> dict[str, Any]:
        """Run a new program and return its output, or the calls that it waits for.

        Raises:
            RefusedError: the request is wrong.
            ServiceError, RunProblemError, ClientGoneError: see `Runs.run`.
        """
        content = await asyncio.to_thread(_checked, asked)
        await self.runs.resolve_inputs(caller, asked.files)  # before anything is stored
        state = await self.states.start(caller, content)
        with self.states.in_use(state.execution):
            try:
                return await self._run(request, caller, state, cancellable)
            except BaseException:  # also a cancelled request: no client has the token of the state
                await self.states.discard(state)
                raise

    async def resume(
        self, request: Request, caller: Principal, asked: ProgrammaticRequest, cancellable: Cancellable
    ) -> dict[str, Any]:
        """Run a program again with the results of its calls; returns and raises as `start`.

        A repeated request has the same answer: its results are stored once.
        """
        if not asked.tool_results:
            raise RefusedError("tool_results must be a non-empty array when continuation_token is provided")
        execution, number = parse_token(asked.continuation_token or "")
        with self.states.in_use(execution):
            state = await self.states.find(caller, execution)
            if number == 0 or number not in {state.rounds - 1, state.rounds}:
                raise RefusedError("Invalid continuation token")
            if number < state.rounds:
                return await self._waiting(state)
            if ("results", number) not in state.stored:
                await self.states.save_results(state, number, asked.tool_results)
            return await self._run(request, caller, state, cancellable)

    async def _run(
        self, request: Request, caller: Principal, state: ReplayState, cancellable: Cancellable
    ) -> dict[str, Any]:
        asked, program = await asyncio.to_thread(_program, state.request)
        tools = asked.tools or []
        inputs = await self.runs.resolve_inputs(caller, asked.files)
        run = Run(
            Language.PYTHON,
            program,
            inputs,
            assets=state.history(),
            wall_s=(asked.timeout or TIMEOUT_MS_MAX) / _MS,
        )
        ended = await self.runs.run(request, caller, run, cancellable)
        output = build_output(ended)
        printed = {f"partial_{name}": output[name] for name in ("stdout", "stderr") if output[name]} | {
            "session_id": ended.session
        }
        try:
            calls = await self._calls(caller, ended)
            if calls is None:
                await self.states.end(state)
                return _ended(ended)
            _require_known(calls, tools)
        except _WrongCallsError as exc:
            await self.states.end(state)
            return {"status": "error", "error": str(exc), **printed}
        await self.states.save_calls(state, calls)
        return {**await self._waiting(state), **printed}

    async def _waiting(self, state: ReplayState) -> dict[str, Any]:
        return {
            "status": "tool_call_required",
            "continuation_token": state.token(),
            "tool_calls": await self.states.calls_of(state, state.rounds),
        }

    async def _calls(self, caller: Principal, ended: EndedRun) -> list[dict[str, Any]] | None:
        """Return the calls that a program waits for; None: it ended by itself.

        Raises:
            _WrongCallsError: the file of the calls, which the program may have written itself, has something else.
            StoreFailedError: the store failed.
        """
        found = next((each for each in ended.outputs if each.path.rel == CALLS_FILE), None)
        if found is None or not succeeded(ended.response):
            return None
        if found.size_bytes > CALLS_BYTES_MAX:
            raise _WrongCallsError(
                f"Tool calls too large: {found.size_bytes} bytes (limit {CALLS_BYTES_MAX}); pass less to the tools"
            )
        scope = ConversationKey(caller, conversation_of(ended.session))
        [content] = await self.runs.services.artifacts.contents(scope, [found])
        return await asyncio.to_thread(_parsed_calls, content)


def _program(request: dict[str, Any]) -> tuple[ProgrammaticRequest, str]:
    """Return a stored request and the program that runs in the sandbox for it."""
    asked = ProgrammaticRequest.model_validate(request)
    wrap = bash_with_tools if asked.language == "bash" else python_with_tools
    return asked, wrap(asked.code or "", asked.tools or [])


class _WrongCallsError(Exception):
    """The calls that a program asked for cannot be passed on."""


def _parsed_calls(content: bytes) -> list[dict[str, Any]]:
    """Return the calls in a file.

    Raises:
        _WrongCallsError: it has another form, or numbers or text that JSON cannot carry.
    """
    try:
        calls = parse_model(bytearray(content), PendingCalls)
    except InvalidRequestError as exc:
        raise _WrongCallsError(f"Sandbox wrote tool calls that are not valid: {exc.message[:1_000]}") from exc
    return [{"name": call.name, "input": call.input} for call in calls.root]


def _require_known(calls: list[dict[str, Any]], tools: list[ProgrammaticTool]) -> None:
    known = {tool.name for tool in tools}
    unknown = next((call["name"] for call in calls if call["name"] not in known), None)
    if unknown is not None:
        raise _WrongCallsError(f"Sandbox requested an unregistered tool: {unknown[:256]}")


def _ended(ended: EndedRun) -> dict[str, Any]:
    output = build_output(ended)
    if succeeded(ended.response):
        return {"status": "completed", **output}
    shown = {name: output[name] for name in ("stdout", "stderr", "session_id")}
    return {"status": "error", "error": failure_message(ended.response), **shown}


def _checked(asked: ProgrammaticRequest) -> dict[str, Any]:
    """Return what is stored of a request that starts a program.

    Raises:
        RefusedError: a field is missing or wrong.
    """
    language = asked.language or asked.lang or _LANGUAGES[0]
    if language not in _LANGUAGES:
        raise RefusedError(f'Unsupported language "{language[:40]}"; supported values are "python" and "bash"')
    if not asked.code or not asked.code.strip():
        raise RefusedError("Missing required field: code")
    if not asked.tools:
        raise RefusedError("Missing required field: tools (must be a non-empty array)")
    if len(asked.tools) > TOOLS_MAX:
        raise RefusedError(f"Too many tools provided ({len(asked.tools)}). Maximum is {TOOLS_MAX}.")
    if asked.timeout is not None and asked.timeout > TIMEOUT_MS_MAX:
        raise RefusedError(f"timeout: {asked.timeout:g} ms is too long (limit {TIMEOUT_MS_MAX})")
    _refuse_many_parameters(asked.tools)
    _refuse_collisions(asked.tools, language)
    _refuse_reserved(asked.files or [])
    return {**asked.model_dump(exclude_none=True, exclude={"lang"}), "language": language}


def _refuse_many_parameters(tools: list[ProgrammaticTool]) -> None:
    for tool in tools:
        for field in ("properties", "required"):
            listed = (tool.parameters or {}).get(field)
            if isinstance(listed, (dict, list)) and len(listed) > PARAMETERS_MAX:
                raise RefusedError(
                    f"tools: {tool.name[:80]!r} has {len(listed)} names in {field} (limit {PARAMETERS_MAX}); "
                    "give the tool fewer parameters"
                )


def _refuse_collisions(tools: list[ProgrammaticTool], language: str) -> None:
    name_of = bash_name if language == "bash" else python_name
    seen: dict[str, str] = {}
    for tool in tools:
        function = name_of(tool.name)
        if not function:
            raise RefusedError(f"tools: the name {tool.name[:80]!r} has no character that a function can have")
        if seen.setdefault(function, tool.name) != tool.name:
            raise RefusedError(
                f"tools: {seen[function][:80]!r} and {tool.name[:80]!r} have the same function {function!r}; "
                "rename one of them"
            )


def _refuse_reserved(files: list[FileReference]) -> None:
    if any(file.name == CALLS_FILE for file in files):
        raise RefusedError(f"files: the name {CALLS_FILE} is reserved; give the file another one")
