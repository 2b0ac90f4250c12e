"""The variant ``compute``: a sandbox evaluates the expression; the service only passes values in and out."""

import asyncio
import json
from functools import cache
from pathlib import Path
from typing import Any

from proofbox.contracts.codes import NoticeCode, RuntimeCode
from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.executions import ComputeExecution
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, RunOutcome, change_response
from proofbox.service.gateway.compute.expression import (
    EXPRESSION_CHARACTERS_MAX,
    OWN_EXPRESSION,
    is_own_expression,
    parse_expression,
)
from proofbox.service.gateway.compute.program import RESULT_BYTES_MAX
from proofbox.service.gateway.filling import MISSING, RefusedInputError, TemplateFiller
from proofbox.service.gateway.response_body import parse_json
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution
from proofbox.service.jobs.failures import RuntimeFailure
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.produced_files import usage
from proofbox.service.jobs.runner import JobContext, JobResult, JobRunner, PhaseTimer, Program
from proofbox.service.sandbox.limits import CallBounds, CallPolicy
from proofbox.service.sandbox.port import Job, OutputSpec, StreamName
from proofbox.service.visible_text import visible_line

REQUEST_BYTES_MAX = 1024 * 1024
"""How large input, expression and values may be together, as JSON."""
_PRINTED_BYTES_MAX = 8 * RESULT_BYTES_MAX  # JSON in ASCII, and what the expression prints
_ERROR_CHARACTERS_MAX = 500
_PROGRAM = Path(__file__).with_name("program.py")


class ComputeTool(ToolExecution):
    """Runs the calls of the variant ``compute``, each in a sandbox of its own without a network.

    Args:
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        files: stores a result that is too large for a block.
    """

    def __init__(self, jobs: JobRunner, policy: CallPolicy, files: ResultFiles) -> None:
        self._jobs = jobs
        self._policy = policy
        self._files = files

    def admit(self, call: GatewayCall) -> None:
        """See `ToolExecution.admit`."""
        self._jobs.admission.refuse_if_full(call.principal.caller)

    async def check(self, call: GatewayCall) -> None:
        """See `ToolExecution.check`."""
        self._bounds(call)

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        try:
            # In a thread: values of several MiB may be put in.
            stdin = await asyncio.to_thread(_request_of, call)
        except RefusedInputError as exc:
            return call.refuse_input(exc.listed)
        bounds, timer = self._bounds(call), PhaseTimer(call.began)
        printed = bytearray()

        def on_output(stream: StreamName, piece: bytes, _truncated: bool) -> None:
            if stream == "stdout" and len(printed) < _PRINTED_BYTES_MAX:
                printed.extend(piece[: _PRINTED_BYTES_MAX - len(printed)])

        turn, limits = call.turn_id, bounds.limits
        program = Job(Language.PYTHON, _program(), "compute", turn, limits, stdin=stdin)
        wanted = OutputSpec(turn, (), 0, limits)
        async with self._jobs.slot(JobContext(call.scope, call.request, bounds, observer, timer)) as job:
            result = await job.run(Program(program, wanted, on_output), JobInputs())
        response = await self._respond(call, result, bytes(printed))
        timer.stop()
        measured = {"usage": usage(result.outcome), "sandbox": result.sandbox, "timings_ms": timer.timings}
        return change_response(response, lambda response: response.model_copy(update=measured))

    def _bounds(self, call: GatewayCall) -> CallBounds:
        """What a call may use; raises LimitNotAllowedError for more than the operator allows."""
        wall_s = call.execution_as(ComputeExecution).timeout / 1000
        return self._policy.bounds(call.request.limits, timeout_s=wall_s)

    async def _respond(self, call: GatewayCall, result: JobResult, printed: bytes) -> CallResponse:
        if result.failure is not None and result.failure.code is RuntimeCode.SANDBOX_FAILED:
            return call.fail(
                result.failure.code, result.failure.message, notice=NoticeCode.TOOL_RESULT_ERROR, where="run"
            )
        if result.failure is not None:
            return _fail(call, _reason(result.failure, call))
        try:
            value = _read_answer(printed)
        except _FailedError as exc:
            return _fail(call, str(exc))
        return await self._files.succeed(call, {"result": value})


def _fail(call: GatewayCall, reason: str) -> ToolCallResponse:
    message = visible_line(reason)[:_ERROR_CHARACTERS_MAX]
    return call.fail(GatewayCode.COMPUTE_FAILED, message, notice=NoticeCode.TOOL_RESULT_ERROR, where="run")


class _FailedError(Exception):
    """An expression has no result; the message is for the model."""


def _request_of(call: GatewayCall) -> bytes:
    """What the program reads.

    Raises:
        RefusedInputError: there is no expression in the input, or the input is too large.
    """
    template = call.execution_as(ComputeExecution).expression
    values: dict[str, Any] = {}
    if is_own_expression(template):
        source = _own_expression(call.input)
    else:
        expression = parse_expression(template)
        source = expression.source
        filler = TemplateFiller(call.input, call.tool_call_id)
        for name, part in expression.values.items():
            value = filler.fill_part(part)
            values[name] = None if value is MISSING else value
    request = json.dumps({"expression": source, "input": call.input, "values": values}).encode()
    if len(request) > REQUEST_BYTES_MAX:
        raise RefusedInputError(
            "input",
            f"input and expression are too large (limit {REQUEST_BYTES_MAX:,} bytes as JSON, got "
            f"{len(request):,}); give a shorter input",
        )
    return request


def _own_expression(params: dict[str, Any]) -> str:
    field, given = f"input.{OWN_EXPRESSION}", params.get(OWN_EXPRESSION)
    if not isinstance(given, str) or not given.strip():
        raise RefusedInputError(field, "it has to be a text; give a Python expression such as 2 * 21")
    if len(given) > EXPRESSION_CHARACTERS_MAX:
        raise RefusedInputError(
            field,
            f"it is too long (limit {EXPRESSION_CHARACTERS_MAX:,} characters, got {len(given):,}); "
            "give its data in other fields of the input",
        )
    return given.strip()


def _read_answer(printed: bytes) -> Any:
    """The result that the program printed. The expression may control the program, so everything is checked.

    Raises:
        _FailedError: there is no result, or it cannot be passed on.
    """
    lines = printed.splitlines()
    try:
        answer = parse_json(lines[-1].decode()) if lines else None
    except ValueError as exc:
        raise _FailedError("the expression gave no result that JSON can carry") from exc
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        raise _FailedError(answer["error"])
    if not isinstance(answer, dict) or "result" not in answer:
        raise _FailedError("the expression gave no result")
    size = len(json.dumps(answer["result"], ensure_ascii=False, separators=(",", ":")).encode())
    if size > RESULT_BYTES_MAX:
        raise _FailedError(f"the result is too large (limit {RESULT_BYTES_MAX} bytes as JSON, got {size})")
    return answer["result"]


def _reason(failure: RuntimeFailure, call: GatewayCall) -> str:
    if failure.code is RuntimeCode.TIMEOUT:
        limit_ms = call.execution_as(ComputeExecution).timeout
        return f"{failure.message}: the expression was ended (its timeout is {limit_ms} ms); let it compute less"
    return failure.message


@cache
def _program() -> bytes:
    return _PROGRAM.read_bytes()
