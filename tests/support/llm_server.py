"""A real HTTP server that answers as OpenAI's API does, from a script, and keeps what it was asked."""

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.recording_server import Recorded
from tests.support.web_server import response

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
KEY = "sk-t3st-+/=0123456789"
CHAT = "small-1"
IMAGES = "picture-1"


class Held:
    """An answer that never comes.

    Attributes:
        arrived: set when the request is there.
        closed: set when the client has closed the connection.
    """

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.closed = asyncio.Event()


@dataclass
class LlmServer:
    """A server that runs.

    Attributes:
        port: where it listens.
        answers: what it answers, one after another, the last one for ever.
        requests: what came.
    """

    port: int = 0
    answers: list[bytes | Held] = field(default_factory=list)
    requests: list[Recorded] = field(default_factory=list)

    def settings(self, **more: Any) -> dict[str, Any]:
        """``llm_endpoints`` with this server as ``default``; its key is the variable ``LLM_KEY``."""
        url = f"http://127.0.0.1:{self.port}/v1/"
        return {"default": {"url": url, "key": "LLM_KEY", "models": [CHAT, IMAGES], **more}}

    def bodies(self) -> list[Any]:
        """The bodies that came, as JSON."""
        return [json.loads(request.body) for request in self.requests]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            self.requests.append(Recorded(head, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, Held):
                answer.arrived.set()
                await reader.read()
                answer.closed.set()
            else:
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


def json_response(value: Any, status: str = "200 OK") -> bytes:
    return response(json.dumps(value).encode(), "application/json", status)


def says(text: str, *, reason: str = "stop", tokens: tuple[int, int] | None = (10, 5)) -> bytes:
    """A chat completion with a text."""
    return _completion({"role": "assistant", "content": text}, reason, tokens)


def asks(*calls: tuple[str, Any], text: str | None = None, tokens: tuple[int, int] | None = (10, 5)) -> bytes:
    """A chat completion that asks for tools; arguments that are a text are sent as they are."""
    listed = [
        {
            "id": f"id-{number}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for number, (name, given) in enumerate(calls)
    ]
    return _completion({"role": "assistant", "content": text, "tool_calls": listed}, "tool_calls", tokens)


def paints(content: bytes, revised: str | None = None) -> bytes:
    """An answer with a picture in it."""
    more = {} if revised is None else {"revised_prompt": revised}
    return json_response({"created": 1, "data": [{"b64_json": base64.b64encode(content).decode(), **more}]})


def points(url: str) -> bytes:
    """An answer that says where a picture is."""
    return json_response({"created": 1, "data": [{"url": url}]})


def _completion(message: dict[str, Any], reason: str, tokens: Sequence[int] | None) -> bytes:
    value: dict[str, Any] = {
        "id": "c1",
        "object": "chat.completion",
        "model": CHAT,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
    }
    if tokens is not None:
        prompt, completion = tokens
        value["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }
    return json_response(value)


@asynccontextmanager
async def llm_server() -> AsyncIterator[LlmServer]:
    server = LlmServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server
