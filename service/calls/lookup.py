"""Finding a call by the loop's own id, which is unique in its conversation only."""

import asyncio
import json

from proofbox.contracts.logical_paths import TurnPath
from proofbox.service.calls.port import CallStore, StoredCall
from proofbox.service.errors import AmbiguousCallError, UnknownCallError
from proofbox.service.identity import ConversationKey, Principal


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


async def find_printed_output(store: CallStore, scope: ConversationKey, path: TurnPath) -> str | None:
    """What the program of a call printed; None if the turn has no such call that has ended.

    Raises:
        StoreFailedError: the store failed.
    """
    for call in await store.find(scope.principal, path.item_id):
        if call.key.scope == scope and call.answer is not None:
            return await asyncio.to_thread(_printed, call, path.turn_id)
    return None


def _printed(call: StoredCall, turn_id: str) -> str | None:
    if json.loads(call.request).get("turn_id") != turn_id:
        return None
    answer = json.loads(call.partial_response or call.answer or "{}")
    output = answer.get("output")
    text = output.get("combined") if isinstance(output, dict) else None
    return text if isinstance(text, str) else None
