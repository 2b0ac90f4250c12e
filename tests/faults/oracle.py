"""What has to hold after any fault, once all is well again."""

import signal
import time
from typing import Any

from phases import WRITES
from rig import Rig, told
from service_process import request

WORKS_AGAIN_WITHIN_S = 60.0


def asked_again(rig: Rig, body: dict[str, Any]) -> str:
    """What the call's own id brings, asked as a client does who was told to come again."""
    deadline = time.monotonic() + WORKS_AGAIN_WITHIN_S
    while True:
        response = rig.service.post(body)
        if response.status_code == 200 or response.headers.get("idempotent-replayed") == "true":
            return told(response)
        if not response.json()["retryable"] or time.monotonic() > deadline:
            return told(response)
        time.sleep(0.2)


def stored(rig: Rig, body: dict[str, Any]) -> tuple[object, ...]:
    """What the service says of a call, whichever way it is asked."""
    status = rig.service.status(body)
    posted = rig.service.post(body)
    return status["status"], status["response"], status["problem"], posted.status_code, posted.content


def works_again(rig: Rig) -> str:
    """A call that nothing is wrong with, made until the service has recovered; it is never started again for it."""
    return asked_again(rig, request(WRITES))


def assert_one_answer_and_nothing_left(rig: Rig, body: dict[str, Any]) -> None:
    """One stored answer, the same to all who ask; at most one run; nothing left; and the service goes on."""
    kept = stored(rig, body)
    assert kept[0] in {"done", "failed", "cancelled"}
    assert stored(rig, body) == kept
    rig.kept.append((body, kept))
    assert rig.runs <= 1
    assert works_again(rig) == "200 ok"
    left = rig.nothing_left()
    assert left == {}, left
    rig.assert_fits()
    assert rig.unforeseen() == []


def assert_the_same_after_a_restart(rig: Rig) -> None:
    """Every call of every case has the answer that it had, although the service was killed."""
    assert rig.kept != []
    rig.service.signal(signal.SIGKILL)
    rig.service.wait()
    rig.assert_fits()
    rig.service.start()
    assert [stored(rig, body) for body, _ in rig.kept] == [told for _, told in rig.kept]
