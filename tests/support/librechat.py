"""LibreChat's side of its API: tokens of its users, and the loop that runs tools for a program."""

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNING_KEY = Ed25519PrivateKey.generate()
ROUNDS_MAX = 20


def user(name: str, tenant: str = "legacy") -> dict[str, str]:
    """Headers of a user."""
    now = int(time.time())
    claims = {
        "iss": "librechat",
        "aud": "codeapi",
        "sub": name,
        "iat": now,
        "nbf": now,
        "exp": now + 300,
        "jti": uuid.uuid4().hex,
        "tenant_id": tenant,
    }
    return {"Authorization": f"Bearer {jwt.encode(claims, SIGNING_KEY, 'EdDSA', {'kid': 'k'})}"}


async def execute(client: httpx.AsyncClient, code: str, lang: str = "py", **fields: Any) -> dict[str, Any]:
    """Run a program and return the answer."""
    headers = fields.pop("headers", None)
    response = await client.post("/exec", json={"lang": lang, "code": code, **fields}, headers=headers)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def put_file(
    client: httpx.AsyncClient, name: str, content: bytes, headers: dict[str, str] | None = None, **fields: str
) -> dict[str, Any]:
    """Upload a file and return the reference with which a run gets it."""
    response = await client.post("/upload", data=fields, files={"file": (name, content)}, headers=headers)
    assert response.status_code == 200, response.text
    answer = response.json()
    owner: dict[str, Any] = {"kind": fields.get("kind", "user"), "resource_id": fields.get("id", "u")}
    if "version" in fields:
        owner["version"] = int(fields["version"])
    return {
        "id": answer["files"][0]["fileId"],
        "name": name,
        "storage_session_id": answer["storage_session_id"],
        **owner,
    }


async def read_file(client: httpx.AsyncClient, file: dict[str, Any], **params: str) -> bytes:
    """Download a file that an answer names."""
    response = await client.get(f"/download/{file['storage_session_id']}/{file['id']}", params=params)
    assert response.status_code == 200, response.text
    return response.content


Tool = Callable[..., Any]


class ToolLoop:
    """Runs a program with tools as LibreChat does; records the calls of each round."""

    def __init__(self, client: httpx.AsyncClient, tools: Mapping[str, Tool], headers: dict[str, str] | None = None):
        self._client = client
        self._tools = tools
        self._headers = headers
        self.rounds: list[list[dict[str, Any]]] = []
        self.answers: list[dict[str, Any]] = []

    async def run(self, code: str, **fields: Any) -> dict[str, Any]:
        """Run to the end and return the last answer."""
        tools = [{"name": name, "description": "", **SCHEMAS.get(name, {})} for name in self._tools]
        answer = await self.post({"code": code, "tools": tools, **fields})
        while answer["status"] == "tool_call_required":
            assert len(self.rounds) < ROUNDS_MAX
            self.rounds.append(answer["tool_calls"])
            results = [self.result(call) for call in answer["tool_calls"]]
            answer = await self.post({"continuation_token": answer["continuation_token"], "tool_results": results})
        return answer

    def result(self, call: dict[str, Any]) -> dict[str, Any]:
        """Run one tool."""
        try:
            return {"call_id": call["id"], "result": self._tools[call["name"]](**call["input"]), "is_error": False}
        except ValueError as exc:
            return {"call_id": call["id"], "result": None, "is_error": True, "error_message": str(exc)}

    async def post(self, body: dict[str, Any]) -> dict[str, Any]:
        """Send one request."""
        response = await self._client.post("/exec/programmatic", json=body, headers=self._headers)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        self.answers.append(answer)
        return answer


SCHEMAS: dict[str, dict[str, Any]] = {
    "add": {
        "parameters": {
            "type": "object",
            "properties": {"note": {"type": "string"}, "a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        }
    }
}
"""Schemas of tools that have one."""
