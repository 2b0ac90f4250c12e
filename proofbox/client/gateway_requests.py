"""What all requests of agents, runs and spaces have in common."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from proofbox.client.api import Api
from proofbox.client.errors import ArgumentError
from proofbox.client.exchange import Deliver, Plan, Reply, Request

M = TypeVar("M", bound=BaseModel)
JSON = {"Content-Type": "application/json"}


class GatewayRequests:
    """Plans of requests; a subclass has those of one kind of thing.

    Args:
        api: the service.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    def _ask(
        self,
        model: type[M],
        method: str,
        where: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Plan[M]:
        return self._api.parse(model, (yield from self._request(method, where, body, headers)))

    def _request(
        self,
        method: str,
        where: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        held_s: float = 0,
    ) -> Plan[Reply]:
        """Send a request, which the service holds for so long by its own will."""
        content = None if body is None else content_of(body)
        given = {**(JSON if body is not None else {}), **(headers or {})}
        return self._api.request(Request(method, where, given, content, self._api.timeout_s + held_s))

    def _deliver_pages(self, model: type[M], build_target: Callable[[str | None], str]) -> Plan[None]:
        """Deliver each item of a list; ``build_target`` gets the ``next`` of the page before."""
        before: str | None = None
        while True:
            page: Any = yield from self._ask(model, "GET", build_target(before))
            yield from _deliver(page.items)
            if (before := page.next) is None:
                return


def content_of(body: Mapping[str, Any]) -> bytes:
    """A body as JSON.

    Raises:
        ArgumentError: JSON cannot carry it.
    """
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as exc:
        raise ArgumentError("body", f"{exc}; give what JSON can carry") from None


def key_header(idempotency_key: str | None) -> dict[str, str]:
    """A key for each request that makes something: sent again after a lost connection, it makes one."""
    return {"Idempotency-Key": idempotency_key or uuid.uuid4().hex}


def _deliver(items: Sequence[Any]) -> Iterator[Deliver]:
    for item in items:
        yield Deliver(item)
