"""Rows of records of agents: written and deleted all or none, within somebody's transaction."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Table, delete, insert, select, update

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.records import TEXTS_BYTES_MAX
from proofbox.service.gateway.records.port import ItemsRefusedError, Removal
from proofbox.service.identity import Principal
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.gateway.agents import require_agent
from proofbox.service.storage.text_columns import storable

_ID_BYTES = 8
_NAME_CHARACTERS_MAX = 100


@dataclass(frozen=True, slots=True)
class RecordKind:
    """One kind of record.

    Attributes:
        table: its table, with the columns ``agent``, ``created`` and ``updated``.
        name: the column with the name that a model gives.
        noun: such as ``goal``; the ids of new ones begin with it.
        field: the parameter that has the items.
        items_max: how many an agent may have.
        texts: the column whose texts have a limit together, if one has.
    """

    table: Table
    name: Column[str]
    noun: str
    field: str
    items_max: int
    texts: Column[str] | None = None

    @property
    def name_field(self) -> str:
        """What the name is for the model: ``id`` or ``key``."""
        return self.name.name.removeprefix(f"{self.noun}_")


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A row that is to be written.

    Attributes:
        name: its name; None: a new one is made.
        values: the other columns.
        may_be_new: whether a name that is not known makes a new row.
    """

    name: str | None
    values: Mapping[str, Any]
    may_be_new: bool = False


def lock_agent(connection: Connection, principal: Principal, agent_id: str) -> int:
    """Return the row of an agent; others that write its records wait. Raises UnknownAgentError."""
    return int(require_agent(connection, principal, agent_id, lock=True).id)


def write_rows(connection: Connection, kind: RecordKind, agent: int, rows: Sequence[RecordRow]) -> None:
    """Insert or update records of a locked agent.

    Raises:
        ItemsRefusedError: a name is unknown, or the agent would have too many or too long ones; roll back.
    """
    known = _names(connection, kind, agent)
    fresh = set()
    for place, row in enumerate(rows):
        if row.name is None or storable(row.name) in known:
            continue
        if not row.may_be_new:
            raise ItemsRefusedError(
                GatewayCode.UNKNOWN_ITEM,
                f"{kind.field}[{place}].{kind.name_field}: there is no {kind.noun} "
                f"'{row.name[:_NAME_CHARACTERS_MAX]}'; leave the {kind.name_field} out to make one. "
                "Nothing was changed",
            )
        fresh.add(storable(row.name))
    count = len(known) + len(fresh) + sum(row.name is None for row in rows)
    if count > kind.items_max:
        raise ItemsRefusedError(
            GatewayCode.TOO_MANY_ITEMS,
            f"{kind.field}: too many for one agent (limit {kind.items_max:,}, got {count:,}); delete some first. "
            "Nothing was changed",
        )
    now, table = utc_now(), kind.table
    for row in rows:
        if row.name is not None and storable(row.name) in known:
            of_row = (table.c.agent == agent, kind.name == row.name)
            connection.execute(update(table).where(*of_row).values({**row.values, "updated": now}))
        else:
            name = row.name if row.name is not None else f"{kind.noun}_{secrets.token_hex(_ID_BYTES)}"
            values = {**row.values, "agent": agent, kind.name.name: name, "created": now, "updated": now}
            connection.execute(insert(table).values(values))
            known.add(storable(name))
    _require_short(connection, kind, agent)


def _require_short(connection: Connection, kind: RecordKind, agent: int) -> None:
    if kind.texts is None:
        return
    texts = connection.scalars(select(kind.texts).where(kind.table.c.agent == agent))
    size = sum(len(text.encode(errors="replace")) for text in texts)
    if size > TEXTS_BYTES_MAX:
        raise ItemsRefusedError(
            GatewayCode.TOO_MANY_ITEMS,
            f"{kind.field}: the texts of one agent are too long together (limit {TEXTS_BYTES_MAX:,} bytes, got "
            f"{size:,}); shorten or delete some. Nothing was changed",
        )


def delete_rows(connection: Connection, kind: RecordKind, agent: int, names: Sequence[str] | None) -> Removal:
    """Delete records of a locked agent by their names; None: all of them.

    Raises:
        ItemsRefusedError: a name is unknown.
    """
    known, table = _names(connection, kind, agent), kind.table
    if names is None:
        connection.execute(delete(table).where(table.c.agent == agent))
        return Removal(len(known), 0)
    wanted = {storable(name) for name in names}
    if unknown := [name for name in names if storable(name) not in known]:
        listed = ", ".join(f"'{name[:_NAME_CHARACTERS_MAX]}'" for name in unknown[:5])
        raise ItemsRefusedError(
            GatewayCode.UNKNOWN_ITEM,
            f"{kind.name_field}s: there is no {kind.noun} {listed}; leave it out. Nothing was deleted",
        )
    for name in wanted:
        connection.execute(delete(table).where(table.c.agent == agent, kind.name == name))
    return Removal(len(wanted), len(known) - len(wanted))


def _names(connection: Connection, kind: RecordKind, agent: int) -> set[str]:
    return set(connection.scalars(select(kind.name).where(kind.table.c.agent == agent)))
