"""The stored state of programs that wait for tools of LibreChat: its bounds, its end and its age."""

import threading
from dataclasses import dataclass
from datetime import datetime

import pytest

from proofbox.service.facades.librechat.cancellations import Cancellations
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.ids import STATE_S_MAX
from proofbox.service.facades.librechat.replay_state import CALLS_MAX, ReplayStates
from proofbox.service.facades.librechat.requests import ToolResult
from proofbox.service.identity import Principal
from tests.http.conftest import PRINCIPAL

OTHER = Principal("acme", "sales", "registered", "u-18")
CALL = {"name": "weather", "input": {"city": "Rome"}}


@dataclass
class Clock:
    ahead_s: float = 0.0
    now: float = 0.0

    def __call__(self) -> float:
        return self.now + self.ahead_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def states(services, stores, clock):
    states = ReplayStates(services.artifacts, services.conversations, clock)
    state = await states.start(PRINCIPAL, {"code": "x"})
    [request] = await stores.artifacts.of_turn(state.scope, "turn_history")
    clock.now = datetime.fromisoformat(request.created).timestamp()
    return states


async def status_of(awaitable) -> int:
    with pytest.raises(RefusedError) as caught:
        await awaitable
    return caught.value.status


async def test_a_state_is_found_by_its_user_until_it_ends(states):
    state = await states.start(PRINCIPAL, {"code": "x"})
    found = await states.find(PRINCIPAL, state.execution)
    assert found.request == {"code": "x"}
    assert await status_of(states.find(OTHER, state.execution)) == 404
    await states.end(found)
    assert await status_of(states.find(PRINCIPAL, state.execution)) == 404


async def test_rounds_and_their_results_are_found_again(states):
    state = await states.start(PRINCIPAL, {"code": "x"})
    calls = await states.save_calls(state, [CALL, CALL])
    assert [call["id"] for call in calls] == ["call_001", "call_002"]
    await states.save_results(state, 1, [ToolResult(call_id="call_002"), ToolResult(call_id="call_001", result=1)])
    more = await states.save_calls(state, [CALL])
    assert [call["id"] for call in more] == ["call_003"]
    found = await states.find(PRINCIPAL, state.execution)
    assert found.rounds == 2
    assert found.token() == f"{state.execution}.2"
    assert await states.calls_of(found, 1) == calls
    [history] = found.history()
    assert history.physical_path == "turn_history/files/results-1.json"


async def test_a_state_expires_an_hour_after_its_last_round(states, clock):
    state = await states.start(PRINCIPAL, {"code": "x"})
    clock.ahead_s = STATE_S_MAX - 60
    assert (await states.find(PRINCIPAL, state.execution)).execution == state.execution
    clock.ahead_s = STATE_S_MAX + 60
    assert await status_of(states.find(PRINCIPAL, state.execution)) == 404


async def test_a_program_calls_no_more_tools_than_allowed(states):
    state = await states.start(PRINCIPAL, {"code": "x"})
    await states.save_calls(state, [CALL] * CALLS_MAX)
    assert await status_of(states.save_calls(state, [CALL])) == 413
    assert await status_of(states.find(PRINCIPAL, state.execution)) == 404


async def test_a_large_request_is_not_stored(states):
    assert await status_of(states.start(PRINCIPAL, {"code": "x" * 10_000_001})) == 413


class Observed(dict):
    """An object of JSON that notes in which threads it is made to text."""

    def __init__(self, *given):
        super().__init__(*given)
        self.threads = set()

    def items(self):
        self.threads.add(threading.get_ident())
        return super().items()


async def test_texts_of_states_are_not_made_on_the_event_loop(states):
    request, result = Observed({"code": "x"}), Observed({"a": 1})
    state = await states.start(PRINCIPAL, request)
    [call] = await states.save_calls(state, [CALL])
    await states.save_results(state, 1, [ToolResult.model_construct(call_id=call["id"], result=result)])
    for observed in (request, result):
        assert observed.threads
        assert threading.get_ident() not in observed.threads


async def test_an_execution_is_used_by_one_request_at_a_time(states):
    with states.in_use("A" * 21):
        with pytest.raises(RefusedError) as caught, states.in_use("A" * 21):
            pass
        assert caught.value.status == 409
    with states.in_use("A" * 21):
        pass


def test_an_early_cancellation_is_for_its_caller_and_a_short_time():
    clock = Clock()
    cancellations = Cancellations(clock)
    for owner, ahead_s, is_cancelled in ((PRINCIPAL, 0, True), (OTHER, 0, False), (PRINCIPAL, 600, False)):
        clock.ahead_s = 0
        assert cancellations.cancel(PRINCIPAL, "r" * 16) is None
        clock.ahead_s = ahead_s
        with cancellations.request(owner, "r" * 16) as cancellable:
            assert cancellable.is_cancelled is is_cancelled


def test_a_request_is_cancelled_by_its_caller_alone():
    cancellations = Cancellations()
    with cancellations.request(PRINCIPAL, "r" * 16) as cancellable:
        with pytest.raises(RefusedError):
            cancellations.cancel(OTHER, "r" * 16)
        assert cancellations.cancel(PRINCIPAL, "r" * 16) is cancellable
    with cancellations.request(PRINCIPAL, "r" * 16) as again:
        assert not again.is_cancelled
    with cancellations.request(PRINCIPAL, None) as unnamed:
        assert not unnamed.is_cancelled
