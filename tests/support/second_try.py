"""A second try for tests that fail (``--second-try``): alone, when all others have ended.

A test that passes then is flaky: it is printed, written to ``flaky.txt``, and at most three of them pass the run.
"""

import os
import subprocess
import sys

import pytest

FLAKY_MAX = 3
_TRIED_MAX = 10
"""With more failures than that, the cause is no chance."""
_TRY_S = 600


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
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or not names or len(names) > _TRIED_MAX:
        return
    terminal.ensure_newline()
    flaky = [name for name in names if _passes_alone(session.config, name)]
    if not flaky:
        return
    flaky_file.write_text("".join(f"{name}\n" for name in flaky), encoding="utf-8")
    for report in (report for report in failed if report.nodeid in flaky):
        terminal.section(f"flaky: {report.nodeid}", sep="_")
        terminal.line(report.longreprtext)
    for name in flaky:
        terminal.line(f"flaky: {name}", yellow=True)
    if len(flaky) > FLAKY_MAX:
        terminal.line(f"{len(flaky)} flaky tests, of which at most {FLAKY_MAX} pass a run", red=True)
        return
    for kind in ("failed", "error"):
        left = [report for report in terminal.stats.pop(kind, []) if report.nodeid not in flaky]
        terminal.stats |= {kind: left} if left else {}
    terminal.stats["flaky"] = [report for report in failed if report.nodeid in flaky]
    if flaky == names:
        session.exitstatus = pytest.ExitCode.OK


def _passes_alone(config: pytest.Config, name: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    try:
        return (
            subprocess.run(command, cwd=config.rootpath, env=environment, timeout=_TRY_S, check=False).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False
