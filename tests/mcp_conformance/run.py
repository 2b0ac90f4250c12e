"""Runs the published MCP conformance suite against the service's endpoint, and writes the table of its results.

``python -m tests.mcp_conformance.run``: needs Node >= 22 in NODE and the packages of ``package-lock.json``; the
make target installs both. Exits with 1 if a scenario fails that is not in ``EXPECTED``.
"""

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "mcp.md"
START_S = 60.0
RUN_S = 600.0
_MARKS = ("<!-- conformance -->", "<!-- /conformance -->")
_NOT_SCORED = re.compile(r"^Not scored for .*\Z", re.MULTILINE | re.DOTALL)
_SUMMARY = re.compile(
    r"^(?P<mark>\S+) (?P<scenario>[a-z0-9/-]+): (?P<passed>\d+) passed, (?P<failed>\d+) failed", re.MULTILINE
)
EXPECTED = {
    "input-required-result-": "the service asks its clients nothing",
    "tools-call-sampling": "the service asks its clients nothing",
    "tools-call-elicitation": "the service asks its clients nothing",
    "elicitation-": "the service asks its clients nothing",
    "logging-set-level": "no log messages are sent to clients",
    "tools-call-with-logging": "no log messages are sent to clients",
    "resources-subscribe": "the service is stateless",
    "resources-unsubscribe": "the service is stateless",
}
"""Beginnings of the names of scenarios that fail, and why."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One run of the suite.

    Attributes:
        title: its name in the table.
        package: the folder of its release in ``node_modules``.
        arguments: the arguments that select its scenarios.
        scenarios: scenarios that are run one by one; none: those of the arguments.
        is_own: whether the tools are the service's.
    """

    title: str
    package: str
    arguments: tuple[str, ...]
    scenarios: tuple[str, ...] = ()
    is_own: bool = False


_OF_BOTH = ("tools-list", "resources-list", "dns-rebinding-protection")
SUITES = (
    Suite("2026-07-28, required (0.2.0-alpha.12)", "conformance-next", ("--requirements", "2026-07-28")),
    Suite("2025-11-25, required (0.2.0-alpha.12)", "conformance-next", ("--requirements", "2025-11-25")),
    Suite("2025-11-25, active (0.1.16)", "conformance", ()),
    Suite(
        "2026-07-28, the service's own tools",
        "conformance-next",
        ("--spec-version", "2026-07-28"),
        (*_OF_BOTH, "sep-2164-resource-not-found", "http-header-validation"),
        is_own=True,
    ),
    Suite(
        "2025-11-25, the service's own tools",
        "conformance-next",
        ("--spec-version", "2025-11-25"),
        (*_OF_BOTH, "server-initialize", "ping"),
        is_own=True,
    ),
)
_RESULTS = re.compile(r"^Passed: (\d+)/\d+, (\d+) failed", re.MULTILINE)


@contextlib.contextmanager
def serving(*, is_own: bool) -> Iterator[str]:
    """Run the fixture server; its endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = [sys.executable, "-m", "tests.mcp_conformance.fixture_server", str(port)]
    process = subprocess.Popen([*program, "own"] if is_own else program, cwd=ROOT)
    try:
        _wait_until_up(f"http://127.0.0.1:{port}/livez", process)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


def _wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5):
            return
        time.sleep(0.2)
    raise SystemExit("the fixture server does not start")


def run_suite(suite: Suite, url: str) -> dict[str, tuple[int, int]]:
    """Run a suite; how many checks of each scenario passed and failed, without scenarios that are not scored."""
    if suite.scenarios:
        return {name: _run_scenario(suite, url, name) for name in suite.scenarios}
    printed = _run(suite, url)
    ignored = _NOT_SCORED.search(printed)
    found = {row["scenario"]: (int(row["passed"]), int(row["failed"])) for row in _SUMMARY.finditer(printed)}
    if not found:
        raise SystemExit(f"{suite.title}: no results\n{printed}")
    unscored = set(re.findall(r"\S+", ignored[0])) if ignored else set()
    return {name: checks for name, checks in found.items() if name not in unscored}


def _run_scenario(suite: Suite, url: str, name: str) -> tuple[int, int]:
    printed = _run(suite, url, "--scenario", name)
    found = _RESULTS.search(printed)
    if found is None:
        raise SystemExit(f"{suite.title}: {name} has no results\n{printed}")
    return int(found[1]), int(found[2])


def _run(suite: Suite, url: str, *more: str) -> str:
    program = Path(os.environ["MCP_SUITE"]) / "node_modules" / suite.package / "dist" / "index.js"
    done = subprocess.run(
        [os.environ["NODE"], str(program), "server", "--url", url, *suite.arguments, *more],
        cwd=os.environ["MCP_SUITE"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    return done.stdout


def reason_of(scenario: str) -> str | None:
    """Why a scenario is expected to fail; None if it is not."""
    return next((why for name, why in EXPECTED.items() if scenario.startswith(name)), None)


def main() -> int:
    """Run all suites, write the table and return the exit code."""
    rows, unexpected, reasons = [], [], defaultdict[str, set[str]](set)
    for suite in SUITES:
        with serving(is_own=suite.is_own) as url:
            found = run_suite(suite, url)
        failed = [scenario for scenario, (_, failures) in found.items() if failures]
        passed = sum(passes for passes, _ in found.values())
        total = passed + sum(failures for _, failures in found.values())
        rows.append(f"| {suite.title} | {len(found) - len(failed)} of {len(found)} | {passed} of {total} |")
        for scenario in failed:
            why = reason_of(scenario)
            if why is None:
                unexpected.append(f"{suite.title}: {scenario}")
            else:
                reasons[why].add(next(name for name in EXPECTED if scenario.startswith(name)))
    listed = [
        f"- {', '.join(f'`{_shown(name)}`' for name in sorted(names))}: {why}" for why, names in reasons.items()
    ]
    table = ["| suite | scenarios passed | checks passed |", "|---|---|---|", *rows, "", "The others:", "", *listed]
    text = "\n".join(table)
    sys.stdout.write(f"{text}\n")
    sys.stdout.writelines(f"unexpected: {line}\n" for line in unexpected)
    _write(text)
    return 1 if unexpected else 0


def _shown(name: str) -> str:
    return f"{name}*" if name.endswith("-") else name


def _write(table: str) -> None:
    begin, end = _MARKS
    page = PAGE.read_text()
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    PAGE.write_text(f"{before}{begin}\n{table}\n{end}{after}")


if __name__ == "__main__":
    sys.exit(main())
