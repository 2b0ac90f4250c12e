"""A second try for tests that fail (``--second-try``): alone, when all others have ended.

A test that passes then is flaky: it is printed, written to ``flaky.txt``, and at most three of them pass the run.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

FLAKY_MAX = 3
_TRIED_MAX = 10
"""With more failures than that, the cause is no chance."""
_TRY_S = 1_000


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Try failed tests again, in a process of their own each."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if not session.config.option.second_try or hasattr(session.config, "workerinput") or terminal is None:
        return
    flaky_file = session.config.rootpath / "flaky.txt"
    flaky_file.unlink(missing_ok=True)
    failed = [report for kind in ("failed", "error") for report in terminal.stats.get(kind, [])]
    names = list(dict.fromkeys(report.nodeid for report in failed))
    was_cut_short = session.shouldfail or session.shouldstop
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not names or was_cut_short:
        return
    terminal.ensure_newline()
    if len(names) > _TRIED_MAX:
        terminal.line(f"{len(names)} tests failed: that is no chance, none of them is tried again", red=True)
        return
    left_by_others = {report.nodeid for report in failed if _may_be_of_others(report)}
    flaky = [name for name in names if name not in left_by_others and _passes_alone(session.config, name)]
    if not flaky:
        return
    flaky_file.write_text("".join(f"{name}\n" for name in flaky), encoding="utf-8")
    for report in (report for report in failed if report.nodeid in flaky):
        terminal.section(f"flaky: {report.nodeid}", sep="_")
        terminal.line(report.longreprtext)
    for name in flaky:
        terminal.line(f"flaky: {name}", yellow=True)
    causes = _causes([report for report in failed if report.nodeid in flaky])
    if causes > FLAKY_MAX:
        terminal.line(f"{causes} flaky tests, of which at most {FLAKY_MAX} pass a run", red=True)
        return
    for kind in ("failed", "error"):
        left = [report for report in terminal.stats.pop(kind, []) if report.nodeid not in flaky]
        terminal.stats |= {kind: left} if left else {}
    terminal.stats["flaky"] = list({report.nodeid: report for report in failed if report.nodeid in flaky}.values())
    if flaky == names:
        session.exitstatus = pytest.ExitCode.OK


def _may_be_of_others(report: pytest.TestReport) -> bool:
    """Whether tests before this one may have left what failed: alone, it would pass each time."""
    return report.when == "teardown" or "crashed while running" in report.longreprtext


def _causes(reports: Sequence[pytest.TestReport]) -> int:
    """How many failures there are; those of the fixtures of one module are one."""
    return len(
        {report.nodeid.partition("::")[0] if report.when == "setup" else report.nodeid for report in reports}
    )


def _passes_alone(config: pytest.Config, name: str) -> bool:
    """Whether it is run and passes: one that is skipped now has shown nothing."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", name]
        trial = subprocess.Popen(command, cwd=config.rootpath, env=environment, start_new_session=True)
        try:
            if trial.wait(_TRY_S) != 0:
                return False
        except subprocess.TimeoutExpired:
            os.killpg(trial.pid, signal.SIGKILL)
            trial.wait()
            return False
        suites = ET.parse(report).getroot().iter("testsuite")
        return all(int(suite.get("tests", 0)) > 0 and suite.get("skipped") == "0" for suite in suites)
