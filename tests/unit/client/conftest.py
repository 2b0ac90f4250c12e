"""Both clients by one interface: each test of a method runs with the blocking and the asynchronous one."""

import asyncio
import inspect
import operator
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from proofbox.client import AsyncClient, Client
from tests.support.scripted_service import Scripted, ScriptedService


class UseClient:
    """Calls a method of a new client, such as ``gateway.get_run``; an iterator is read to its end."""

    def __init__(self, *, is_async: bool) -> None:
        self.is_async = is_async

    def __call__(self, service: ScriptedService | str, method: str, *args: Any, **options: Any) -> Any:
        url = service if isinstance(service, str) else service.url
        settings = {"api_key": "pbx_test", **options.pop("settings", {})}
        if self.is_async:
            return asyncio.run(self._call_async(url, settings, method, *args, **options))
        with Client(url, **settings) as client:
            result = operator.attrgetter(method)(client)(*args, **options)
            return list(result) if isinstance(result, Iterator) else result

    async def _call_async(self, url: str, settings: Any, method: str, *args: Any, **options: Any) -> Any:
        async with AsyncClient(url, **settings) as client:
            result = operator.attrgetter(method)(client)(*args, **options)
            if isinstance(result, AsyncIterator):
                return [item async for item in result]
            return await result if inspect.isawaitable(result) else result

    def read(self, service: ScriptedService, conversation: str, path: str, **options: Any) -> bytes:
        """The bytes of a file."""
        if self.is_async:

            async def read() -> bytes:
                async with AsyncClient(service.url, **options) as client:
                    return await client.download(conversation, path).read()

            return asyncio.run(read())
        with Client(service.url, **options) as client:
            return client.download(conversation, path).read()


@pytest.fixture(params=["sync", "async"])
def use(request: pytest.FixtureRequest) -> UseClient:
    return UseClient(is_async=request.param == "async")


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    """A service whose script the test sets."""
    with ScriptedService(Scripted()) as service:
        yield service
