"""What is counted of a call."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.tool_call_response import ArtifactResult, Rehosted, SandboxInfo, Timings, ToolCallResponse
from proofbox.service.observability.metrics_port import EndedCall, Reading
from proofbox.service.observability.prometheus import PrometheusMeter

TOOL = "exec_tools.execute_code_python"


def artifact(verdict: VerdictCode) -> ArtifactResult:
    return ArtifactResult(
        logical_path="fi:turn_1.files/a.csv",
        physical_path="turn_1/files/a.csv",
        mime="text/csv",
        visibility="external",
        verdict=verdict,
    )


def response() -> ToolCallResponse:
    line = Rehosted(
        asked="turn_0/files/b", source="store", physical_path="turn_0/files/b", sha256="", size_bytes=7, ms=1
    )
    return ToolCallResponse(
        ok=False,
        report="",
        blocks=[],
        artifacts=[artifact(VerdictCode.PRODUCED), artifact(VerdictCode.MISSING_FILE)],
        rehosted=[line, line],
        timings_ms=Timings(queue=2, run=40, total=60),
        sandbox=SandboxInfo(engine="docker", runtime="runc", image_digest="", acquired="warm"),
    )


@pytest.fixture
def samples():
    """All samples of a meter: name and labels with their value."""

    def read(meter: PrometheusMeter) -> dict[tuple[str, ...], float]:
        return {
            (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
            for family in text_string_to_metric_families(meter.text().decode())
            for sample in family.samples
        }

    return read


def test_an_answer_counts_its_verdicts_phases_and_sandbox(samples):
    meter = PrometheusMeter({})
    meter.call_ended(EndedCall(TOOL, "execution_failed", 0.06, response()))
    found = samples(meter)
    assert found["proofbox_calls_total", "execution_failed", TOOL] == 1
    assert found["proofbox_call_seconds_sum", TOOL] == 0.06
    assert found["proofbox_verdicts_total", "produced"] == 1
    assert found["proofbox_verdicts_total", "missing_file"] == 1
    assert found["proofbox_rehosted_bytes_total", "store"] == 14
    assert found["proofbox_sandboxes_total", "warm"] == 1
    assert found["proofbox_phase_seconds_sum", "run"] == pytest.approx(0.04)
    assert ("proofbox_phase_seconds_sum", "total") not in found


def test_a_problem_counts_by_its_code_alone(samples):
    meter = PrometheusMeter({})
    meter.call_ended(EndedCall(TOOL, "queue_timeout", 1.5, None))
    found = samples(meter)
    assert found["proofbox_calls_total", "queue_timeout", TOOL] == 1
    assert [name for name in found if name[0] == "proofbox_verdicts_total"] == []


def test_a_gauge_is_looked_at_when_it_is_asked_for(samples):
    waiting = [3]
    meter = PrometheusMeter({"calls_queued": ("Waiting.", lambda: waiting[0])})
    assert samples(meter)["proofbox_calls_queued",] == 3
    waiting[0] = 5
    assert samples(meter)["proofbox_calls_queued",] == 5


def test_what_others_count_is_looked_at_when_it_is_asked_for(samples):
    waiting = {("bare",): 2.0, ("data",): 0.0}
    meter = PrometheusMeter(
        {},
        readings=lambda: [
            Reading("pool_waiting", "Waiting.", ("flavour",), waiting),
            Reading("pool_failed_starts", "Failed.", (), {(): 3.0}, only_grows=True),
        ],
    )
    assert samples(meter)["proofbox_pool_waiting", "bare"] == 2
    waiting["bare",] = 7.0
    found = samples(meter)
    assert (found["proofbox_pool_waiting", "bare"], found["proofbox_pool_failed_starts_total",]) == (7, 3)


def test_packages_are_counted_by_what_became_of_them(samples):
    meter = PrometheusMeter({})
    meter.packages_found()
    meter.packages_installed(ok=True, seconds=3.0)
    meter.packages_installed(ok=False, seconds=1.0)
    found = samples(meter)
    assert [found["proofbox_packages_total", result] for result in ("found", "installed", "failed")] == [1, 1, 1]
    assert [found["proofbox_package_install_seconds_sum", result] for result in ("installed", "failed")] == [3, 1]
