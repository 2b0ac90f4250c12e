"""Gotenberg's API of the session's service."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
import pytest_asyncio

from proofbox.service.app.bootstrap import Service
from proofbox.service.app.serving import application

Post = Callable[..., Awaitable[httpx.Response]]


@pytest_asyncio.fixture(loop_scope="session")
async def gotenberg(service: Service) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost/gotenberg", timeout=120) as client:
        yield client


@pytest.fixture
def post(gotenberg: httpx.AsyncClient) -> Post:
    """Posts files and fields below /forms; the answer has to have the given status."""

    async def send(
        path: str,
        *files: tuple[str, bytes],
        status: int = 200,
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> httpx.Response:
        parts = [("files", file) for file in files]
        if "embeds" in fields:
            parts += [("embeds", file) for file in fields.pop("embeds")]
        answer = await gotenberg.post(f"/forms/{path}", files=parts, data=fields, headers=headers)
        assert answer.status_code == status, answer.text[:2000] if status == 200 else answer.status_code
        return answer

    return send
