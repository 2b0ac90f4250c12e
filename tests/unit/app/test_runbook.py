"""The runbook: each alert leads to a section that describes it, and no section is of an alert that is gone."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
RULES = yaml.safe_load((ROOT / "deploy" / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
PAGE = (ROOT / "docs" / "operations.md").read_text()
SITE = "/docs/site/"


def sections():
    """The sections of alerts, by their headings."""
    part = re.search(r"^## Alerts\n(.*?)^## ", PAGE, re.DOTALL | re.MULTILINE)[1]
    pieces = re.split(r"^### (.+)\n", part, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[::2], pieces[1::2], strict=True))


def test_each_alert_has_a_section_and_each_section_an_alert():
    assert sorted(sections()) == sorted(rule["alert"] for rule in RULES)


def test_the_url_of_an_alert_is_its_section_on_the_site_of_the_service():
    configured = (ROOT / "docs" / "site" / "zensical.toml").read_text()
    assert "use_directory_urls = false" in configured  # pages are files: operations.html
    for rule in RULES:
        anchor = rule["alert"].lower()
        assert rule["annotations"]["runbook_url"] == f"{SITE}operations.html#{anchor}"


def test_a_section_describes_the_alert_how_to_look_and_what_to_do():
    for name, text in sections().items():
        meaning = text.strip().splitlines()[0]
        assert meaning[0].isupper(), name
        assert "```sh\n" in text or "**Look:**" in text, name
        assert "**Do:**" in text, name
