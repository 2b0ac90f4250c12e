"""The systemd units: taken by systemd, and hardened. Run by `make test-deploy`."""

import re
import subprocess

import pytest
from deploy_programs import ROOT

UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
EXPOSURE_MAX = 2.0  # of systemd's scale from 0, safe, to 10


@pytest.fixture
def units(tmp_path):
    """The units, with a program that each machine has in place of those that are not installed."""
    for unit in UNITS:
        text = re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.MULTILINE)
        (tmp_path / unit.name).write_text(text)
    return sorted(tmp_path.glob("*.service"))


def analyze(*arguments):
    command = ["systemd-analyze", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_systemd_takes_the_units_as_they_are(units):
    done = analyze("verify", *units)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", [unit.name for unit in UNITS])
def test_a_unit_is_hardened(units, name):
    [unit] = [path for path in units if path.name == name]
    done = analyze("security", "--offline=true", "--no-pager", unit)
    [exposure] = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert float(exposure) <= EXPOSURE_MAX, done.stdout


def test_a_misspelt_option_is_found(units):
    units[0].write_text(units[0].read_text().replace("NoNewPrivileges=yes", "NoNewPrivilege=yes"))
    assert "Unknown key 'NoNewPrivilege'" in analyze("verify", *units).stderr
