"""What a loop needs to know of a run, read at once."""

import json
from typing import Any

from sqlalchemy import Connection, Row, select, update

from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.contracts.function_names import function_name
from proofbox.contracts.gateway.names import (
    BUILT_IN_PREFIX,
    CONFIGURED_PREFIX,
    MCP_PREFIX,
    agent_entity_id,
)
from proofbox.contracts.gateway.runs import (
    ContextAgent,
    ContextSpace,
    Run,
    RunCall,
    RunContext,
    RunTrigger,
    SeenMessage,
)
from proofbox.service.gateway.runs_port import StoredRun, run_json
from proofbox.service.identity import Principal
from proofbox.service.storage.gateway.message_rows import read_newest
from proofbox.service.storage.gateway.record_views import read_goals, read_memories, read_plans
from proofbox.service.storage.gateway.run_rows import HeldRun, build_run, find_own_run, select_runs
from proofbox.service.storage.gateway.schema import agent_versions, agents, entities, members, runs, spaces
from proofbox.service.storage.gateway.spaces import space_members
from proofbox.service.storage.schema import calls

HISTORY_MAX = 50
"""Messages of the active space."""
_SPACES_MAX, _RUNS_MAX, _CALLS_MAX = 100, 100, 500
STATUS_OF = {"open": "running"}
"""States of calls that have another name on the wire."""


def read_context(connection: Connection, principal: Principal, run_id: str) -> RunContext:
    """Reads the context of a run.

    Raises:
        UnknownRunError: there is no such run.
    """
    held = find_own_run(connection, principal, run_id)
    run = held.run
    agent = connection.execute(select(runs.c.agent).where(runs.c.id == held.row)).scalar_one()
    joined = _spaces(connection, held.row)
    found = space_members(connection, [space.id for space in joined])
    shown = {
        space.space_id: ContextSpace(space_id=space.space_id, name=space.name, members=found.get(space.id, []))
        for space in joined
    }
    active = next((space for space in joined if space.space_id == run.active_space_id), None)
    return RunContext(
        agent=_agent(connection, held),
        trigger=RunTrigger.model_validate(run.trigger),
        active_space=None if active is None else shown[active.space_id],
        spaces=list(shown.values()),
        history=[] if active is None else _history(connection, active),
        goals=read_goals(connection, agent),
        memories=read_memories(connection, agent),
        plans=read_plans(connection, agent, "pending"),
        runs=[Run.model_validate(run_json(other)) for other in _open_runs(connection, held.row)],
        calls=_calls(connection, held.row),
    )


def mark_seen(connection: Connection, run_row: int) -> None:
    """The agent of a run that is completed has seen the messages of its active space."""
    found = connection.execute(
        select(members.c.entity, members.c.space, spaces.c.next_seq)
        .join_from(runs, entities, entities.c.agent == runs.c.agent)
        .join(members, (members.c.entity == entities.c.id) & (members.c.space == runs.c.space))
        .join(spaces, spaces.c.id == members.c.space)
        .where(runs.c.id == run_row)
    ).first()
    if found is not None:
        own = (members.c.entity == found.entity) & (members.c.space == found.space)
        connection.execute(update(members).where(own).values(seen_seq=found.next_seq - 1))


def _agent(connection: Connection, held: HeldRun) -> ContextAgent:
    run = held.run
    document = connection.execute(
        select(agent_versions.c.config)
        .join_from(runs, agent_versions, agent_versions.c.agent == runs.c.agent)
        .where(runs.c.id == held.row, agent_versions.c.version == runs.c.version)
    ).scalar_one()
    return ContextAgent(
        agent_id=run.agent_id,
        entity_id=agent_entity_id(run.agent_id),
        handle=run.agent_handle,
        version=run.agent_version,
        configuration=json.loads(document),
    )


def _spaces(connection: Connection, run_row: int) -> list[Row[Any]]:
    query = (
        select(spaces.c.id, spaces.c.space_id, spaces.c.name, members.c.seen_seq)
        .join_from(runs, entities, entities.c.agent == runs.c.agent)
        .join(members, members.c.entity == entities.c.id)
        .join(spaces, spaces.c.id == members.c.space)
        .where(runs.c.id == run_row, spaces.c.archived.is_(None))
        .order_by(spaces.c.id.desc())
        .limit(_SPACES_MAX)
    )
    return list(connection.execute(query))


def _history(connection: Connection, space: Row[Any]) -> list[SeenMessage]:
    rows = read_newest(connection, space.id, None, HISTORY_MAX)
    return [
        SeenMessage.model_validate({**json.loads(row.body), "seen": row.seq <= space.seen_seq})
        for row in reversed(rows)
    ]


def _open_runs(connection: Connection, run_row: int) -> list[StoredRun]:
    agent = select(runs.c.agent).where(runs.c.id == run_row).scalar_subquery()
    query = select_runs().where(agents.c.id == agent, runs.c.ended.is_(None)).order_by(runs.c.id).limit(_RUNS_MAX)
    return [build_run(connection, row) for row in connection.execute(query).all()]


def _calls(connection: Connection, run_row: int) -> list[RunCall]:
    query = select(calls.c.tool_call_id, calls.c.state, calls.c.request, calls.c.answer, calls.c.created)
    rows = connection.execute(query.where(calls.c.run == run_row).order_by(calls.c.id.desc()).limit(_CALLS_MAX))
    return [_call(row) for row in reversed(rows.all())]


def _call(row: Row[Any]) -> RunCall:
    tool_id = json.loads(row.request)["tool_id"]
    answer = {} if row.answer is None else json.loads(row.answer)
    ok, result, error = None, None, None
    if row.state == "done":
        ok, result, error = answer["ok"], answer.get("ret"), answer.get("error")
        if len(json.dumps(result, ensure_ascii=False).encode(errors="replace")) > TEXT_BYTES_MAX:
            result = None
    elif answer:
        error = {"code": answer["code"], "message": answer["detail"]}
    if error is not None:
        error = {"code": error["code"], "message": error["message"]}
    return RunCall(
        tool_call_id=row.tool_call_id,
        tool_id=tool_id,
        name=tool_name(tool_id),
        status=STATUS_OF.get(row.state, row.state),
        ok=ok,
        result=result,
        error=error,
        created=row.created,
    )


def tool_name(tool_id: str) -> str:
    """Return the name of a tool for the model."""
    for prefix in (CONFIGURED_PREFIX, BUILT_IN_PREFIX):
        if tool_id.startswith(prefix):
            return tool_id.removeprefix(prefix)
    return function_name(tool_id.removeprefix(MCP_PREFIX))
