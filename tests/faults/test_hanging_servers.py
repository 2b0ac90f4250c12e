"""Servers that answer late or not at all, and never refuse: nobody waits for ever, and nothing is done twice."""

import sys
import time
from collections.abc import Callable, Iterator

import pytest
from engine_sides import DockerSide
from ledger import Outcome, ledger
from oracle import asked_again, assert_one_answer_and_nothing_left, assert_the_same_after_a_restart
from phases import WRITES, finishing, hosting, rehosting
from rig import Rig
from rigs import Rigs

pytestmark = pytest.mark.docker

ANSWERS_WITHIN_S = 60.0
HANGS_S = 3.0
SLOW_BYTES_PER_S = 1_500


@pytest.fixture(scope="module")
def hasty_rigs(make_rig: Callable[..., Rig]) -> Iterator[Rigs]:
    """Its service gives a database up after seconds."""
    side = DockerSide()
    shared = Rigs(lambda: make_rig(side, database_timeout_s=3))
    yield shared
    shared.close()
    side.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest, hasty_rigs: Rigs) -> Iterator[Rig]:
    yield hasty_rigs.rig
    if getattr(request.node, "has_failed", False):
        sys.stdout.write("\n".join(hasty_rigs.rig.service.complaints))
        hasty_rigs.close()


def test_a_call_that_meets_a_database_that_hangs_is_told_to_come_again(rig: Rig) -> None:
    body = rig.body(WRITES)
    rig.database_gate.stall()
    call = rig.call(body)
    first = call.answer(ANSWERS_WITHIN_S)
    rig.database_gate.open()
    later = asked_again(rig, body)
    ledger.append(Outcome("database hangs", "claiming", first, later, rig.runs))
    assert (first, later) == ("503 store_failed", "200 ok")
    assert_one_answer_and_nothing_left(rig, body)


def test_an_answer_that_meets_a_database_that_hangs_is_stored_when_it_is_back(rig: Rig) -> None:
    with finishing(rig, {}) as held:
        rig.database_gate.stall()  # its commit does not get through
        held.release()
        first = held.call.answer(ANSWERS_WITHIN_S)
        rig.database_gate.open()
    later = asked_again(rig, held.call.body)
    ledger.append(Outcome("database hangs", "finishing", first, later, rig.runs))
    assert (first, later, rig.runs) == ("503 store_failed", "200 ok", 1)
    assert_one_answer_and_nothing_left(rig, held.call.body)


@pytest.mark.parametrize("phase", [rehosting, hosting])
@pytest.mark.parametrize("slow", [False, True], ids=["hangs for a moment", "slow"])
def test_an_object_store_that_takes_its_time_delays_a_call_and_no_more(
    rig: Rig, phase: Callable[..., object], slow: bool
) -> None:
    with phase(rig, {}) as held:  # type: ignore[attr-defined]
        if slow:
            rig.objects_gate.open()
            rig.objects_gate.slow_down(SLOW_BYTES_PER_S)
        else:
            time.sleep(HANGS_S)
            held.release()
        first = held.call.answer(ANSWERS_WITHIN_S)
    ledger.append(Outcome(f"object store {'slow' if slow else 'hangs'}", phase.__name__, first, first, rig.runs))
    assert (first, rig.runs) == ("200 ok", 1)
    assert_one_answer_and_nothing_left(rig, held.call.body)


def test_after_a_restart_these_calls_have_the_answers_they_had(rig: Rig) -> None:
    assert_the_same_after_a_restart(rig)
