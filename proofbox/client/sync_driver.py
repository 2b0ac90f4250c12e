"""Carries out plans with blocking connections."""

import time
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import httpx2

from proofbox.client.api import Api
from proofbox.client.exchange import Deliver, Open, Plan, Read, Reply, Sleep, TransportFailure
from proofbox.client.transport import (
    connection_settings,
    reply_of,
    request_settings,
    require_open,
    translated_failures,
)
from proofbox.client.uploads import PIECE_BYTES, UploadSource

T = TypeVar("T")


class SyncDriver:
    """Connections to one service; several threads can share it."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._http = httpx2.Client(**connection_settings(api))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def complete(self, plan: Plan[T], on_item: Callable[[Any], object] | None = None) -> T:
        """Carry out a plan and return its result; each delivered item is given to ``on_item``."""
        items = self.iterate(plan)
        try:
            while True:
                item = next(items)
                if on_item is not None:
                    on_item(item)
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            items.close()

    def iterate(self, plan: Plan[T]) -> Generator[Any, None, T]:
        """Carry out a plan and yield the items that it delivers."""
        exchange = _Exchange(self._api, self._http)
        try:
            step = next(plan)
            while True:
                if isinstance(step, Deliver):
                    yield step.item
                    step = plan.send(None)
                    continue
                try:
                    result = exchange.perform(step)
                except TransportFailure as exc:
                    step = plan.throw(exc)
                else:
                    step = plan.send(result)
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            exchange.close()
            plan.close()


class _Exchange:
    """The request of a plan that is open now."""

    def __init__(self, api: Api, http: httpx2.Client) -> None:
        self._api = api
        self._http = http
        self._response: httpx2.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def perform(self, step: Open | Read | Sleep) -> Reply | bytes | None:
        if isinstance(step, Sleep):
            self.close()
            time.sleep(step.seconds)
            return None
        with translated_failures():
            if isinstance(step, Read):
                return next((piece for piece in self._pieces if piece), b"")
            self.close()
            require_open(self._http)
            body = step.request.body
            content = _pieces(body) if isinstance(body, UploadSource) else body
            request = self._http.build_request(**request_settings(self._api, step.request), content=content)
            self._response = self._http.send(request, stream=True)
            self._pieces = self._response.iter_bytes()
            return reply_of(self._response)

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
            self._response = None


def _pieces(source: UploadSource) -> Iterator[bytes]:
    sent_bytes = 0
    with source.open() as file:
        while piece := file.read(PIECE_BYTES):
            sent_bytes += len(piece)
            source.check_size(sent_bytes, is_end=False)
            yield piece
    source.check_size(sent_bytes, is_end=True)
