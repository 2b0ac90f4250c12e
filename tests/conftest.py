"""Engines of the tests' own, which a test may restart and kill, and the marker of the hostile cases.

The engines are started when the first test asks for one.
"""

import gc
import ipaddress
import os
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from tests.security.case_index import COLLECTED, cases, functions
from tests.services.private_docker import PrivateDocker
from tests.support import second_try, tables

# By itself an example fails that took longer than 200 ms, and a test whose first ten took longer than a second:
# what a busy machine does to any of them.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.register_profile("few", deadline=None, max_examples=10)
hypothesis.settings.load_profile("few" if os.environ.get("PROOFBOX_TEST_EXAMPLES") == "few" else "any machine")


def _refuse_the_internet(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse connections of this process beyond the machine and private networks; an audit hook."""
    if event == "socket.connect" and isinstance(arguments[1], tuple) and _is_global(str(arguments[1][0])):
        raise RuntimeError(f"a test connects to {arguments[1][0]}; tests reach this machine only")


def _is_global(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_global
    except ValueError:
        return False  # a name, which is resolved before


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the project's own."""
    parser.addoption("--second-try", action="store_true", help="run a failed test once more, alone, at the end")
    parser.addoption("--rows", action="store_true", help="make each row of a table a test of its own")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse the internet in this process of the tests."""
    sys.addaudithook(_refuse_the_internet)
    config.pluginmanager.register(second_try)
    config.pluginmanager.register(tables)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """After `-m security`: how many cases there are of each family, and which did not end as they should."""
    if config.option.markexpr != "security" or config.option.collectonly:
        return
    ended = {
        outcome: [report.nodeid for report in terminalreporter.stats.get(outcome, [])]
        for outcome in ("passed", "failed", "error")
    }
    proven, fallen = Counter[str](), []
    for case in cases():
        if any(case.is_proven_by(test) for outcome in ("failed", "error") for test in ended[outcome]):
            fallen.append(case)
        elif any(case.is_proven_by(test) for test in ended["passed"]):
            proven[case.family] += 1
    told = Counter(case.family for case in cases())
    terminalreporter.section("hostile cases")
    for family, count in told.items():
        terminalreporter.line(f"{family:20} {proven[family]:4} of {count:4} proven")
    terminalreporter.line(f"{'all':20} {proven.total():4} of {told.total():4} proven")
    for case in fallen:
        terminalreporter.line(f"fallen: [{case.family}] {case.tried}")


@pytest.fixture(scope="session")
def private_docker() -> Iterator[PrivateDocker]:
    """A Docker engine with the sandbox image, on which ``runsc`` is a runtime. A test leaves it running."""
    engine = PrivateDocker()
    try:
        yield engine.start()
    finally:
        engine.stop()


@pytest.fixture(scope="session")
def remapped_docker() -> Iterator[PrivateDocker]:
    """The same with ``userns-remap``: root inside of a container is nobody outside of it."""
    engine = PrivateDocker(remapped=True)
    try:
        yield engine.start()
    finally:
        engine.stop()


_FIRST = ("tests/container/images/", "tests/security/", "tests/container/", "tests/store_contract/")
"""What takes longest begins first: no worker is alone with it at the end (``--no-loadscope-reorder``)."""


class _Modules(LoadScopeScheduling):
    """Where tests run side by side (``-n 4``): those of one module run one after the other, in one process."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Which test runs where."""
    return _Modules(config, log)


def _rank(item: pytest.Item) -> int:
    return next((place for place, part in enumerate(_FIRST) if item.nodeid.startswith(part)), len(_FIRST))


def pytest_collection(session: pytest.Session) -> None:
    """While tests are collected, nothing of them is garbage."""
    del session
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """All that is collected stays until the end: looking through it again and again takes a second each time."""
    del session
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Orders the tests, marks hostile cases, and under gVisor the tests whose claim it cannot keep."""
    items.sort(key=_rank)
    on_gvisor = "runsc" in os.environ.get("PROOFBOX_RUNTIME", "")
    exceptions = tomllib.loads(Path(__file__).with_name("gvisor_exceptions.toml").read_text()) if on_gvisor else {}
    for item in items:
        if item.nodeid.partition("[")[0] in functions():
            item.add_marker("security")
        path, _, name = item.nodeid.partition("::")
        named = exceptions.get(path, {})
        if why := named.get(name) or named.get(name.partition("[")[0]):
            item.add_marker(pytest.mark.xfail(reason=why, strict=False))
    hostile = tuple(item.nodeid for item in items if item.get_closest_marker("security"))
    config.stash[COLLECTED] = frozenset(item.nodeid.partition("::")[0] for item in items), hostile
