"""Alert rules, the configuration of Prometheus and the expressions of the dashboard: read by Prometheus's own tool.

Run by `make test-deploy`.
"""

import json

import pytest
import yaml
from deploy_programs import ROOT, run_promtool

PROMETHEUS = ROOT / "deploy/prometheus"
CONFIGURATIONS = ("prometheus.yaml", "prometheus.workers.yaml")
DASHBOARD = json.loads((ROOT / "deploy/grafana/proofbox.json").read_text())


def test_the_alert_rules_are_rules():
    assert run_promtool("check", "rules", PROMETHEUS / "alerts.yaml")[0] == 0


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_the_configuration_is_one(name):
    status, text = run_promtool("check", "config", "--syntax-only", PROMETHEUS / name)
    assert status == 0, text


def test_the_configurations_differ_in_the_processes_alone():
    one, many = (yaml.safe_load((PROMETHEUS / name).read_text()) for name in CONFIGURATIONS)
    workers = many["scrape_configs"][0].pop("dns_sd_configs")
    assert one == many
    assert [config["names"] for config in workers] == [["worker"]]


def rules_of(expressions, path):
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(expressions)]
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    return path


def test_every_expression_of_the_dashboard_can_be_asked(tmp_path):
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    filled = [text.replace("$__rate_interval", "5m").replace("$instance", ".*") for text in expressions]
    status, text = run_promtool("check", "rules", rules_of(filled, tmp_path / "rules.yaml"))
    assert status == 0, text
    assert f"{len(expressions)} rules found" in text


def test_an_expression_that_cannot_be_asked_is_found(tmp_path):
    assert run_promtool("check", "rules", rules_of(["sum by (a) rate(b[5m])"], tmp_path / "rules.yaml"))[0] != 0
