"""Where a service can end, a caller cancel or a store fail: a call has files and answer, or neither."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from proofbox.service.app.bootstrap import Service, build, running
from proofbox.service.artifacts.port import StoreAwayError
from proofbox.service.calls.port import CallKey
from proofbox.service.errors import CallAbandonedError, CallCancelledError, ServiceError
from tests.container.calling import Caller
from tests.container.struck import CALLS, assert_whole, queue_calls, settings_of, submit
from tests.support.kill_points import STRIKE, Side, Strike, install
from tests.support.store_check import assert_service_fits

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

POINTS_MAX = 60
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def points() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        install(patch)
        yield


def cancel(service: Service, call: Caller, why: ServiceError) -> None:
    running = service.calls.runner.running.get(CallKey(call.scope, "struck"))
    if running is not None:
        running.cancel(why)


def fail(_service: Service, _call: Caller) -> None:
    raise StoreAwayError("struck")


STRIKES: dict[str, Callable[[Service, Caller], None]] = {
    "cancelled": lambda service, call: cancel(service, call, CallCancelledError("struck")),
    "client lost": lambda service, call: cancel(service, call, CallAbandonedError("struck")),
    "store error": fail,
}


async def struck_at(service: Service, name: str, how: str, at: int, side: Side) -> tuple[bool, str]:
    """Whether a call has the point, and its status after it was struck there."""
    call = Caller(service)

    async def make() -> Strike:
        strike = Strike(at, side, lambda: STRIKES[how](service, call))
        STRIKE.set(strike)
        try:
            await (await submit(service, call, CALLS[name])).answer()
        except ServiceError:  # the client does not know whether it was accepted, and asks again
            await (await submit(service, call, CALLS[name])).answer()
        return strike

    strike = await asyncio.create_task(make())
    left = service.calls.runner.running.get(CallKey(call.scope, "struck"))
    if left is not None and left.task is not None:  # its answer waits for the store
        await asyncio.wait([left.task])
    return strike.was_reached, await assert_whole(service, call, CALLS[name])


DRAWN = {*((name, "cancelled") for name in CALLS), *(("write", how) for how in STRIKES), ("exec", "store error")}
"""What a run of all tests has time for."""


@pytest.mark.parametrize(
    ("name", "how"),
    [
        pytest.param(name, how, marks=[] if (name, how) in DRAWN else pytest.mark.slow)
        for name in CALLS
        for how in STRIKES
    ],
)
async def test_a_call_that_is_struck_at_any_point_has_files_and_answer_or_neither(
    service: Service, name: str, how: str
) -> None:
    states = set()
    for at in range(1, POINTS_MAX):
        for side in ("before", "after"):
            was_reached, state = await struck_at(service, name, how, at, side)
            states.add(state)
        if not was_reached:
            break
    assert not was_reached
    assert states >= {"done"}


@pytest_asyncio.fixture(loop_scope="session")
async def killed(tmp_path: Path) -> AsyncIterator[Callable[..., object]]:
    """Kills a service at a point of a call, and starts another one on its data."""
    data_dir = tmp_path / "data"

    async def kill(name: str, at: int, side: Side) -> tuple[bool, str]:
        conversation = f"{name}-{at}-{side}"
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.container.dying_service"),
            *(str(data_dir), conversation, name, str(at), side),
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=asyncio.subprocess.PIPE,
        )
        printed, _ = await child.communicate()
        was_reached = child.returncode == -signal.SIGKILL
        assert was_reached or int(printed) < at, printed
        service = build(settings_of(data_dir))
        async with running(service):
            state = await assert_whole(service, Caller(service, conversation), CALLS[name])
            await assert_service_fits(service)
        return was_reached, state

    yield kill


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "write" else pytest.mark.slow) for name in CALLS]
)
async def test_a_service_that_is_killed_at_any_point_of_a_call_left_files_and_answer_or_neither(
    killed: Callable[..., object], name: str
) -> None:
    states = []
    for at in range(1, POINTS_MAX):
        for side in ("before", "after"):
            was_reached, state = await killed(name, at, side)
            states.append(state)
        if not was_reached:
            break
    assert not was_reached
    assert (states[0], states[-1]) == ("unknown", "done")
    assert "failed" in states or "done" in states


async def answers_of(service: Service, call: Caller) -> list[str]:
    """What the waiting calls printed, once they have ended."""
    printed = []
    for name in "abc":
        async for _ in await call.follow(name):
            pass
        status = await service.calls.status(call.scope.principal, name, call.conversation)
        assert status.response is not None, status
        printed.append(status.response.output.stdout.strip())
    return printed


@pytest.mark.parametrize("is_killed", [False, True])
async def test_calls_that_wait_when_a_service_ends_run_at_the_next_start(tmp_path: Path, is_killed: bool) -> None:
    settings = settings_of(tmp_path / "data")
    if is_killed:
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.container.dying_service", str(tmp_path / "data"), "queue"),
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )
        assert await child.wait() == -signal.SIGKILL
    else:
        service = build(settings)
        async with running(service):
            await queue_calls(Caller(service, "queue"))
    service = build(settings)
    async with running(service):
        call = Caller(service, "queue")
        assert await answers_of(service, call) == ["a", "b", "c"]
        status = await service.calls.status(call.scope.principal, "runs", call.conversation)
        if is_killed:
            assert status.response is not None
            assert "its outcome is unknown" in status.response.report
        else:
            assert status.problem is not None
            assert (status.problem.retryable, "its outcome is unknown" in status.problem.detail) == (False, True)
        listed = await call("import os; print(sorted(os.listdir('.')))", explore=True)
        assert listed.output.stdout == "['a', 'b', 'c']\n"
