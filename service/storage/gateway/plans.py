"""Plans of agents in the database, and the runs that they make."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select, update
from typing_extensions import override

from proofbox.contracts.gateway.records import PLAN_RUNS_MAX, PLANS_MAX, Plan, PlanStatus
from proofbox.service.gateway.records.port import (
    PLANS_TOPIC,
    DuePlan,
    DuePlanStore,
    Firing,
    NewPlan,
    PlanStore,
    Removal,
)
from proofbox.service.gateway.runs_port import NewRun, RunLimits
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.database import Database, announce, count_changed
from proofbox.service.storage.gateway.agents import require_agent
from proofbox.service.storage.gateway.record_rows import RecordKind, RecordRow, delete_rows, lock_agent, write_rows
from proofbox.service.storage.gateway.record_views import build_plan, read_plans
from proofbox.service.storage.gateway.runs import create_run
from proofbox.service.storage.gateway.schema import agents, plans, projects

_PLANS = RecordKind(plans, plans.c.plan_id, "plan", "plans", PLANS_MAX, plans.c.instruction)
_DUE_AT_ONCE = 100


class SqlPlanStore(PlanStore, DuePlanStore):
    """The PlanStore and DuePlanStore in the database.

    Args:
        database: the open database.
        limits: the operator's limits of runs.
    """

    def __init__(self, database: Database, limits: RunLimits) -> None:
        self._database = database
        self._limits = limits

    @override
    async def set(self, principal: Principal, agent_id: str, items: Sequence[NewPlan]) -> Sequence[Plan]:
        rows = [
            RecordRow(
                plan.id,
                {
                    "name": plan.name,
                    "instruction": plan.instruction,
                    "run_at": plan.run_at,
                    "cron": plan.cron,
                    "time_zone": plan.time_zone,
                    "status": "cancelled" if plan.next_run is None else "pending",
                    "next_run": plan.next_run,
                    "missed": None,
                },
            )
            for plan in items
        ]

        def work(connection: Connection) -> list[Plan]:
            agent = lock_agent(connection, principal, agent_id)
            write_rows(connection, _PLANS, agent, rows)
            announce(connection, PLANS_TOPIC)
            return read_plans(connection, agent)

        return await self._database.write(work)

    @override
    async def delete(self, principal: Principal, agent_id: str, names: Sequence[str] | None) -> Removal:
        def work(connection: Connection) -> Removal:
            return delete_rows(connection, _PLANS, lock_agent(connection, principal, agent_id), names)

        return await self._database.write(work)

    @override
    async def newest(
        self, principal: Principal, agent_id: str, statuses: Sequence[PlanStatus], limit: int
    ) -> Sequence[Plan]:
        def work(connection: Connection) -> list[Plan]:
            agent = require_agent(connection, principal, agent_id).id
            wanted = select(plans).where(plans.c.agent == agent, plans.c.status.in_(statuses))
            found = connection.execute(wanted.order_by(plans.c.updated.desc(), plans.c.id.desc()).limit(limit))
            return [build_plan(row) for row in found]

        return await self._database.read(work)

    @override
    async def due(self, now: str, after: DuePlan | None) -> Sequence[DuePlan]:
        query = (
            select(
                plans.c.id,
                plans.c.plan_id,
                plans.c.cron,
                plans.c.time_zone,
                plans.c.next_run,
                agents.c.agent_id,
            )
            .join_from(plans, agents, plans.c.agent == agents.c.id)
            .where(plans.c.next_run.is_not(None), plans.c.next_run <= now)
            .order_by(plans.c.next_run, plans.c.id)
            .limit(_DUE_AT_ONCE)
        )
        if after is not None:
            same_time = and_(plans.c.next_run == after.next_run, plans.c.id > after.row)
            query = query.where(or_(plans.c.next_run > after.next_run, same_time))

        def work(connection: Connection) -> list[DuePlan]:
            return [
                DuePlan(row.id, row.plan_id, row.agent_id, row.cron, row.time_zone, row.next_run)
                for row in connection.execute(query)
            ]

        return await self._database.read(work)

    @override
    async def next_time(self, now: str) -> str | None:
        query = select(func.min(plans.c.next_run)).where(plans.c.next_run.is_not(None), plans.c.next_run > now)
        return await self._database.read(lambda connection: connection.execute(query).scalar())

    @override
    async def fire(self, plan: DuePlan, firing: Firing) -> bool:
        return await self._database.write(lambda connection: _fire(connection, plan, firing, self._limits))


def _fire(connection: Connection, plan: DuePlan, firing: Firing, limits: RunLimits) -> bool:
    # Whoever writes plans has locked their agent before.
    owner = connection.execute(
        select(agents.c.id, projects.c.tenant, projects.c.project)
        .join_from(plans, agents, plans.c.agent == agents.c.id)
        .join(projects, agents.c.project == projects.c.id)
        .where(plans.c.id == plan.row)
        .with_for_update(key_share=True, of=agents)
    ).first()
    found = connection.execute(select(plans).where(plans.c.id == plan.row)).first()
    if owner is None or found is None:
        return False
    # A plan that was set meanwhile, also for the same time, follows its new schedule.
    same_cron = plans.c.cron.is_not_distinct_from(plan.cron)
    same_zone = plans.c.time_zone.is_not_distinct_from(plan.time_zone)
    moved = update(plans).where(plans.c.id == plan.row, plans.c.next_run == plan.next_run, same_cron, same_zone)
    if count_changed(connection, moved.values(_moved_on(found, firing))) == 0:
        return False
    if firing.run_id is not None:
        trigger = {
            "type": "plan",
            "name": found.name,
            "payload": {"instruction": found.instruction},
            "plan_id": found.plan_id,
            "late_s": firing.late_s,
        }
        new = NewRun(firing.run_id, plan.agent_id, f"run:{firing.run_id}", trigger, queued=True)
        create_run(connection, Principal(owner.tenant, owner.project, "", ""), new, limits)
    return True


def _moved_on(row: Row[Any], firing: Firing) -> dict[str, Any]:
    """The columns of a plan after it has fired or was missed."""
    if firing.following is not None:
        status = "pending"
    else:
        status = "completed" if firing.run_id is not None or row.cron is not None else "missed"
    values: dict[str, Any] = {"status": status, "next_run": firing.following}
    if firing.run_id is None:
        return {**values, "missed": firing.at}
    run_ids = [firing.run_id, *json.loads(row.run_ids)][:PLAN_RUNS_MAX]
    return {**values, "last_run": utc_now(), "run_ids": json.dumps(run_ids)}
