"""Packages that cannot be compiled now are used without bytecode: the call goes on."""

import pytest

from proofbox.service.calls.admission import Admission
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.identity import Principal
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.packages.bytecode import BytecodeCompiler
from proofbox.service.sandbox.limits import CallLimits, CallPolicy

MIB = 1024 * 1024
LIMITS = CallLimits(30, 1, 512 * MIB, 64, 64 * MIB, 1_000, 32 * MIB, 100, 8, MIB, 32 * MIB)
OWNER = "owner"


class FailingEngine:
    """An engine that starts no sandbox."""

    def __init__(self, error):
        self._error = error

    def open(self, spec):
        del spec
        raise self._error


class UnusedStore:
    """The staging folder of a job that leaves no file is not made."""

    staging = None


def compiler(admission, error=None, time_s=5.0):
    jobs = JobRunner(admission, None, FailingEngine(error), UnusedStore(), None)
    return BytecodeCompiler(jobs, CallPolicy(LIMITS, 60, 60, 0), Principal("t", "p", "u", "me"), time_s)


@pytest.mark.parametrize(
    "error", [EngineUnavailableError("the engine is away"), OSError("odd"), KeyError("defect")]
)
async def test_an_engine_that_fails_costs_the_bytecode_only(tmp_path, caplog, error):
    assert await compiler(Admission(running_max=1, queue_max=1), error).add_to(tmp_path, "3.13.5", OWNER, MIB) == 0
    assert "packages are used without bytecode" in caplog.text
    assert str(error) in caplog.text


async def test_a_service_without_a_free_place_costs_the_bytecode_only(tmp_path, caplog):
    admission = Admission(running_max=1, queue_max=1)
    with await admission.enter(float("inf"), lambda _: None, "other"):
        assert await compiler(admission, time_s=0.01).add_to(tmp_path, "3.13.5", OWNER, MIB) == 0
        assert "packages are used without bytecode" in caplog.text
    assert (admission.running, admission.queued) == (0, 0)
