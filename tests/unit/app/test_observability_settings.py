"""The page about metrics names what is exported, no more and no less; its alerts ask for what there is."""

import json
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from proofbox.service.app.bootstrap import build
from proofbox.service.app.settings import Settings

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "observability.md").read_text()
ALERTS = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "proofbox.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """What the service exports, by the names that are in the text."""
    many = {"dispatch": "nats", "nats_urls": "nats://127.0.0.1:1", "database_url": "postgresql://a:b@127.0.0.1:1/c"}
    found = {}
    for settings in (
        {},
        many | {"s3_bucket": "unused", "keys_dir": tmp_path_factory.mktemp("keys")},
    ):  # nothing is connected
        service = build(Settings(data_dir=tmp_path_factory.mktemp("data"), **settings))
        for family in text_string_to_metric_families(service.meter.text().decode()):
            found[family.name + ("_total" if family.type == "counter" else "")] = family
    return found


def test_the_page_names_every_metric_and_no_other(families):
    named = re.findall(r"^\| `(proofbox_\w+)` \|", PAGE, re.MULTILINE)
    assert sorted(named) == sorted(name for name in families if name.startswith("proofbox_"))


def asked_metrics(expressions):
    """The metrics of expressions, by the names that the service exports."""
    named = {name for expression in expressions for name in re.findall(r"(?:proofbox|process)_\w+", expression)}
    return {name.removesuffix("_bucket") for name in named}


def test_alerts_ask_for_metrics_that_there_are(families):
    assert asked_metrics(alert["expr"] for alert in ALERTS) - set(families) == set()
    assert len(ALERTS) == len({alert["alert"] for alert in ALERTS}) > 5


def test_alerts_and_dashboard_ask_for_codes_that_there_are():
    errors = (ROOT / "docs" / "errors.md").read_text()
    asked = {code for text in [*EXPRESSIONS, *(alert["expr"] for alert in ALERTS)] for code in _codes(text)}
    assert len(asked) >= 5
    assert [code for code in asked if f"`{code}`" not in errors] == []


def _codes(expression):
    return [code for codes in re.findall(r'code=~"([\w|]+)"', expression) for code in codes.split("|")]


def test_the_dashboard_asks_for_metrics_and_labels_that_there_are(families):
    assert len(EXPRESSIONS) > 20
    assert asked_metrics(EXPRESSIONS) - set(families) == set()
    labels = dict(re.findall(r"^\| `(proofbox_\w+)` \| ([^|]*) \|", PAGE, re.MULTILINE))
    for expression in EXPRESSIONS:
        by = [label for labels in re.findall(r"by \(([\w, ]+)\)", expression) for label in labels.split(", ")]
        known = " ".join(labels.get(name, "") for name in asked_metrics([expression]))
        assert [label for label in by if label != "le" and f"`{label}`" not in known] == [], expression


def test_the_panels_of_the_dashboard_do_not_overlap():
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [
        (place["x"] + x, place["y"] + y) for place in places for x in range(place["w"]) for y in range(place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(places)
