"""Carries out plans with the connections of an event loop."""

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Generic, TypeVar

import httpx2

from proofbox.client.api import Api
from proofbox.client.exchange import Deliver, Open, Plan, Read, Reply, Sleep, Step, TransportFailure
from proofbox.client.transport import (
    connection_settings,
    reply_of,
    request_settings,
    require_open,
    translated_failures,
)
from proofbox.client.uploads import PIECE_BYTES, UploadSource

T = TypeVar("T")


class AsyncDriver:
    """Connections to one service, of one event loop."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._http = httpx2.AsyncClient(**connection_settings(api))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def complete(self, plan: Plan[T], on_item: Callable[[Any], object] | None = None) -> T:
        """Carry out a plan and return its result; each delivered item is given to ``on_item``, and awaited."""
        run = _Run(plan, self._api, self._http)
        try:
            while (item := await run.next_item()) is not None:
                if on_item is not None and inspect.isawaitable(awaited := on_item(item.item)):
                    await awaited
            return run.result
        finally:
            await run.close()

    async def iterate(self, plan: Plan[Any]) -> AsyncGenerator[Any, None]:
        """Carry out a plan and yield the items that it delivers."""
        run = _Run(plan, self._api, self._http)
        try:
            while (item := await run.next_item()) is not None:
                yield item.item
        finally:
            await run.close()


class _Run(Generic[T]):
    """A plan that is carried out."""

    result: T

    def __init__(self, plan: Plan[T], api: Api, http: httpx2.AsyncClient) -> None:
        self._plan = plan
        self._exchange = _Exchange(api, http)

    async def next_item(self) -> Deliver | None:
        """The next item that the plan delivers; None at its end, when there is a result."""
        try:
            step: Step = self._plan.send(None)
            while not isinstance(step, Deliver):
                try:
                    result = await self._exchange.perform(step)
                except TransportFailure as exc:
                    step = self._plan.throw(exc)
                else:
                    step = self._plan.send(result)
        except StopIteration as end:
            self.result = end.value
            return None
        return step

    async def close(self) -> None:
        self._plan.close()
        await self._exchange.close()


class _Exchange:
    """The request of a plan that is open now."""

    def __init__(self, api: Api, http: httpx2.AsyncClient) -> None:
        self._api = api
        self._http = http
        self._response: httpx2.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def perform(self, step: Open | Read | Sleep) -> Reply | bytes | None:
        if isinstance(step, Sleep):
            await self.close()
            await asyncio.sleep(step.seconds)
            return None
        with translated_failures():
            if isinstance(step, Read):
                return await self._read()
            await self.close()
            require_open(self._http)
            body = step.request.body
            content = _pieces(body) if isinstance(body, UploadSource) else body
            request = self._http.build_request(**request_settings(self._api, step.request), content=content)
            self._response = await self._http.send(request, stream=True)
            self._pieces = self._response.aiter_bytes()
            return reply_of(self._response)

    async def _read(self) -> bytes:
        if self._pieces is not None:
            async for piece in self._pieces:
                if piece:
                    return piece
        return b""

    async def close(self) -> None:
        if self._response is not None:
            self._pieces = None
            await self._response.aclose()
            self._response = None


async def _pieces(source: UploadSource) -> AsyncIterator[bytes]:
    sent_bytes = 0
    with source.open() as file:
        while piece := await asyncio.to_thread(file.read, PIECE_BYTES):
            sent_bytes += len(piece)
            source.check_size(sent_bytes, is_end=False)
            yield piece
    source.check_size(sent_bytes, is_end=True)
