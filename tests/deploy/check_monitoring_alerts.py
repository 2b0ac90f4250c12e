"""Each alert rule: quiet while all is well, firing after what it is for, judged by Prometheus's own tool.

Run by `make test-deploy`.
"""

from dataclasses import dataclass, field

import pytest
import yaml
from deploy_programs import ROOT, run_promtool

FILE = ROOT / "deploy/prometheus/alerts.yaml"
RULES = {rule["alert"]: rule for rule in yaml.safe_load(FILE.read_text())["groups"][0]["rules"]}
PROCESS = {"instance": "a:8080", "job": "proofbox"}
"""The labels that Prometheus gives to all that it reads of a process."""


@dataclass(frozen=True)
class Case:
    """What an alert is for. A sample is a minute; `1+0x10` is eleven times 1.

    Attributes:
        series: the samples of each metric of one process.
        quiet: minutes after which the alert does not fire.
        fires: minutes after which it does.
        labels: of the alert.
    """

    series: dict[str, str]
    quiet: tuple[int, ...]
    fires: tuple[int, ...]
    labels: dict[str, str] = field(default_factory=dict)


def falls(metric):
    """A metric that is 1 for ten minutes, then 0, of which the alert of a process fires after a minute."""
    return Case({metric: "1+0x10 0+0x20"}, (10, 11), (13, 20), PROCESS)


def slow(metric, labels, edge):
    """A histogram whose values are all above an edge from the 20th minute on."""
    return {
        f'{metric}_bucket{{{labels},le="{edge}"}}': "0+10x20 200+0x40",
        f'{metric}_bucket{{{labels},le="{4 * edge}"}}': "0+10x60",
        f'{metric}_bucket{{{labels},le="+Inf"}}': "0+10x60",
    }


CASES = {
    "ProofboxDown": falls("up"),
    "ProofboxEngineDown": falls("proofbox_engine_up"),
    "ProofboxOurFailures": Case(
        {
            'proofbox_calls_total{code="ok"}': "0+100x60",
            'proofbox_calls_total{code="timeout"}': "0+50x60",
            'proofbox_calls_total{code="store_failed"}': "0+0x20 0+3x40",
        },
        (20, 25),
        (40, 60),
    ),
    "ProofboxQueue": Case(
        {"proofbox_calls_queued": "3+0x60", **slow("proofbox_phase_seconds", 'phase="queue"', 5)},
        (20, 25),
        (40, 60),
        PROCESS,
    ),
    "ProofboxColdStarts": Case(
        {
            'proofbox_sandboxes_total{acquired="warm"}': "0+10x100",
            'proofbox_sandboxes_total{acquired="cold"}': "0+1x20 20+5x80",
        },
        (20, 40),
        (80, 100),
    ),
    "ProofboxStartsFail": Case(
        {"proofbox_pool_failed_starts_total": "0+0x10 0+2x10 20+0x20"}, (10, 40), (20,), PROCESS
    ),
    "ProofboxLeaks": Case({"proofbox_swept": "0+0x60 0+1x30"}, (60, 65), (80,), PROCESS),
    "ProofboxAuditNotSigned": falls("proofbox_audit_signing"),
    "ProofboxDiskFull": Case({"proofbox_data_free_bytes": "3e9+0x10 1e9+0x20"}, (10, 14), (20,), PROCESS),
    "ProofboxSlowDatabase": Case(
        slow("proofbox_store_seconds", 'operation="database_write"', 0.5), (20, 25), (40, 60)
    ),
    "ProofboxNatsDown": falls("proofbox_nats_up"),
    "ProofboxNoWorkers": Case({"proofbox_workers": "2+0x10 0+0x10 1+0x10"}, (10, 11, 25), (13, 20)),
    "ProofboxNoLeader": Case(
        {"proofbox_nats_up": "1+0x40", "proofbox_workers": "2+0x10 stale _x10 2+0x10"}, (10, 12, 25), (14, 20)
    ),
    "ProofboxQueueOld": Case({"proofbox_queue_oldest_seconds": "5+0x10 31+0x10 0+0x10"}, (10, 12, 25), (14, 20)),
    "ProofboxSetAside": Case({"proofbox_queue_set_aside": "0+0x10 1+0x10 0+0x10"}, (10, 25), (12, 20)),
    "ProofboxWorkersLost": Case(
        {
            'proofbox_queue_lost_total{program="begun"}': "0+0x10 1+0x30",
            'proofbox_queue_lost_total{program="waiting"}': "0+0x40",
        },
        (10, 25),
        (13, 18),
    ),
    "ProofboxCallsComeBack": Case(
        {
            'proofbox_queue_deliveries_total{delivery="first"}': "0+1x60",
            'proofbox_queue_deliveries_total{delivery="again"}': "0+4x20 80+9x40",
        },
        (20, 30),
        (55, 60),
    ),
}


def of_process(metric):
    """A metric with the labels of its process."""
    name, _, own = metric.partition("{")
    labels = [*(f'{label}="{value}"' for label, value in PROCESS.items()), *([own.rstrip("}")] if own else [])]
    return f"{name}{{{','.join(labels)}}}"


def expectation(name, case, minutes, *, fires):
    alert = {"exp_labels": case.labels, "exp_annotations": RULES[name]["annotations"]}
    return {"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": [alert] if fires else []}


def judge(folder, name, case):
    """The exit status and output of promtool for a case."""
    expected = [expectation(name, case, minutes, fires=False) for minutes in case.quiet]
    expected += [expectation(name, case, minutes, fires=True) for minutes in case.fires]
    series = [{"series": of_process(metric), "values": values} for metric, values in case.series.items()]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": expected}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [str(FILE)], "evaluation_interval": "15s", "tests": [test]}))
    return run_promtool("test", "rules", path)


def test_each_alert_has_a_case():
    assert CASES.keys() == RULES.keys()


@pytest.mark.parametrize("name", CASES)
def test_an_alert_fires_for_what_it_is_for_and_is_quiet_before(tmp_path, name):
    status, text = judge(tmp_path, name, CASES[name])
    assert status == 0, text


def test_an_alert_that_should_fire_and_does_not_is_found(tmp_path):
    status, text = judge(tmp_path, "ProofboxNoWorkers", Case({"proofbox_workers": "2+0x20"}, (10,), (20,)))
    assert status != 0
    assert "ProofboxNoWorkers" in text
