"""Runs in the database: made, claimed, renewed, released and ended."""

import json
from collections.abc import Collection, Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection, func, insert, literal_column, not_, or_, select, update
from typing_extensions import override

from proofbox.contracts.gateway.runs import RunContext
from proofbox.service.errors import QueueFullError
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool, PinnedTools
from proofbox.service.gateway.runs_port import (
    QUEUE_TOPIC,
    RUN_QUEUED_MAX,
    AgentMovedError,
    ClaimPins,
    NewRun,
    OpenCall,
    QueuedKind,
    RunEnd,
    RunFilter,
    RunLimits,
    RunStatus,
    RunStore,
    StoredRun,
    StoredRunEvent,
    run_json,
)
from proofbox.service.gateway.spaces.port import RequestKey
from proofbox.service.gateway_errors import (
    RunWaitingError,
    UnknownAgentError,
    UnknownSpaceError,
)
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import time_text, utc_now
from proofbox.service.storage.database import Database, announce
from proofbox.service.storage.gateway.call_records import announce_run
from proofbox.service.storage.gateway.project_rows import (
    StoredCreation,
    ensure_principal,
    find_creation,
    store_creation,
)
from proofbox.service.storage.gateway.run_claims import of_versions, select_claimable
from proofbox.service.storage.gateway.run_context import mark_seen, read_context
from proofbox.service.storage.gateway.run_rows import (
    HeldRun,
    add_run_event,
    build_run,
    end_run,
    find_own_run,
    find_run,
    give_back,
    hold_run,
    in_seconds,
    move_run,
    of_project,
    open_waits,
    renew_lease,
    require_lease,
    run_of_row,
    select_runs,
)
from proofbox.service.storage.gateway.run_sweep import sweep_runs
from proofbox.service.storage.gateway.schema import agents, projects, run_events, runs, spaces, waits
from proofbox.service.storage.gateway.space_access import open_space
from proofbox.service.storage.schema import calls, conversations, principals

_CREATED = 201

_LEFT = (
    select(
        calls.c.tool_call_id,
        conversations.c.name,
        principals.c.tenant,
        principals.c.project,
        principals.c.user_type,
        principals.c.user,
    )
    .join_from(calls, runs, calls.c.run == runs.c.id)
    .join(conversations, calls.c.conversation == conversations.c.id)
    .join(principals, conversations.c.principal == principals.c.id)
)
_LEFT_WAITING = _LEFT.join(waits, waits.c.call == calls.c.id).where(
    waits.c.state == "pending", calls.c.state == "waiting", runs.c.ended.is_not(None)
)
# The state as a literal: only so the index of open calls is used.
_LEFT_OPEN = _LEFT.where(
    calls.c.state == literal_column("'open'"), runs.c.status.in_((RunStatus.CANCELLED, RunStatus.FAILED))
)


