"""Builds what goals, memories, plans and the agent's own runs need."""

from collections.abc import Sequence
from dataclasses import dataclass

from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.goals import build_goal_tools
from proofbox.service.gateway.built_ins.memories import build_memory_tools
from proofbox.service.gateway.built_ins.own_runs import build_run_tools
from proofbox.service.gateway.built_ins.plans import build_plan_tools
from proofbox.service.gateway.records.port import AgentStates, DuePlanStore
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.runs_port import RunLimits
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.agent_runs import SqlAgentRuns
from proofbox.service.storage.gateway.plans import SqlPlanStore
from proofbox.service.storage.gateway.records import SqlAgentStates, SqlGoalStore, SqlMemoryStore


@dataclass(frozen=True, slots=True)
class RecordParts:
    """The parts of what agents note; built before `Calls`.

    Attributes:
        built_ins: their tools, and those of the agent's own runs.
        states: all that an agent has noted.
        plans: the plans that are due.
    """

    built_ins: Sequence[BuiltIn]
    states: AgentStates
    plans: DuePlanStore


def build_record_parts(settings: GatewaySettings, database: Database, files: ResultFiles) -> RecordParts:
    """Build what the calls of these tools and the timer of plans need."""
    plans = SqlPlanStore(database, run_limits(settings))
    built_ins = [
        *build_goal_tools(SqlGoalStore(database), files),
        *build_memory_tools(SqlMemoryStore(database), files),
        *build_plan_tools(plans, files),
        *build_run_tools(SqlAgentRuns(database), files),
    ]
    return RecordParts(built_ins, SqlAgentStates(database), plans)


def run_limits(settings: GatewaySettings) -> RunLimits:
    """The operator's limits of runs."""
    return RunLimits(settings.run_lease_s, settings.run_s, settings.agent_runs_max)
