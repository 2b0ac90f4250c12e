"""Claims of calls: each call is run by one of them, and one that was lost on its way to the store is made anew."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from contracts.tool_call_request import ToolCallRequest
from service.calls.payload_hash import payload_sha256
from service.calls.port import CallKey, CallStore, NewCall, StoredCall

_LOOK_AGAIN_S = 0.01


class CallRegistry:
    """Registers calls, so that each is run by one claim.

    A store may have kept a claim and died before it said so, or failed to forget a call that was refused. Such a
    call is open, of this life, and nobody runs it: nothing of it ran, and whoever asks next may have it.

    Args:
        store: the calls.
        boot_id: this life of the service.
        is_running: whether this life runs a call.
    """

    def __init__(self, store: CallStore, boot_id: str, is_running: Callable[[CallKey], bool]) -> None:
        self._store = store
        self._boot_id = boot_id
        self._is_running = is_running
        self._under_way: Counter[CallKey] = Counter()

    @asynccontextmanager
    async def claimed(self, new: NewCall) -> AsyncIterator[tuple[StoredCall, bool]]:
        """The stored call and whether it is new; a new one has to run, or be forgotten, when the block ends.

        Raises what `CallStore.claim` does.
        """
        with self._marked(new.key):
            yield await self._claim(new)

    async def _claim(self, new: NewCall) -> tuple[StoredCall, bool]:
        while True:
            stored, is_new = await self._store.claim(new)
            key = stored.key
            if is_new or stored.answer is not None or stored.boot_id != self._boot_id or self._is_running(key):
                return stored, is_new
            if not await self._others_ended(key, new.key):
                # Only an open call is forgotten: if it has ended meanwhile, the next look finds its answer.
                with self._marked(key):
                    await self._store.forget(key)

    async def _others_ended(self, key: CallKey, own: CallKey) -> bool:
        """Waits until no other claim is about to say what becomes of a call; whether there was one to wait for."""
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
    def _marked(self, key: CallKey) -> Iterator[None]:
        self._under_way[key] += 1
        try:
            yield
        finally:
            self._under_way[key] -= 1
            if not self._under_way[key]:
                del self._under_way[key]


async def new_call(key: CallKey, request: ToolCallRequest, boot_id: str, idempotency_key: str | None) -> NewCall:
    """A call as it is to be registered."""
    sha256, text = await asyncio.to_thread(_payload, request)  # with up to 100 MB of assets
    return NewCall(key=key, payload_sha256=sha256, request=text, boot_id=boot_id, idempotency_key=idempotency_key)


def _payload(request: ToolCallRequest) -> tuple[str, str]:
    """The hash of a request, and the request as it is stored."""
    return payload_sha256(request), request.model_dump_json()
