"""What a cancelled task leaves: the call of an asynchronous method ends too."""

import asyncio

import anyio
import pytest

from proofbox.client import AsyncClient
from tests.support.client_answers import accepted, refusal, started, stream
from tests.support.scripted_service import Scripted
from tests.support.waiting import until

RUNNING = [accepted(), stream(started(), is_silent=True)]
SENT = ["POST /v1/tool-calls", "GET /v1/tool-calls/t1/events?conversation_id=c1"]
CANCELLATION = "DELETE /v1/tool-calls/t1?conversation_id=c1"


async def cancel_when_started(url: str, method: str, *args: str) -> None:
    """Cancel the method at the first event of its call."""
    has_started = asyncio.Event()
    async with AsyncClient(url, retries=0) as client:
        run = getattr(client, method)
        task = asyncio.create_task(
            run(*args, on_event=lambda _: has_started.set(), conversation="c1", call_id="t1")
        )
        await has_started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize(("method", "args"), [("run", ("1",)), ("render", ("# A", "a.pdf"))])
def test_a_cancelled_run_cancels_its_call(service, method, args) -> None:
    service.answers(*RUNNING, accepted("cancelled"))
    asyncio.run(cancel_when_started(service.url, method, *args))
    assert service.lines == [*SENT, CANCELLATION]


@pytest.mark.parametrize(
    "answered",
    [refusal("unknown_call", 404), Scripted(request_cut_at=0), Scripted(200, b"<html>")],
    ids=["unknown", "lost", "page"],
)
def test_a_cancellation_that_fails_does_not_replace_the_one_of_the_task(service, answered) -> None:
    service.answers(*RUNNING, answered)
    asyncio.run(cancel_when_started(service.url, "run", "1"))
    assert service.lines == [*SENT, CANCELLATION]


def test_a_cancelled_run_in_a_scope_that_cancels_each_await_cancels_its_call(service) -> None:
    service.answers(*RUNNING, accepted("cancelled"))

    async def main() -> None:
        async with AsyncClient(service.url, retries=0) as client:
            with anyio.CancelScope() as scope:
                await client.run("1", on_event=lambda _: scope.cancel(), conversation="c1", call_id="t1")
            assert scope.cancelled_caught
            await until(lambda: len(service.lines) > len(SENT))  # the request is on its way

    asyncio.run(main())
    assert service.lines == [*SENT, CANCELLATION]


def test_a_cancelled_run_without_events_is_ended_by_the_service(service) -> None:
    service.answers(Scripted(is_silent=True))

    async def main() -> None:
        async with AsyncClient(service.url) as client:
            task = asyncio.create_task(client.run("1"))
            await until(lambda: service.requests)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())
    assert service.lines == SENT[:1]
