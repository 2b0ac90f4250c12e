"""Finding a call by the loop's own id, which is unique in its conversation only."""

from proofbox.service.calls.port import CallStore, StoredCall
from proofbox.service.errors import AmbiguousCallError, UnknownCallError
from proofbox.service.identity import Principal


async def find_call(
    store: CallStore, principal: Principal, tool_call_id: str, conversation_id: str | None
) -> StoredCall:
    """The call of a principal.

    Raises:
        UnknownCallError: no call of that id.
        AmbiguousCallError: several conversations have one; ``conversation_id`` selects one.
        StoreFailedError: the store failed.
    """
    found = [
        call
        for call in await store.find(principal, tool_call_id)
        if conversation_id in (None, call.key.scope.conversation_id)
    ]
    if not found:
        raise UnknownCallError(f"no call '{tool_call_id[:128]}' is known here")
    if len(found) > 1:
        raise AmbiguousCallError(
            f"{len(found)} conversations have a call '{tool_call_id[:128]}'; say which by ?conversation_id="
        )
    return found[0]