class SqlRunStore(RunStore):
    """The RunStore in the database.

    Args:
        database: the open database.
        limits: the operator's limits.
    """

    def __init__(self, database: Database, limits: RunLimits) -> None:
        self._database = database
        self._limits = limits

    @override
    async def create(
        self, principal: Principal, new: NewRun, key: RequestKey | None = None
    ) -> tuple[StoredRun, bool]:
        def work(connection: Connection) -> tuple[StoredRun, bool]:
            if (found := find_creation(connection, principal, key)) is not None:
                return find_run(connection, principal, found.answer).run, True
            run = create_run(connection, principal, new, self._limits)
            store_creation(connection, principal, key, StoredCreation(_CREATED, run.run_id))
            return run, False

        return await self._database.write(work)

    @override
    async def find(self, principal: Principal, run_id: str) -> StoredRun:
        return await self._database.read(lambda connection: find_run(connection, principal, run_id).run)

    @override
    async def list(self, principal: Principal, wanted: RunFilter) -> list[StoredRun]:
        def work(connection: Connection) -> list[StoredRun]:
            query = select_runs().where(of_project(principal))
            if wanted.agent_id is not None:
                query = query.where(agents.c.agent_id == wanted.agent_id)
            if wanted.status is not None:
                query = query.where(runs.c.status == wanted.status.value)
            if wanted.before is not None:
                query = query.where(runs.c.id < find_run(connection, principal, wanted.before).row)
            found = connection.execute(query.order_by(runs.c.id.desc()).limit(wanted.limit)).all()
            return [build_run(connection, row) for row in found]

        return await self._database.read(work)

    @override
    async def find_created(self, principal: Principal, key: RequestKey) -> StoredRun | None:
        def work(connection: Connection) -> StoredRun | None:
            found = find_creation(connection, principal, key)
            return None if found is None else find_run(connection, principal, found.answer).run

        return await self._database.write(work)  # it makes the principal, and waits for other requests

    @override
    async def tools_of(self, run_id: str) -> Sequence[PinnedTool] | None:
        query = select(runs.c.tools).where(runs.c.run_id == run_id)

        def work(connection: Connection) -> Sequence[PinnedTool] | None:
            # Up to 4 MiB, so they are parsed in the thread of the database.
            text = connection.scalar(query)
            return None if text is None else [PinnedTool.from_json(value) for value in json.loads(text)]

        return await self._database.read(work)

    @override
    async def queued(
        self, principal: Principal, agent_ids: Sequence[str] | None, without: Collection[tuple[str, int]] = ()
    ) -> Sequence[QueuedKind]:
        query = select_claimable(principal, agent_ids, self._limits)
        if without:
            query = query.where(or_(runs.c.tools.is_not(None), not_(of_versions(without))))

        def work(connection: Connection) -> list[QueuedKind]:
            found = connection.execute(query).all()
            return list(dict.fromkeys(QueuedKind(row.agent_id, row.version, bool(row.has_tools)) for row in found))

        return await self._database.read(work)

    @override
    async def claim(
        self,
        principal: Principal,
        agent_ids: Sequence[str] | None,
        lease_s: float,
        pins: ClaimPins | None = None,
    ) -> StoredRun | None:
        claimable = select_claimable(principal, agent_ids, self._limits)
        if pins is not None:
            claimable = claimable.where(or_(runs.c.tools.is_not(None), of_versions(pins)))

        def look(connection: Connection) -> bool:
            return connection.execute(claimable).first() is not None

        def work(connection: Connection) -> StoredRun | None:
            # One that another claim has locked is skipped, so that claims do not wait for each other.
            query = claimable.with_for_update(key_share=True, of=runs, skip_locked=True)
            for row in connection.execute(query).all():
                # Claims of one agent count one after another.
                own = select(agents.c.id).where(agents.c.id == row.agent)
                connection.execute(own.with_for_update(key_share=True))
                if _running(connection, row.agent) >= self._limits.running_max:
                    continue
                held = HeldRun(row.id, build_run(connection, row))
                pinned = None if row.has_tools or pins is None else pins[row.agent_id, row.version]
                return _start(connection, held, principal, lease_s, pinned).run
            return None

        if pins is not None:  # the caller has read what is queued
            return await self._database.write(work)
        # Most polls find nothing, and a write waits for others.
        return await self._database.write(work) if await self._database.read(look) else None

    @override
    async def require(self, principal: Principal, run_id: str, lease: int) -> StoredRun:
        def work(connection: Connection) -> StoredRun:
            held = find_own_run(connection, principal, run_id)
            require_lease(connection, held, lease)
            return held.run

        return await self._database.read(work)

    @override
    async def renew(self, principal: Principal, run_id: str, lease: int, lease_s: float) -> StoredRun:
        def work(connection: Connection) -> StoredRun:
            held = hold_run(connection, principal, run_id, lease)
            renew_lease(connection, held, lease_s)
            return run_of_row(connection, held.row).run

        return await self._database.write(work)

    @override
    async def release(self, principal: Principal, run_id: str, lease: int) -> StoredRun:
        def work(connection: Connection) -> StoredRun:
            held = find_own_run(connection, principal, run_id, lock=True)
            run = held.run
            if run.lease == lease and not run.is_held and not run.status.is_ended:
                return run  # the same request again
            require_lease(connection, held, lease)
            if run.status is RunStatus.RUNNING:
                return give_back(connection, held).run
            connection.execute(update(runs).where(runs.c.id == held.row).values(holder=None, lease_until=None))
            return run_of_row(connection, held.row).run

        return await self._database.write(work)

    @override
    async def finish(
        self, principal: Principal, run_id: str, lease: int, end: RunEnd, *, cancel_waits: bool
    ) -> StoredRun:
        def work(connection: Connection) -> StoredRun:
            held = find_own_run(connection, principal, run_id, lock=True)
            run = held.run
            if run.status is end.status and run.lease == lease and run.summary == end.summary:
                return run  # the same request again
            require_lease(connection, held, lease)
            if (waits := open_waits(connection, held.row)) and not cancel_waits:
                raise RunWaitingError(
                    f"run '{run_id}' has {waits} open waits; wait for their calls, or finish with cancel_waits"
                )
            if end.status is RunStatus.COMPLETED:
                mark_seen(connection, held.row)
            return end_run(connection, held, end).run

        return await self._database.write(work)

    @override
    async def cancel(self, principal: Principal, run_id: str) -> StoredRun:
        def work(connection: Connection) -> StoredRun:
            held = find_run(connection, principal, run_id, lock=True)
            if held.run.status.is_ended:
                return held.run
            return end_run(connection, held, RunEnd(RunStatus.CANCELLED)).run

        return await self._database.write(work)

    @override
    async def sweep(self) -> None:
        await sweep_runs(self._database, self._limits)

    @override
    async def calls_of_ended(self, run_id: str | None = None) -> Sequence[OpenCall]:
        of_run = () if run_id is None else (runs.c.run_id == run_id,)

        def work(connection: Connection) -> list[OpenCall]:
            return [
                OpenCall(Principal(row.tenant, row.project, row.user_type, row.user), row.name, row.tool_call_id)
                for query in (_LEFT_WAITING, _LEFT_OPEN)
                for row in connection.execute(query.where(*of_run))
            ]

        return await self._database.read(work)

    @override
    async def context(self, principal: Principal, run_id: str) -> RunContext:
        return await self._database.read(lambda connection: read_context(connection, principal, run_id))

    @override
    async def events(self, principal: Principal, run_id: str, after: int, limit: int) -> Sequence[StoredRunEvent]:
        def work(connection: Connection) -> list[StoredRunEvent]:
            row = find_run(connection, principal, run_id).row
            query = (
                select(run_events.c.id, run_events.c.event, run_events.c.data)
                .where(run_events.c.run == row, run_events.c.id > after)
                .order_by(run_events.c.id)
                .limit(limit)
            )
            return [StoredRunEvent(event.id, event.event, event.data) for event in connection.execute(query)]

        return await self._database.read(work)


