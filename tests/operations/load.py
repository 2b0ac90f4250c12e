"""Clients that make calls without pause, and what they were answered."""

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import httpx

EXEC, WRITE = "exec_tools.execute_code_python", "react.write"
_RETRY_S, _LAST_S = 0.05, 90.0


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call that was answered.

    Attributes:
        request: its body.
        answer: its answer.
        content: the bytes of its file.
    """

    request: dict[str, Any]
    answer: dict[str, Any]
    content: bytes

    @property
    def file(self) -> str:
        """The route of its file."""
        name = self.request["tool_call_id"]
        path = f"fi:{self.request['turn_id']}.files/{name}.txt"
        return f"/v1/conversations/{self.request['conversation_id']}/artifacts/{path}"


def written_content(call_id: str) -> bytes:
    """The bytes of the file of a call: other ones for each."""
    return f"{call_id} {hashlib.sha256(call_id.encode()).hexdigest()}".encode()


def exec_request(call_id: str, conversation: str) -> dict[str, Any]:
    """A program that writes one promised file."""
    return {
        "tool_id": EXEC,
        "tool_call_id": call_id,
        "conversation_id": conversation,
        "turn_id": f"turn_{call_id}",
        "params": {"contract": [{"filename": f"{call_id}.txt", "description": "a text"}]},
        "code": f"open('files/{call_id}.txt', 'wb').write({written_content(call_id)!r})",
    }


def write_request(call_id: str, conversation: str) -> dict[str, Any]:
    """The same file by a tool without a container."""
    params = {
        "path": f"files/{call_id}.txt",
        "channel": "canvas",
        "content": written_content(call_id).decode(),
        "kind": "file",
    }
    return {
        "tool_id": WRITE,
        "tool_call_id": call_id,
        "conversation_id": conversation,
        "turn_id": f"turn_{call_id}",
        "params": params,
    }


@dataclass
class Load:
    """Clients until the end of a block; each asks again with the same id where an answer was lost.

    Attributes:
        url: of the service.
        make: makes the body of a call from its id and conversation.
        clients: how many.
        headers: of each request; may be replaced meanwhile.
        refusals: answers that are neither a success nor to be asked for again.
        repeated: how often a call was asked for again.
    """

    url: str
    make: Callable[[str, str], dict[str, Any]] = exec_request
    clients: int = 2
    headers: dict[str, str] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)
    repeated: int = 0
    _ended: list[EndedCall] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(self.clients)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def ended(self) -> list[EndedCall]:
        """The calls that have ended by now."""
        with self._changed:
            return list(self._ended)

    def wait_for(self, count: int) -> list[EndedCall]:
        """Wait until so many further calls have ended; all that have."""
        with self._changed:
            target = len(self._ended) + count
            enough = self._changed.wait_for(lambda: len(self._ended) >= target or self.refusals, _LAST_S)
            assert enough, "no call ends any more"
            assert not self.refusals, self.refusals
            return list(self._ended)

    def _run(self, number: int) -> None:
        made = 0
        while not self._stop.is_set():
            made += 1
            call_id = f"c{number}x{made}"
            request = self.make(call_id, f"load-{number}")
            answer = self._answer(request)
            with self._changed:
                if answer is None:
                    pass
                elif answer.status_code == 200 and answer.json()["ok"]:
                    self._ended.append(EndedCall(request, answer.json(), written_content(call_id)))
                else:
                    self.refusals.append(f"{call_id}: {answer.status_code} {answer.text[:500]}")
                self._changed.notify_all()
            if answer is None or self.refusals:
                return

    def _answer(self, request: dict[str, Any]) -> httpx.Response | None:
        """The answer to a call; None if the block ends before there is one."""
        while True:
            try:
                answer = httpx.post(
                    f"{self.url}/v1/tool-calls", json=request, headers={**self.headers}, timeout=_LAST_S
                )
                if answer.status_code != 503 or not answer.json().get("retryable"):
                    return answer
            except httpx.TransportError:
                pass
            self.repeated += 1
            if self._stop.wait(_RETRY_S):
                return None


def find_losses(client: httpx.Client, ended: list[EndedCall]) -> list[str]:
    """The calls that a service does not answer as before, with the same file; empty if it has them all."""
    lost = []
    for call in ended:
        call_id = call.request["tool_call_id"]
        again = client.post("/v1/tool-calls", json=call.request)
        if (again.status_code, again.headers.get("Idempotent-Replayed")) != (200, "true"):
            lost.append(f"{call_id}: {again.status_code} {again.text[:300]}")
        elif any(again.json().get(name) != value for name, value in call.answer.items()):
            lost.append(f"{call_id}: another answer: {json.dumps(again.json())[:300]}")
        file = client.get(call.file)
        if (file.status_code, file.content) != (200, call.content):
            lost.append(f"{call_id}: its file is {file.status_code} {file.content[:100]!r}")
    return lost
