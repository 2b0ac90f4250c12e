"""Requires the claim of a worker in the transaction of what it writes for its call."""

from sqlalchemy import Connection, bindparam, select

from proofbox.service.calls.claim import ClaimId, ClaimLostError
from proofbox.service.dispatch.port import DispatchState
from proofbox.service.storage.conversation_rows import DELETED
from proofbox.service.storage.dispatch.tables import dispatches
from proofbox.service.storage.schema import calls, conversations, principals

_c = dispatches.c
_HELD = (
    select(principals.c.tenant)
    .join_from(dispatches, calls, _c.call == calls.c.id)
    .join(conversations, calls.c.conversation == conversations.c.id)
    .join(principals, conversations.c.principal == principals.c.id)
    .where(
        _c.call == bindparam("of_call"),
        _c.claim == bindparam("of_claim"),
        _c.worker == bindparam("by_worker"),
        _c.state.in_([DispatchState.CLAIMED.value, DispatchState.STARTED.value]),
    )
    .with_for_update(read=True, of=dispatches)
)


def require_claim(connection: Connection, claim: ClaimId) -> None:
    """Require that a worker has a claim until the transaction ends.

    Taken after the lock of the conversation, as in the transaction that ends the call.

    Raises:
        ClaimLostError: another process has the call, it has ended, or its conversation was deleted.
    """
    values = {"of_call": claim.call, "of_claim": claim.claim, "by_worker": claim.worker}
    tenant = connection.scalar(_HELD, values)
    if tenant is None or tenant == DELETED:
        raise ClaimLostError("another process has the call, or it has ended; this one stores no files of it")
