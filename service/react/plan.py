"""``react.plan``: the plan of a turn as a snapshot, and an acknowledgement of how far its steps are."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from proofbox.contracts.codes import ToolCode
from proofbox.contracts.paths import plan_ack_path, plan_path
from proofbox.contracts.react_tools import PlanParams, StepStatus
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.timeline.block_text import STEP_SIGNS
from proofbox.service.timeline.block_writer import now_text
from proofbox.service.timeline.port import TimelineStore
from proofbox.service.timeline.view import TimelineView, timeline_for

_WORDS: dict[StepStatus, str] = {"in_progress": " — in progress", "failed": " — failed"}
_ID_CHARS = 8


class PlanTool:
    """Answers ``react.plan``.

    Args:
        store: the stored timelines.
    """

    def __init__(self, store: TimelineStore) -> None:
        self._store = store

    async def run(self, call: ReactCall[PlanParams]) -> ToolCallResponse:
        """Records a plan; the same steps in the same turn are the same plan.

        Raises:
            ToolRefusedError: the status names a step that does not exist; nothing is recorded.
            StoreFailedError: the store failed.
        """
        steps, status = call.params.steps, _status(call.params)
        memory = timeline_for(self._store, call.scope, call.request)
        plan_id = _plan_id(call.turn_id, steps)
        now = now_text()
        plan = {
            "plan_id": plan_id,
            "steps": steps,
            "status": status,
            "created_ts": await _find_created(memory, plan_path(call.turn_id, plan_id)) or now,
            "last_ts": now,
        }
        iteration = await _next_iteration(memory, call.turn_id)
        report = _format_steps(steps, status)
        payload = {
            "tool_id": call.request.tool_id,
            "tool_call_id": call.request.tool_call_id,
            "plan_id": plan_id,
            "iteration": iteration,
            "ts": now,
        }
        blocks = [
            *call.opening_blocks(),
            call.write.result_json(payload),
            call.write.plan(plan),
            call.write.plan_ack(report, iteration),
        ]
        text = f"Plan recorded:\n{report}"
        return call.build_response(blocks, report=report, text=text, ret={"plan": plan, "iteration": iteration})


def _status(params: PlanParams) -> dict[str, StepStatus]:
    """How far each step is, by its number; every step has one."""
    count = len(params.steps)
    unknown = [number for number in params.status if int(number) > count]
    if unknown:
        raise ToolRefusedError(
            ToolCode.UNKNOWN_STEP,
            f"status: there is no step {', '.join(unknown)}; the plan has the steps 1 to {count}",
            steps=unknown,
        )
    return {str(number): params.status.get(str(number), "pending") for number in range(1, count + 1)}


def _plan_id(turn_id: str, steps: Sequence[str]) -> str:
    identity = json.dumps([turn_id, *steps], ensure_ascii=True)
    return f"plan_{hashlib.sha256(identity.encode()).hexdigest()[:_ID_CHARS]}"


async def _find_created(memory: TimelineView, path: str) -> str | None:
    """When the plan of that path was first recorded; None if it was not, or if that cannot be read."""
    for placed in await memory.of_path(path, 1, binaries=False):
        try:
            created = json.loads(placed.block.text or "")["created_ts"]
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        return created if isinstance(created, str) else None
    return None


async def _next_iteration(memory: TimelineView, turn_id: str) -> int:
    """The number of the turn's next acknowledgement; they have no gaps, so few of them are asked for."""

    async def is_there(iteration: int) -> bool:
        return bool(await memory.of_path(plan_ack_path(turn_id, iteration), 1, binaries=False))

    taken, free = 0, 1
    while await is_there(free):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if await is_there(middle):
            taken = middle
        else:
            free = middle
    return free


def _format_steps(steps: Sequence[str], status: Mapping[str, StepStatus]) -> str:
    states = [status[str(number)] for number in range(1, len(steps) + 1)]
    return "\n".join(
        f"{STEP_SIGNS[state]} {number}. {' '.join(step.split())}{_WORDS.get(state, '')}"
        for number, (step, state) in enumerate(zip(steps, states, strict=True), start=1)
    )
