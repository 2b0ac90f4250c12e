"""What `POST /v1/tool-calls` takes and refuses."""

from dataclasses import replace

import httpx

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.api.app import create_app
from proofbox.service.errors import QueueFullError
from tests.support.calls import MemoryCalls

ROUTE = "/v1/tool-calls"
JSON = {"Content-Type": "application/json"}


def asked(**headers):
    return {"headers": {**JSON, **headers}}


CASES = {
    "a call": asked(),
    "under a name of its own": asked(**{"Idempotency-Key": "x" * 255}),
    "a name that is empty": asked(**{"Idempotency-Key": ""}),
    "a name that is too long": asked(**{"Idempotency-Key": "x" * 256}),
    "a name that is no ASCII": asked(**{"Idempotency-Key": "schlüssel".encode()}),
    "a name with a tab": asked(**{"Idempotency-Key": "a\tb"}),
    "accepted": asked(Prefer="respond-async"),
    "accepted, among other wishes": asked(Prefer="wait=5, Respond-Async;x=1"),
    "other wishes": asked(Prefer="wait=5"),
    "no JSON": {"headers": JSON, "content": b"{"},
    "another media type": {"headers": {"Content-Type": "text/plain"}},
    "no field at all": {"headers": JSON, "content": b"{}"},
    "too large": {"headers": JSON, "content": b" " * 300_001},
    "a tool that there is not": {"headers": JSON, "fields": {"tool_id": "exec_tools.none"}},
    "a full queue": {"headers": JSON, "fields": {"tool_call_id": "full"}},
    "with a query": {"headers": JSON, "query": "?a=1"},
    "another method": {"headers": JSON, "method": "PUT"},
    "a slash too many": {"headers": JSON, "query": "/"},
}


async def answered(services, case, call_body):
    calls = MemoryCalls()
    calls.refused["full"] = QueueFullError("too many", retry_after_s=7)
    transport = httpx.ASGITransport(create_app(replace(services, calls=calls)), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://api.example.com") as client:
        body = ToolCallRequest.model_validate({**call_body, **case.get("fields", {})})
        said = []
        for _ in ("first", "again"):
            answer = await client.request(
                case.get("method", "POST"),
                f"{ROUTE}{case.get('query', '')}",
                content=case.get("content", body.model_dump_json(exclude_unset=True).encode()),
                headers={**case["headers"], "X-Request-ID": "r-1"},
            )
            said.append((answer.status_code, answer.headers.multi_items(), answer.content))
        return said


async def test_what_is_refused_and_what_is_taken(services, call_body):
    said = {name: await answered(services, case, call_body) for name, case in CASES.items()}
    refused = {name: first[0] for name, (first, _) in said.items() if first[0] >= 400}
    assert refused == {
        "a name that is empty": 422,
        "a name that is too long": 422,
        "a name that is no ASCII": 422,
        "a name with a tab": 422,
        "no JSON": 422,
        "another media type": 422,
        "no field at all": 422,
        "too large": 413,
        "a tool that there is not": 404,
        "a full queue": 429,
        "another method": 405,
        "a slash too many": 404,
    }
