"""Goals, memories and plans as they are read from the database."""

import json
from typing import Any

from sqlalchemy import Connection, Row, select

from proofbox.contracts.gateway.records import Goal, Memory, Plan, PlanStatus
from proofbox.service.storage.gateway.schema import goals, memories, plans


def read_goals(connection: Connection, agent: int) -> list[Goal]:
    """Return the goals of an agent, the most important first."""
    query = select(goals).where(goals.c.agent == agent).order_by(goals.c.priority.desc(), goals.c.id)
    return [
        Goal(
            id=row.goal_id,
            description=row.description,
            priority=row.priority,
            is_long_term=bool(row.is_long_term),
            status=row.status,
            created=row.created,
            updated=row.updated,
        )
        for row in connection.execute(query)
    ]


def read_memories(connection: Connection, agent: int) -> list[Memory]:
    """Return the memories of an agent, the oldest first."""
    query = select(memories).where(memories.c.agent == agent).order_by(memories.c.id)
    return [
        Memory(key=row.key, value=row.value, topic=row.topic, created=row.created, updated=row.updated)
        for row in connection.execute(query)
    ]


def read_plans(connection: Connection, agent: int, status: PlanStatus | None = None) -> list[Plan]:
    """Return the plans of an agent, or those of one status, the oldest first."""
    query = select(plans).where(plans.c.agent == agent).order_by(plans.c.id)
    if status is not None:
        query = query.where(plans.c.status == status)
    return [build_plan(row) for row in connection.execute(query)]


def build_plan(row: Row[Any]) -> Plan:
    """The record of a row of the table of plans."""
    return Plan(
        id=row.plan_id,
        name=row.name,
        instruction=row.instruction,
        run_at=row.run_at,
        cron=row.cron,
        time_zone=row.time_zone,
        status=row.status,
        next_run=row.next_run,
        last_run=row.last_run,
        missed=row.missed,
        run_ids=json.loads(row.run_ids),
        created=row.created,
        updated=row.updated,
    )
