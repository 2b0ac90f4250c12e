"""The page about metrics names what is exported, no more and no less; its alerts ask for what there is."""

import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from proofbox.service.app.bootstrap import build
from proofbox.service.app.settings import Settings

PAGE = (Path(__file__).parents[3] / "docs" / "observability.md").read_text()


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """What the service exports, by the names that are in the text."""
    service = build(Settings(data_dir=tmp_path_factory.mktemp("data")))
    found = text_string_to_metric_families(service.meter.text().decode())
    return {family.name + ("_total" if family.type == "counter" else ""): family for family in found}


def test_the_page_names_every_metric_and_no_other(families):
    named = re.findall(r"^\| `(proofbox_\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(named) == sorted(name for name in families if name.startswith("proofbox_"))


def test_alerts_ask_for_metrics_that_there_are(families):
    [rules] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    alerts = yaml.safe_load(rules)["groups"][0]["rules"]
    asked = {name for alert in alerts for name in re.findall(r"proofbox_\w+", alert["expr"])}
    assert {name.removesuffix("_bucket") for name in asked} - set(families) == set()
    assert len(alerts) == len({alert["alert"] for alert in alerts}) > 5


def test_alerts_ask_for_codes_that_there_are():
    errors = (Path(__file__).parents[3] / "docs" / "errors.md").read_text()
    [codes] = re.findall(r'code=~"([\w|]+)"', PAGE)
    assert [code for code in codes.split("|") if f"`{code}`" not in errors] == []
