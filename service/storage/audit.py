"""Audit lines in the database: a chain for each project of a tenant, whose lines are added and never changed.

Each line holds the SHA-256 of the one before it, so a line that was changed, removed or inserted later is detected.
A writer of the whole database can write a whole chain anew: store a copy of the lines, or signed heads, elsewhere.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select
from typing_extensions import override

from proofbox.service.calls.audit.audit_port import AuditStore
from proofbox.service.calls.port import AuditDraft, AuditedLine, CallKey
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import CONVERSATION, new_or_known, scope_values
from proofbox.service.storage.database import UNREAD, Database
from proofbox.service.storage.schema import audit, calls, chains

_IS_CHAIN = (chains.c.tenant == bindparam("of_tenant"), chains.c.project == bindparam("of_project"))
_LOCKED = select(chains.c.id).where(*_IS_CHAIN).with_for_update()
_SEQ = select(func.max(audit.c.seq)).where(audit.c.chain == chains.c.id).correlate(chains).scalar_subquery()
_LAST = (
    select(chains.c.id, audit.c.seq, audit.c.sha256)
    .outerjoin_from(chains, audit, (audit.c.chain == chains.c.id) & (audit.c.seq == _SEQ))
    .where(*_IS_CHAIN)
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
    chain = {"of_tenant": principal.tenant, "of_project": principal.project}
    while (last := _lock_chain(connection, chain)) is None:
        made = new_or_known(chains, connection.dialect.name)
        connection.execute(made, {"tenant": principal.tenant, "project": principal.project})
    seq, previous = (last.seq or 0) + 1, last.sha256
    text = f'{{"seq":{seq},"previous":{json.dumps(previous)},{draft.text.removeprefix("{")}'
    sha256 = hashlib.sha256(text.encode("ascii")).hexdigest()
    row = {"chain": last.id, "seq": seq, "call": call, "ended": draft.ended, "sha256": sha256, "line": text}
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


def _lock_chain(connection: Connection, chain: Mapping[str, object]) -> Row[Any, Any, Any] | None:
    """Lock a chain, if there is one, and read the end that it has then."""
    connection.execute(_LOCKED, chain, execution_options=UNREAD)
    return connection.execute(_LAST, chain).first()
