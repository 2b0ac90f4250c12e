"""The registration of calls: each call is run by one claim; a claim that was lost is made anew."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.port import CallKey, CallState, CallStore, Effect, NewCall, StoredCall
from proofbox.service.errors import QueueFullError
from proofbox.service.identity import ConversationKey

_LOOK_AGAIN_S = 0.01
_EXACT_BELOW = 2**53  # every whole number below it is the same in JSON's integers and in floats


class CallRegistry:
    """Registers calls, so that each is run by one claim.

    A store may have failed after it stored a claim, or failed to forget a call that was refused. Such a call is
    open, of this process, and does not run: no program of it ran, and the next request may claim it.

    Args:
        store: the calls.
        boot_id: this process of the service.
        is_running: whether this process runs a call.
    """

    def __init__(self, store: CallStore, boot_id: str, is_running: Callable[[CallKey], bool]) -> None:
        self._store = store
        self._boot_id = boot_id
        self._is_running = is_running
        self._under_way: Counter[CallKey] = Counter()

    @asynccontextmanager
    async def register(self, new: NewCall) -> AsyncIterator[tuple[StoredCall, bool]]:
        """The stored call and whether it is new; a new one has to run, or be forgotten, when the block ends.

        Raises what `CallStore.claim` does.
        """
        with self._mark(new.key):
            yield await self._claim(new)

    async def admit(self, key: CallKey, admit: Callable[[], None]) -> None:
        """Refuses a call for which there is no place; one that is stored already gets its answer.

        Args:
            key: the call.
            admit: raises QueueFullError if there is no place.

        Raises:
            QueueFullError: there is none, and the call is new.
        """
        try:
            admit()
        except QueueFullError:
            found = await self._store.find(key.scope.principal, key.tool_call_id)
            if all(call.key != key for call in found):
                raise

    def is_claiming(self, scope: ConversationKey) -> bool:
        """Whether a request is about to register a call of a conversation."""
        return any(key.scope == scope for key in self._under_way)

    async def _claim(self, new: NewCall) -> tuple[StoredCall, bool]:
        while True:
            stored, is_new = await self._store.claim(new)
            key = stored.key
            if is_new or stored.state is not CallState.OPEN or stored.boot_id != self._boot_id:
                return stored, is_new
            if self._is_running(key):
                return stored, False
            if not await self._others_ended(key, new.key):
                # Only an open call is forgotten: if it has ended meanwhile, the next look finds its answer.
                with self._mark(key):
                    await self._store.forget(key)

    async def _others_ended(self, key: CallKey, own: CallKey) -> bool:
        """Waits until no other claim is about to decide on a call; returns whether there was one."""
        self._under_way[own] -= 1  # one that waits decides nothing
        waited = False
        try:
            while self._under_way[key]:
                waited = True
                await asyncio.sleep(_LOOK_AGAIN_S)
        finally:
            self._under_way[own] += 1
        return waited

    @contextmanager
    def _mark(self, key: CallKey) -> Iterator[None]:
        self._under_way[key] += 1
        try:
            yield
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]


async def new_call(
    key: CallKey,
    request: ToolCallRequest,
    boot_id: str,
    idempotency_key: str | None,
    effects: Sequence[Effect] = (),
    *,
    is_queued: bool = False,
) -> NewCall:
    """A call as it is to be registered."""
    sha256, text = await asyncio.to_thread(_payload, request)  # with up to 100 MB of assets
    return NewCall(
        key=key,
        payload_sha256=sha256,
        request=text,
        boot_id=boot_id,
        idempotency_key=idempotency_key,
        effects=effects,
        is_queued=is_queued,
    )


def _payload(request: ToolCallRequest) -> tuple[str, str]:
    """The hash of a request, and the request as it is stored."""
    return payload_sha256(request), request.model_dump_json()


def payload_sha256(request: ToolCallRequest) -> str:
    """SHA-256, in hex, of what a request asks for.

    The same for requests that differ in the order of the keys of an object, in a field that is absent or has its
    default, in an empty timeline or none, or in ``1`` and ``1.0``. The order of lists counts. Fields at their
    default are left out: a release with one field more has the same hash for the requests of the one before.
    """
    timeline = [block.model_copy(update={"meta": order_json(block.meta)}) for block in request.timeline or ()]
    same = request.model_copy(update={"params": order_json(request.params), "timeline": timeline or None})
    return hashlib.sha256(same.model_dump_json(exclude_defaults=True).encode()).hexdigest()


def order_json(value: Any) -> Any:
    """A JSON value with the keys of its objects in order, and whole numbers as integers."""
    if isinstance(value, dict):
        return {key: order_json(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [order_json(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_BELOW:
        return int(value)
    return value
