"""Calls of react tools over the HTTP door, on real local stores."""

import json
from dataclasses import dataclass, field
from typing import Any

import httpx

MASKED = {"ts": "TS", "sha256": "SHA"}
HOSTED = {"hosted_uri": "URI", "rn": "RN", "key": "KEY"}


@dataclass
class Agent:
    """An agent in a conversation; each call has an id of its own, t1, t2 and so on."""

    client: httpx.AsyncClient
    conversation: str = "c1"
    turn: str = "turn_1"
    calls: int = field(default=0)

    async def __call__(self, tool_id: str, **more: Any) -> dict[str, Any]:
        """The answer of a call with some parameters."""
        return await self.send(tool_id, more)

    async def send(self, tool_id: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
        """The answer of a call, with further fields of the request."""
        self.calls += 1
        body = {
            "tool_id": tool_id,
            "tool_call_id": f"t{self.calls}",
            "conversation_id": self.conversation,
            "turn_id": self.turn,
            "params": params,
            **more,
        }
        answer = await self.client.post("/v1/tool-calls", json=body)
        assert answer.status_code == 200, answer.text
        said: dict[str, Any] = answer.json()
        return said

    async def stored(self, logical: str) -> bytes | None:
        """The bytes that the service hands out; None if there are none."""
        answer = await self.client.get(f"/v1/conversations/{self.conversation}/artifacts/{logical}")
        return answer.content if answer.status_code == 200 else None


def masked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Blocks without what differs from run to run; JSON texts as what they say."""
    return [_masked(block) for block in blocks]


def _masked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: {**MASKED, **HOSTED}.get(name) or (_json(inner) if name in {"text", "digest"} else _masked(inner))
            for name, inner in value.items()
        }
    return [_masked(item) for item in value] if isinstance(value, list) else value


def _json(text: str) -> Any:
    try:
        said = json.loads(text)
    except ValueError:
        return text
    return _masked(said) if isinstance(said, dict) else text


def notices(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The notices of a call, less their sentences."""
    said = [json.loads(block["text"]) for block in answer["blocks"] if block["type"] == "react.notice"]
    return [{name: value for name, value in notice.items() if name != "message"} for notice in said]


def meta(answer: dict[str, Any]) -> dict[str, Any]:
    """The digest of the first meta block."""
    said = [
        json.loads(b["text"]) for b in answer["blocks"] if b["path"].endswith(".result") and b["text"][0] == "{"
    ]
    return dict(next(digest for digest in said if "artifact_path" in digest))
