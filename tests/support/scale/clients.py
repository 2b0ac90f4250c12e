"""Agent loops that call a cluster: each sends a call to one API process, and to another one if that fails."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

from tests.support.scale.cluster import Cluster

TOOL = "exec_tools.execute_code_python"
FILE = "result.txt"
_TIMEOUT_S = 300.0
_PAUSE_S = 0.2
_PATIENCE_S = 240.0
_OK = 200


@dataclass
class SentCall:
    """A call of a client, and what became of it.

    Attributes:
        call: its id.
        body: the request.
        sent: when it was sent first, on the monotonic clock, in seconds.
        ended: when its client had the answer; None before.
        posts: how often it was sent.
        status: of the answer.
        answer: the response or the problem document.
    """

    call: str
    body: dict[str, Any]
    sent: float = 0.0
    ended: float | None = None
    posts: int = 0
    status: int = 0
    answer: dict[str, Any] = field(default_factory=dict)

    @property
    def is_ok(self) -> bool:
        """Whether it succeeded."""
        return self.status == _OK and bool(self.answer["ok"])

    @property
    def outcome(self) -> str:
        """``ok``, or the code of the error or problem."""
        if self.is_ok:
            return "ok"
        return str(self.answer["error"]["code"] if self.status == _OK else self.answer["code"])

    @property
    def message(self) -> str:
        """The sentence of the error or problem; empty of a success."""
        if self.is_ok:
            return ""
        return str(self.answer["error"]["message"] if self.status == _OK else self.answer["detail"])

    @property
    def is_unknown(self) -> bool:
        """Whether the answer says that the outcome is unknown."""
        return "unknown" in self.message

    @property
    def parameters(self) -> dict[str, str]:
        """The query of a request for it."""
        return {"conversation_id": self.body["conversation_id"]}


class Clients:
    """Connections to the API processes of a cluster, or to some of them; an asynchronous context manager."""

    def __init__(self, cluster: Cluster, *hosts: str) -> None:
        self.cluster = cluster
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        names = hosts or tuple(cluster.apis)
        self._clients = {
            name: httpx.AsyncClient(base_url=cluster.apis[name].url, timeout=_TIMEOUT_S, limits=limits)
            for name in names
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for client in self._clients.values():
            await client.aclose()

    def build_call(self, name: str, sleep_s: float) -> SentCall:
        """A call whose program reports to the counter of the cluster, and promises a file."""
        counter = self.cluster.counter
        return SentCall(name, build_body(name, counter.build_program(name, sleep_s), counter.endpoint))

    async def send(self, sent: SentCall, first: int = 0) -> SentCall:
        """Send a call until it has its answer: first to one API process, then to the others in turn.

        Raises:
            TimeoutError: it has none in time.
        """
        sent.sent = time.monotonic()
        hosts = list(self._clients)
        while True:
            client = self._clients[hosts[(first + sent.posts) % len(hosts)]]
            sent.posts += 1
            try:
                response = await client.post("/v1/tool-calls", json=sent.body)
            except httpx.TransportError:
                response = None
            if response is not None and _is_answer(response):
                sent.ended = time.monotonic()
                sent.status, sent.answer = response.status_code, response.json()
                return sent
            if time.monotonic() - sent.sent > _PATIENCE_S:
                seen = "no response" if response is None else response.text[:500]
                raise TimeoutError(f"call {sent.call} has no answer after {_PATIENCE_S:g} s: {seen}")
            await asyncio.sleep(_PAUSE_S)

    async def send_all(self, calls: list[SentCall]) -> None:
        """Send calls at the same time, to the API processes in turn."""
        async with asyncio.TaskGroup() as group:
            for number, sent in enumerate(calls):
                group.create_task(self.send(sent, number))

    async def read_status(self, host: str, sent: SentCall) -> dict[str, Any]:
        """What an API process answers about a call."""
        response = await self._clients[host].get(f"/v1/tool-calls/{sent.call}", params=sent.parameters)
        assert response.status_code == _OK, response.text
        status: dict[str, Any] = response.json()
        return status

    async def repeat(self, host: str, sent: SentCall) -> httpx.Response:
        """Send a call again that has ended."""
        return await self._clients[host].post("/v1/tool-calls", json=sent.body)

    async def read_file(self, host: str, sent: SentCall) -> bytes:
        """The stored file of a call, by its path."""
        path = f"/v1/conversations/{sent.body['conversation_id']}/artifacts/fi:turn_1.files/{FILE}"
        response = await self._clients[host].get(path)
        assert response.status_code == _OK, response.text
        return response.content


def build_body(name: str, code: str, *hosts: str) -> dict[str, Any]:
    """A request that runs a program, in a conversation of its own."""
    body: dict[str, Any] = {
        "tool_id": TOOL,
        "tool_call_id": name,
        "conversation_id": f"conversation-{name}",
        "turn_id": "turn_1",
        "params": {"contract": [{"filename": FILE, "description": "the id of the call"}]},
        "code": code,
    }
    return body | ({"network": {"allow": list(hosts)}} if hosts else {})


def _is_answer(response: httpx.Response) -> bool:
    """Whether a response is the end of a call, not a request to come again."""
    if response.status_code == _OK or response.headers.get("idempotent-replayed") == "true":
        return True
    return not response.json().get("retryable", False)
