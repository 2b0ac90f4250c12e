"""``get_my_runs`` and ``stop_run``: the runs of the agent."""

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.runs import SUMMARY_CHARACTERS_MAX
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.service.gateway.agent_runs import AgentRun, AgentRuns, StopRun
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.noted_items import IDS, NotedItemsTool, Outcome
from proofbox.service.gateway.records.port import ItemsRefusedError
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.runs_port import RunStatus
from proofbox.service.gateway.tool_call import GatewayCall

RUNS_MAX = 50
_RUNS = 10
_READ_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "enum": [status.value for status in RunStatus],
            "description": "Runs of this status only.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": RUNS_MAX,
            "default": _RUNS,
            "description": "How many, the newest first.",
        },
    },
    "additionalProperties": False,
}
_STOP_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "run_id": {**IDS, "description": "The run."},
        "reason": {"type": "string", "maxLength": SUMMARY_CHARACTERS_MAX, "description": "Why it is stopped."},
    },
    "required": ["run_id"],
    "additionalProperties": False,
}


def build_run_tools(runs: AgentRuns, files: ResultFiles) -> list[BuiltIn]:
    """Build ``get_my_runs`` and ``stop_run``.

    Args:
        runs: the runs of agents.
        files: stores results that are too large for a block.
    """

    async def get_my_runs(call: GatewayCall) -> Outcome:
        status = call.input.get("status")
        listed, active = await runs.newest(
            call.principal,
            call.run.agent_id,
            None if status is None else RunStatus(status),
            int(call.input.get("limit", _RUNS)),
        )
        shown = [_shown(run, call.run.run_id) for run in listed]
        return Outcome({"runs": shown, "active": active}, f"{len(shown)} runs; {active} have not ended")

    async def stop_run(call: GatewayCall) -> Outcome:
        run_id, reason = call.input["run_id"], call.input.get("reason")
        was: RunStatus | None = call.run.status
        if run_id == call.run.run_id:
            # With the answer: an ended run has its calls cancelled, this one too if it had none.
            call.on_answer.append(StopRun(run_id, reason))
        else:
            was = await runs.stop(call.principal, call.run.agent_id, run_id, reason)
        if was is None:
            raise ItemsRefusedError(
                GatewayCode.UNKNOWN_ITEM,
                f"run_id: you have no run '{run_id[:100]}'; get_my_runs lists yours",
            )
        if was.is_ended:
            raise ItemsRefusedError(
                GatewayCode.RUN_ENDED, f"run_id: the run '{run_id}' has ended ({was}); nothing is left to stop"
            )
        ret = {"run_id": run_id, "was": was.value, "status": RunStatus.CANCELLED.value}
        return Outcome(ret, f"the run {run_id} is cancelled")

    return [
        BuiltIn(
            "get_my_runs",
            "List your runs, the newest first, with their newest tool calls, and count those that have not ended.",
            _READ_SCHEMA,
            NotedItemsTool(get_my_runs, files),
        ),
        BuiltIn(
            "stop_run",
            "Cancel one of your runs with its calls and waits; the current run too.",
            _STOP_SCHEMA,
            NotedItemsTool(stop_run, files),
        ),
    ]


def _shown(listed: AgentRun, current: str) -> JsonObject:
    run = listed.run
    return {
        "run_id": run.run_id,
        "is_current": run.run_id == current,
        "status": run.status.value,
        # Without what its maker passed to the loop, which may be large.
        "trigger": {name: value for name, value in run.trigger.items() if name != "payload"},
        "active_space_id": run.active_space_id,
        "started": run.started,
        "ended": run.ended,
        "waiting_for": [dict(wait) for wait in run.waiting_for],
        "tools": [{"name": tool.name, "state": tool.state} for tool in listed.tools],
    }
