"""The messages of a server, bounded before the SDK sees them: what it checks part by part holds up every thread.

Imported with the SDK, at the first use of an MCP server.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from proofbox.contracts.codes import WebCode
from proofbox.service.mcp_sources.limits import PARTS_MAX, REQUESTS_MAX
from proofbox.service.mcp_sources.transport import CheckedTransport
from proofbox.service.web.port import WebFailedError

# Any JSON to the SDK, so that it takes no time to check.
_FREE = frozenset({"structuredContent", "inputSchema", "outputSchema", "requestedSchema", "_meta"})


@asynccontextmanager
async def bound_messages(
    streams: AbstractAsyncContextManager[Any], transport: CheckedTransport
) -> AsyncIterator[tuple[Any, Any]]:
    """Streams of a transport of the SDK, whose messages are bounded.

    Args:
        streams: the transport.
        transport: its requests; a message beyond a bound is its failure.
    """
    async with streams as (read, write):
        yield _BoundedMessages(read, transport), write


class _BoundedMessages:
    """A `ReadStream` of the SDK that ends at a message beyond a bound."""

    def __init__(self, read: Any, transport: CheckedTransport) -> None:
        self._read = read
        self._transport = transport
        self._requests = 0

    @property
    def last_context(self) -> Any:
        return getattr(self._read, "last_context", None)

    async def receive(self) -> Any:
        return await self.__anext__()

    async def aclose(self) -> None:
        await self._read.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        item = await self._read.__anext__()
        try:
            self._check(item)
        except WebFailedError as exc:
            self._transport.fail(exc)
            raise StopAsyncIteration from exc
        return item

    async def __aenter__(self) -> Self:
        await self._read.__aenter__()
        return self

    async def __aexit__(self, *exc: object) -> bool | None:
        ended: bool | None = await self._read.__aexit__(*exc)
        return ended

    def _check(self, item: Any) -> None:
        message = item.message if isinstance(item, SessionMessage) else None
        host = self._transport.host
        if isinstance(message, JSONRPCRequest):
            self._requests += 1
            if self._requests > REQUESTS_MAX:
                raise WebFailedError(
                    WebCode.BAD_RESPONSE, f"{host} asks too much of its client (limit {REQUESTS_MAX} requests)"
                )
        if isinstance(message, JSONRPCResponse):
            parts = count_parts(message.result)
        elif isinstance(message, JSONRPCRequest | JSONRPCNotification):
            parts = count_parts(message.params)
        else:
            return
        if parts > PARTS_MAX:
            raise WebFailedError(
                WebCode.TOO_LARGE, f"the response of {host} has too many parts (limit {PARTS_MAX:,})"
            )


def count_parts(value: Any) -> int:
    """How many values the SDK checks one by one in a message; one above the limit is enough to know."""
    parts, waiting = 0, [value]
    while waiting and parts <= PARTS_MAX:
        each = waiting.pop()
        if isinstance(each, dict):
            inner = [one for key, one in each.items() if key not in _FREE]
        elif isinstance(each, list):
            inner = each
        else:
            continue
        parts += len(inner)
        waiting += inner
    return parts
