"""The runs of an agent in the database, as its tools see and stop them."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, func, select
from typing_extensions import override

from proofbox.service.gateway.agent_runs import RUN_TOOLS_MAX, AgentRun, AgentRuns, CalledTool, StopRun
from proofbox.service.gateway.runs_port import STOPPED_TOPIC, RunEnd, RunStatus
from proofbox.service.gateway_errors import UnknownRunError
from proofbox.service.identity import Principal
from proofbox.service.storage.call_row import CallRow
from proofbox.service.storage.database import Database, announce
from proofbox.service.storage.gateway.run_context import STATUS_OF, tool_name
from proofbox.service.storage.gateway.run_rows import (
    HeldRun,
    build_run,
    end_run,
    find_run,
    of_project,
    run_of_row,
    select_runs,
)
from proofbox.service.storage.gateway.schema import agents, projects, runs
from proofbox.service.storage.schema import calls


class SqlAgentRuns(AgentRuns):
    """The AgentRuns in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def newest(
        self, principal: Principal, agent_id: str, status: RunStatus | None, limit: int
    ) -> tuple[Sequence[AgentRun], int]:
        own = (of_project(principal), agents.c.agent_id == agent_id)
        query = select_runs().where(*own).order_by(runs.c.id.desc()).limit(limit)
        if status is not None:
            query = query.where(runs.c.status == status.value)
        active = (
            select(func.count())
            .select_from(runs)
            .join(agents, runs.c.agent == agents.c.id)
            .join(projects, runs.c.project == projects.c.id)
            .where(*own, runs.c.ended.is_(None))
        )

        def work(connection: Connection) -> tuple[list[AgentRun], int]:
            found = connection.execute(query).all()
            listed = [AgentRun(build_run(connection, row), _tools(connection, row.id)) for row in found]
            return listed, connection.execute(active).scalar_one()

        return await self._database.read(work)

    @override
    async def stop(self, principal: Principal, agent_id: str, run_id: str, reason: str | None) -> RunStatus | None:
        def work(connection: Connection) -> RunStatus | None:
            try:
                held = find_run(connection, principal, run_id, lock=True)
            except UnknownRunError:
                return None
            if held.run.agent_id != agent_id:
                return None
            _stop(connection, held, reason)
            return held.run.status

        return await self._database.write(work)


def stop_run(connection: Connection, call: CallRow, effect: StopRun) -> None:
    """Ends the run of a call whose answer is stored, unless it has ended."""
    row = connection.execute(select(calls.c.run).where(calls.c.id == call.number)).scalar()
    if row is not None:
        _stop(connection, run_of_row(connection, row, lock=True), effect.reason)


def _stop(connection: Connection, held: HeldRun, reason: str | None) -> None:
    if not held.run.status.is_ended:
        end_run(connection, held, RunEnd(RunStatus.CANCELLED, reason))
        announce(connection, STOPPED_TOPIC)


def _tools(connection: Connection, run_row: int) -> list[CalledTool]:
    newest = select(calls.c.request, calls.c.state).where(calls.c.run == run_row).order_by(calls.c.id.desc())
    found = connection.execute(newest.limit(RUN_TOOLS_MAX)).all()
    return [
        CalledTool(tool_name(json.loads(row.request)["tool_id"]), STATUS_OF.get(row.state, row.state))
        for row in reversed(found)
    ]