def create_run(connection: Connection, principal: Principal, new: NewRun, limits: RunLimits) -> StoredRun:
    """Makes a run in somebody's transaction. Raises as `RunStore.create` does."""
    agent = connection.execute(
        select(agents.c.id, agents.c.current, agents.c.project)
        .join_from(agents, projects, agents.c.project == projects.c.id)
        .where(of_project(principal), agents.c.agent_id == new.agent_id, agents.c.deleted.is_(None))
        .with_for_update(key_share=True, of=agents)
    ).first()
    if agent is None:
        raise UnknownAgentError(
            f"agent_id: there is no agent '{new.agent_id[:100]}'; PUT /v1/agents/{{agent_id}} makes one"
        )
    space = None
    if new.space_id is not None:
        if new.actor is not None:
            open_space(connection, new.actor, new.space_id)
        space = connection.execute(
            select(spaces.c.id).where(spaces.c.project == agent.project, spaces.c.space_id == new.space_id)
        ).scalar()
        if space is None:
            raise UnknownSpaceError(f"space_id: there is no space '{new.space_id[:100]}' here")
    if new.pinned is not None and new.pinned.version != agent.current:
        raise AgentMovedError
    queued = new.queued or _running(connection, agent.id) >= limits.running_max
    if queued and _count(connection, agent.id, RunStatus.QUEUED) >= RUN_QUEUED_MAX:
        raise QueueFullError(
            f"agent '{new.agent_id}' has {RUN_QUEUED_MAX} queued runs, as many as may be; claim or cancel some",
            retry_after_s=limits.lease_s,
        )
    row = connection.execute(
        insert(runs)
        .values(
            project=agent.project,
            run_id=new.run_id,
            agent=agent.id,
            version=agent.current,
            conversation=new.conversation_id,
            status=RunStatus.QUEUED.value,
            trigger=json.dumps(new.trigger),
            metadata=json.dumps(new.metadata),
            chain_depth=new.chain_depth,
            space=space,
            created=utc_now(),
        )
        .returning(runs.c.id)
    ).scalar_one()
    held = run_of_row(connection, row)
    if not queued:
        return _start(connection, held, principal, new.lease_s, new.pinned).run
    add_run_event(connection, held, "run.queued", {"run": run_json(held.run)})
    announce_run(connection, row)
    announce(connection, QUEUE_TOPIC)
    return held.run


def _start(
    connection: Connection, held: HeldRun, principal: Principal, lease_s: float, pinned: PinnedTools | None = None
) -> HeldRun:
    """Gives a queued run to a holder, under the next lease, with the tools of MCP servers that it gets."""
    tools = {}
    if pinned is not None and pinned.has_servers:
        tools["tools"] = json.dumps([tool.to_json() for tool in pinned.tools])
        tools["warnings"] = json.dumps(list(pinned.warnings))
    return move_run(
        connection,
        held,
        RunStatus.RUNNING,
        lease=held.run.lease + 1,
        lease_until=in_seconds(lease_s),
        holder=principal.caller,
        principal=ensure_principal(connection, principal),
        started=held.run.started or time_text(datetime.now(UTC)),
        **tools,
    )


def _running(connection: Connection, agent: int) -> int:
    return _count(connection, agent, RunStatus.RUNNING)


def _count(connection: Connection, agent: int, status: RunStatus) -> int:
    query = select(func.count()).select_from(runs).where(runs.c.agent == agent, runs.c.status == status.value)
    return int(connection.execute(query).scalar_one())
