"""Audit lines in the database: a chain for each project of a tenant, whose lines are added and never changed.

Each line holds the SHA-256 of the one before it, so a line that was changed, removed or inserted later is detected.
A writer of the whole database can write a whole chain anew: store a copy of the lines, or signed heads, elsewhere.
"""

import hashlib
import json
from collections.abc import Mapping

from sqlalchemy import Connection, Select, bindparam, insert, select
from typing_extensions import override

from proofbox.service.calls.audit.audit_port import AuditStore
from proofbox.service.calls.port import AuditDraft, AuditedLine, CallKey
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import CONVERSATION, new_or_known, scope_values
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import audit, calls, chains

_CHAIN = select(chains.c.id).where(
    chains.c.tenant == bindparam("of_tenant"), chains.c.project == bindparam("of_project")
)
_LOCKED = _CHAIN.with_for_update()
_LAST = (
    select(audit.c.seq, audit.c.sha256)
    .where(audit.c.chain == bindparam("in_chain"))
    .order_by(audit.c.seq.desc())
    .limit(1)
)
_ADDED = insert(audit)
_LINE = select(audit.c.line, audit.c.sha256)
_OF_CALL = _LINE.join_from(audit, calls).where(
    calls.c.conversation == CONVERSATION, calls.c.tool_call_id == bindparam("call_id")
)
_OF_NUMBER = _LINE.where(audit.c.call == bindparam("of_call"))


class SqlAuditStore(AuditStore):
    """The AuditStore in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def of_call(self, key: CallKey) -> AuditedLine | None:
        values = {**scope_values(key.scope), "call_id": key.tool_call_id}

        return await self._database.read(lambda connection: _first(connection, _OF_CALL, values))

    @override
    async def add(self, principal: Principal, draft: AuditDraft) -> AuditedLine:
        return await self._database.write(lambda connection: add_line(connection, principal, draft, None))


def add_line(connection: Connection, principal: Principal, draft: AuditDraft, call: int | None) -> AuditedLine:
    """Add a line at the end of its chain; others that add one there wait for this transaction.

    The chain is locked after everything else that the transaction locks, so that transactions never deadlock.
    """
    chain = _lock_chain(connection, principal)
    last = connection.execute(_LAST, {"in_chain": chain}).first()
    seq, previous = (1, None) if last is None else (last.seq + 1, last.sha256)
    text = f'{{"seq":{seq},"previous":{json.dumps(previous)},{draft.text.removeprefix("{")}'
    sha256 = hashlib.sha256(text.encode("ascii")).hexdigest()
    row = {"chain": chain, "seq": seq, "call": call, "ended": draft.ended, "sha256": sha256, "line": text}
    connection.execute(_ADDED, row)
    return AuditedLine(text, sha256)


def line_of(connection: Connection, call: int) -> AuditedLine | None:
    """The line of the call that has that number in the database, if it has one."""
    return _first(connection, _OF_NUMBER, {"of_call": call})


def _first(
    connection: Connection, lines: Select[tuple[str, str]], values: Mapping[str, object]
) -> AuditedLine | None:
    row = connection.execute(lines, values).first()
    return None if row is None else AuditedLine(row.line, row.sha256)


def _lock_chain(connection: Connection, principal: Principal) -> int:
    values = {"of_tenant": principal.tenant, "of_project": principal.project}
    found = connection.execute(_LOCKED, values).first()
    if found is None:
        made = new_or_known(chains, connection.dialect.name)
        connection.execute(made, {"tenant": principal.tenant, "project": principal.project})
        found = connection.execute(_LOCKED, values).one()
    return int(found.id)
