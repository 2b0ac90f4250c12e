"""The actions of ``proofbox dispatch`` on the local store."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

from proofbox.cli.shared.terminal import Terminal
from proofbox.service.app.settings import Settings
from proofbox.service.dispatch.port import DeadCall
from proofbox.service.errors import UnknownCallError
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.claims import SqlDispatchStore

_LISTED_MAX = 10_000
_COLUMNS = ("number", "created", "tool_id", "attempts", "conversation_id", "tool_call_id", "reason")


async def run(settings: Settings, arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Run one action.

    Raises:
        UnknownCallError: no call of that number is set aside.
        StoreFailedError: the database cannot be used.
    """
    database = Database(
        settings.data_dir, settings.database_url, settings.database_timeout_s, shared=settings.is_shared
    )
    await database.open_beside()
    try:
        dispatches = SqlDispatchStore(database)
        dead = await dispatches.dead(_LISTED_MAX)
        if arguments.action == "list":
            _list(dead, terminal)
            return 0
        call = next((each for each in dead if each.number == arguments.number), None)
        if call is None:
            raise UnknownCallError(
                f"number: no call {arguments.number} is set aside; 'proofbox dispatch dead list'"
            )
        if arguments.action == "show":
            await _show(call, SqlCallStore(database), terminal)
        else:
            await dispatches.release_dead(call.number)
            terminal.note(f"call {call.number} is queued again")
            if terminal.is_json:
                terminal.print_json({"number": call.number, "released": True})
    finally:
        await database.close()
    return 0


def _list(dead: Sequence[DeadCall], terminal: Terminal) -> None:
    rows = [_fields(call) for call in dead]
    if terminal.is_json:
        terminal.print_json({"calls": rows})
    else:
        terminal.table(_COLUMNS, [tuple(str(row[name]) for name in _COLUMNS) for row in rows])
    terminal.note(f"{len(rows)} calls are set aside")


async def _show(call: DeadCall, store: SqlCallStore, terminal: Terminal) -> None:
    found = await store.find(call.key.scope.principal, call.key.tool_call_id)
    stored = next((each for each in found if each.number == call.number), None)
    request = None if stored is None else json.loads(stored.request)
    who = call.key.scope.principal
    whose = {"tenant": who.tenant, "project": who.project, "user_type": who.user_type, "user": who.user}
    terminal.print_json({**_fields(call), **whose, "request": request})


def _fields(call: DeadCall) -> dict[str, Any]:
    return {
        "number": call.number,
        "created": call.created,
        "tool_id": call.tool_id,
        "attempts": call.attempts,
        "conversation_id": call.key.scope.conversation_id,
        "tool_call_id": call.key.tool_call_id,
        "reason": call.reason,
    }
