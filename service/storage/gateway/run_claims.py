"""Which queued runs a principal may claim."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, or_, select

from proofbox.service.gateway.runs_port import RunLimits, RunStatus
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import PRINCIPAL, principal_values
from proofbox.service.storage.gateway.run_rows import of_project, select_runs
from proofbox.service.storage.gateway.schema import agents, runs

_CANDIDATES = 20  # of the oldest queued runs: some agents may run as many as they may
_OTHERS = runs.alias("other_runs")


def select_claimable(principal: Principal, agent_ids: Sequence[str] | None, limits: RunLimits) -> Any:
    """Selects the oldest queued runs that a principal may have: conversations belong to one."""
    owners = select(PRINCIPAL).scalar_subquery()
    others = _OTHERS.c
    working = select(func.count()).where(others.agent == runs.c.agent, others.status == RunStatus.RUNNING.value)
    query = select_runs().where(
        of_project(principal),
        runs.c.status == RunStatus.QUEUED.value,
        or_(runs.c.principal.is_(None), runs.c.principal == owners),
        working.scalar_subquery() < limits.running_max,
    )
    if agent_ids is not None:
        query = query.where(agents.c.agent_id.in_(agent_ids))
    return query.order_by(runs.c.id).limit(_CANDIDATES).params(principal_values(principal))


def of_versions(keys: Collection[tuple[str, int]]) -> ColumnElement[bool]:
    """Whether a run is one of these agents and versions."""
    pairs = (and_(agents.c.agent_id == agent_id, runs.c.version == version) for agent_id, version in keys)
    return or_(false(), *pairs)
