"""Each fault in each phase of a call: one stored answer, at most one run, nothing left, and service goes on."""

import signal
import time

import pytest
from ledger import Outcome, ledger
from phases import PHASES, WRITES
from rig import Rig, told
from service_process import request
from strikes import FAULTS

pytestmark = pytest.mark.docker

ANSWERS_WITHIN_S = 60.0
WORKS_AGAIN_WITHIN_S = 20.0


def asked_again(rig: Rig, body: dict) -> str:
    """What the call's own id brings, asked as a client does who was told to come again."""
    deadline = time.monotonic() + WORKS_AGAIN_WITHIN_S
    while True:
        response = rig.service.post(body)
        answer = response.json()
        if response.headers.get("idempotent-replayed") == "true" or response.status_code == 200:
            return told(response)
        if not answer["retryable"] or time.monotonic() > deadline:
            return told(response)
        time.sleep(0.2)


def stored(rig: Rig, body: dict) -> tuple:
    status = rig.service.status(body)
    posted = rig.service.post(body)
    return status["status"], status["response"], status["problem"], posted.status_code, posted.content


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("fault", FAULTS)
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
    body = held.call.body
    later = asked_again(rig, body)
    ledger.append(Outcome(fault, phase, first, later, rig.runs))
    kept = stored(rig, body)
    assert kept[0] in {"done", "failed", "cancelled"}
    assert stored(rig, body) == kept
    assert rig.runs <= 1
    assert told(rig.service.post(request(WRITES))) == "200 ok"
    assert rig.nothing_left() == {}
    rig.service.signal(signal.SIGKILL)
    rig.service.wait()
    rig.service.start()
    assert stored(rig, body) == kept
