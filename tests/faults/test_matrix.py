"""Each fault in each phase of a call: one stored answer, at most one run, nothing left, and the service goes on."""

import pytest
from extent import pairs
from ledger import Outcome, ledger
from oracle import asked_again, assert_one_answer_and_nothing_left, assert_the_same_after_a_restart
from phases import PHASES
from rig import Rig
from strikes import FAULTS

pytestmark = pytest.mark.docker

ANSWERS_WITHIN_S = 60.0
CHOSEN = [
    ("service killed", "starting"),
    ("service killed", "hosting"),
    ("service told to stop", "queued"),
    ("engine away", "starting"),
    ("engine away", "running"),
    ("database away", "finishing"),
    ("database restarted", "claiming"),
    ("object store away", "hosting"),
    ("client gone", "acquiring"),
    ("cancelled", "rehosting"),
]


@pytest.mark.parametrize(("fault", "phase"), pairs(FAULTS, PHASES, CHOSEN))
def test_a_fault_in_any_phase(rig: Rig, fault: str, phase: str) -> None:
    struck = FAULTS[fault]
    with PHASES[phase](rig, {}) as held:
        rig.remember_containers()
        struck.strike(rig, held)
        if struck.mended_first:
            struck.mend(rig)
        held.release()
        first = held.call.answer(ANSWERS_WITHIN_S)
    if not struck.mended_first:
        struck.mend(rig)
    later = asked_again(rig, held.call.body)
    if fault == "client gone":  # the call goes on, and the same body gets its answer
        assert later.startswith("200 ")
    ledger.append(Outcome(fault, phase, first, later, rig.runs))
    assert_one_answer_and_nothing_left(rig, held.call.body)


def test_after_a_restart_the_calls_of_all_cases_have_the_answers_they_had(rig: Rig) -> None:
    assert_the_same_after_a_restart(rig)
