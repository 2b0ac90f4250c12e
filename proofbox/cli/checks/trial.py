"""One program in one sandbox, on the settings of the service and a data folder of its own."""

import asyncio
import logging
import tempfile
import time
from pathlib import Path

from proofbox.cli.checks.engine_facts import reason_of
from proofbox.cli.checks.finding import Finding
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import SandboxInfo, ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.config.local_use import local_values
from proofbox.service.app.settings import Settings
from proofbox.service.errors import ServiceError

_TRIAL_S = 120
_PROGRAM = "print(6 * 7)"
_EXPECTED = "42\n"


def run_trial(settings: Settings) -> list[Finding]:
    """Run the program; what it shows."""
    with tempfile.TemporaryDirectory(prefix="proofbox-doctor-") as folder:
        warnings = _Warnings()
        logger = logging.getLogger("proofbox")
        logger.addHandler(warnings)
        try:
            return [*asyncio.run(_run(trial_settings(settings, Path(folder)))), *warnings.rows]
        except (ServiceError, TimeoutError, OSError) as exc:
            return [Finding("sandbox", "fail", _described(exc), "docs/engines.md describes what the engine needs")]
        finally:
            logger.removeHandler(warnings)


def trial_settings(settings: Settings, folder: Path) -> Settings:
    """The settings of the trial: those of the service without its stores and the other processes."""
    given = {name: getattr(settings, name) for name in settings.model_fields_set}
    return Settings(**{**given, **local_values(Settings), "data_dir": folder, "pool_size": 0})


async def _run(settings: Settings) -> list[Finding]:
    request = ToolCallRequest.model_validate(
        {
            "tool_id": exec_tool_id(Language.PYTHON),
            "tool_call_id": "doctor",
            "conversation_id": "doctor",
            "turn_id": "turn_1",
            "params": {"explore": True},
            "code": _PROGRAM,
        }
    )
    service = build(settings)
    async with asyncio.timeout(_TRIAL_S), running(service):
        began = time.perf_counter()
        ticket = await service.calls.submit(
            service.principal, request, idempotency_key=None, request_id="doctor", detached=True
        )
        answer = await ticket.answer()
        total_ms = (time.perf_counter() - began) * 1000
        has_total_limits = service.engine.together is not None
    if answer.is_problem:
        problem = Problem.model_validate_json(answer.body)
        return [Finding("sandbox", "fail", problem.detail, "docs/engines.md describes what the engine needs")]
    response = ToolCallResponse.model_validate_json(answer.body)
    printed = response.output.stdout if response.output else ""
    if not response.ok or printed != _EXPECTED or response.sandbox is None:
        return [Finding("sandbox", "fail", response.text, "docs/errors.md describes the codes")]
    limits = "set" if has_total_limits else "not set (docs/engines.md#all-sandboxes-together)"
    return [
        Finding("sandbox", "ok", f"'{_PROGRAM}' printed 42 in a new container, in {total_ms:.0f} ms"),
        Finding("isolation", "ok", _isolation(response.sandbox)),
        Finding("totals", "ok", f"limits of all sandboxes together: {limits}"),
    ]


def _isolation(sandbox: SandboxInfo) -> str:
    kernel = "a kernel of its own (gVisor)" if sandbox.tier == "gvisor" else "shared kernel"
    users = "user namespace" if sandbox.user_namespace else "no user namespace"
    return f"{sandbox.runtime}, {kernel}, {users} (docs/isolation.md)"


def _described(exc: BaseException) -> str:
    if isinstance(exc, TimeoutError):
        return f"no answer within {_TRIAL_S} s"
    own = exc.message if isinstance(exc, ServiceError) else str(exc)
    reason = reason_of(exc)
    return own if reason in own else f"{own}: {reason}"


class _Warnings(logging.Handler):
    """What the service warns of meanwhile."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.rows: list[Finding] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; a failed start of a container is logged with the engine's own words in its cause."""
        detail = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            detail = f"{detail}: {reason_of(record.exc_info[1])}"
        self.rows.append(Finding("warning", "warn", detail))
