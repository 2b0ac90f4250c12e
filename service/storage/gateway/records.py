"""Goals and memories of agents in the database, and all that an agent has noted."""

from collections.abc import Sequence

from sqlalchemy import Connection
from typing_extensions import override

from proofbox.contracts.gateway.records import GOALS_MAX, MEMORIES_MAX, AgentState, Goal, Memory
from proofbox.service.gateway.records.port import (
    AgentStates,
    GoalStore,
    MemoryStore,
    NewGoal,
    NewMemory,
    Removal,
)
from proofbox.service.identity import Principal
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.agents import require_agent
from proofbox.service.storage.gateway.record_rows import RecordKind, RecordRow, delete_rows, lock_agent, write_rows
from proofbox.service.storage.gateway.record_views import read_goals, read_memories, read_plans
from proofbox.service.storage.gateway.schema import goals, memories

_GOALS = RecordKind(goals, goals.c.goal_id, "goal", "goals", GOALS_MAX, goals.c.description)
_MEMORIES = RecordKind(memories, memories.c.key, "memory", "memories", MEMORIES_MAX)


class SqlGoalStore(GoalStore):
    """The GoalStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def set(self, principal: Principal, agent_id: str, items: Sequence[NewGoal]) -> Sequence[Goal]:
        rows = [
            RecordRow(
                goal.id,
                {
                    "description": goal.description,
                    "priority": goal.priority,
                    "is_long_term": int(goal.is_long_term),
                    "status": goal.status,
                },
            )
            for goal in items
        ]

        def work(connection: Connection) -> list[Goal]:
            agent = lock_agent(connection, principal, agent_id)
            write_rows(connection, _GOALS, agent, rows)
            return read_goals(connection, agent)

        return await self._database.write(work)

    @override
    async def delete(self, principal: Principal, agent_id: str, names: Sequence[str] | None) -> Removal:
        def work(connection: Connection) -> Removal:
            return delete_rows(connection, _GOALS, lock_agent(connection, principal, agent_id), names)

        return await self._database.write(work)


class SqlMemoryStore(MemoryStore):
    """The MemoryStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def set(self, principal: Principal, agent_id: str, items: Sequence[NewMemory]) -> Sequence[Memory]:
        rows = [
            RecordRow(memory.key, {"value": memory.value, "topic": memory.topic}, may_be_new=True)
            for memory in items
        ]

        def work(connection: Connection) -> list[Memory]:
            agent = lock_agent(connection, principal, agent_id)
            write_rows(connection, _MEMORIES, agent, rows)
            return read_memories(connection, agent)

        return await self._database.write(work)

    @override
    async def delete(self, principal: Principal, agent_id: str, names: Sequence[str] | None) -> Removal:
        def work(connection: Connection) -> Removal:
            return delete_rows(connection, _MEMORIES, lock_agent(connection, principal, agent_id), names)

        return await self._database.write(work)


class SqlAgentStates(AgentStates):
    """The AgentStates in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def state(self, principal: Principal, agent_id: str) -> AgentState:
        def work(connection: Connection) -> AgentState:
            agent = require_agent(connection, principal, agent_id).id
            return AgentState(
                goals=read_goals(connection, agent),
                memories=read_memories(connection, agent),
                plans=read_plans(connection, agent),
            )

        return await self._database.read(work)
