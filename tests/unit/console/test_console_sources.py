"""What the sources of the console repeat of the contracts, and what they must not have."""

import json
import re
from pathlib import Path

import pytest

from proofbox.contracts.checks import EXTENSIONS_OF_CHECK

SOURCE = Path(__file__).parents[3] / "service" / "console" / "source"
MODULES = sorted(SOURCE.rglob("*.js"))
STATIC = SOURCE.parent / "static"


def test_the_form_of_a_contract_offers_the_checks_for_the_formats_that_have_them():
    offered = json.loads((SOURCE / "lib" / "checks.json").read_text())
    assert offered == {check: list(extensions) for check, extensions in EXTENSIONS_OF_CHECK.items()}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_a_module_writes_no_html_of_its_own_and_is_not_too_long(module):
    text = module.read_text()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text)
    assert len(text.splitlines()) <= 400


def test_the_bundle_loads_nothing_from_elsewhere():
    style = (STATIC / "console.css").read_text()
    assert not re.search(r"@import|url\((?!data:)", style)
    page = (STATIC / "page.html").read_text()
    assert "http" not in page.replace("http-equiv", "")


def test_the_licence_of_every_bundled_package_is_in_the_package():
    text = (STATIC / "licences.txt").read_text()
    for package in ("preact", "htm", "@preact/signals", "@codemirror/view", "@lezer/python"):
        heading = rf"^{re.escape(package)} \d+\.\d+\.\d+ \((?:MIT|Apache-2.0)\)$"
        assert re.search(heading, text, re.MULTILINE), package
