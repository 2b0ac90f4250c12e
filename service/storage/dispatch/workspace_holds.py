"""Which call has the workspace of a conversation, among those of all workers: as long as its claim is valid."""

from sqlalchemy import Connection, bindparam, exists, select, text, update

from proofbox.service.calls.claim import ClaimId, ClaimLostError
from proofbox.service.dispatch.port import DispatchState
from proofbox.service.storage.database import UNREAD, count_changed
from proofbox.service.storage.dispatch.tables import dispatches
from proofbox.service.storage.schema import calls

_OUR_LOCK = 0x50_42_4F_57  # "PBOW": workspaces, among all advisory locks of a database
_LOCK = text("SELECT pg_advisory_xact_lock(:ours, hashtext(current_schema() || :conversation))")

_c = dispatches.c
_IS_HELD = _c.state.in_([DispatchState.CLAIMED.value, DispatchState.STARTED.value])
_OWN = (_c.call == bindparam("of_call"), _c.claim == bindparam("of_claim"), _c.worker == bindparam("by_worker"))
_CONVERSATION = select(calls.c.conversation).where(calls.c.id == bindparam("of_call"))
_IS_TAKEN = select(
    exists().where(_c.workspace == bindparam("conversation"), _c.call != bindparam("of_call"), _IS_HELD)
)
_TAKEN = update(dispatches).where(*_OWN, _IS_HELD).values(workspace=bindparam("conversation"))
_LEFT = update(dispatches).where(*_OWN).values(workspace=None)


def take_workspace(connection: Connection, claim: ClaimId) -> bool:
    """Give the workspace of its conversation to a call, unless another one has it.

    Raises:
        ClaimLostError: another worker has the call, or it has ended.
    """
    values = {"of_call": claim.call, "of_claim": claim.claim, "by_worker": claim.worker}
    conversation = connection.scalar(_CONVERSATION, values)
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        connection.execute(_LOCK, {"ours": _OUR_LOCK, "conversation": str(conversation)}, execution_options=UNREAD)
    if connection.scalar(_IS_TAKEN, {**values, "conversation": conversation}):
        return False
    if count_changed(connection, _TAKEN, {**values, "conversation": conversation}) != 1:
        raise ClaimLostError("another process has the call, or it has ended; it gets no workspace")
    return True


def leave_workspace(connection: Connection, claim: ClaimId) -> None:
    """Let another call have the workspace."""
    connection.execute(_LEFT, {"of_call": claim.call, "of_claim": claim.claim, "by_worker": claim.worker})
