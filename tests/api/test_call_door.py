"""The short way to `make_tool_call` answers as the framework's router would, in a fraction of the memory."""

import asyncio
import gc
import tracemalloc
from dataclasses import replace

import httpx
import pytest

from contracts.tool_calls import ToolCallRequest
from service.api.app import create_app
from service.api.call_door import CallDoor
from service.errors import QueueFullError
from tests.fakes.calls import MemoryCalls

ROUTE = "/v1/tool-calls"
JSON = {"Content-Type": "application/json"}
WAITING = 40
SPARED_BYTES = 8_000  # of what the router's way takes; 11,200 with Python 3.11


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


def by_the_router(app):
    """The application without the short way."""
    kept = [each for each in app.user_middleware if each.cls is not CallDoor]
    assert len(kept) == len(app.user_middleware) - 1
    app.user_middleware = kept
    return app


async def answered(doors, way, case, call_body):
    calls = MemoryCalls()
    calls.refused["full"] = QueueFullError("too many", retry_after_s=7)
    transport = httpx.ASGITransport(way(create_app(replace(doors, calls=calls))), raise_app_exceptions=False)
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


@pytest.mark.parametrize("name", CASES)
async def test_both_ways_answer_the_same(doors, call_body, name):
    short = await answered(doors, lambda app: app, CASES[name], call_body)
    long = await answered(doors, by_the_router, CASES[name], call_body)
    assert short == long


async def test_what_is_refused_and_what_is_taken(doors, call_body):
    said = {name: await answered(doors, lambda app: app, case, call_body) for name, case in CASES.items()}
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


async def held_bytes(doors, way, call_body):
    """What one request takes while its call goes on, in bytes, its client included."""
    calls = MemoryCalls()
    app = way(create_app(replace(doors, calls=calls)))
    transport = httpx.ASGITransport(app)

    async def waiting(number):
        body = ToolCallRequest.model_validate({**call_body, "tool_call_id": f"held-{number}"})
        request = httpx.Request(
            "POST", f"http://api.example.com{ROUTE}", headers=JSON, content=body.model_dump_json(exclude_unset=True)
        )
        return await transport.handle_async_request(request)

    async def some(first, count):
        tasks = [asyncio.create_task(waiting(number)) for number in range(first, first + count)]
        for number in range(first, first + count):
            await calls.made(f"held-{number}")
        await asyncio.sleep(0.1)  # from the call to waiting for it
        return tasks

    tasks = await some(0, 5)
    gc.collect()
    tracemalloc.start()
    try:
        tasks += await some(5, WAITING)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return held / WAITING


async def test_a_request_that_waits_holds_little(doors, call_body):
    short, long = [await held_bytes(doors, way, call_body) for way in (lambda app: app, by_the_router)]
    assert short < long - SPARED_BYTES
