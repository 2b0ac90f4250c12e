"""Tables: a test function whose rows differ in nothing but data is one item, which names every row that fails.

Rows that use a fixture of one test's own stay apart, unless the test has the mark ``shares_fixtures``.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any

import pytest

_Rows = Sequence[tuple[str, dict[str, Any]]]
_APART = ("tests/container/", "tests/faults/", "tests/security/")
"""Where a row runs a container, which takes time: the time limit of a test is for one row."""

_OF_ITEMS = ("timeout", "xfail")
"""Marks whose claim is one of each row."""
_TIMEOUT = "from pytest-timeout"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str) -> Generator[None, Any, Any]:
    """Make one item of the rows of a table."""
    del name
    made = yield
    if isinstance(made, list) and len(made) > 1 and not collector.config.option.rows and _is_table(made):
        return [_merge(made)]
    return made


def _is_table(items: Sequence[pytest.Item]) -> bool:
    """Whether rows share no fixture of one test's own; rows with a mark or a time of their own stay apart."""
    head = items[0]
    if not isinstance(head, pytest.Function) or getattr(head.obj, "is_hypothesis_test", False):
        return False
    if any(head.get_closest_marker(name) for name in _OF_ITEMS) or head.nodeid.startswith(_APART):
        return False
    if any(not isinstance(item, pytest.Function) or item.callspec.marks for item in items):
        return False
    marks = list(head.iter_markers("parametrize"))
    named = {name for mark in marks for name in _names(mark)}
    if any("indirect" in mark.kwargs for mark in marks) or set(head.callspec.params) != named:
        return False
    info = head._fixtureinfo
    fixtures = [info.name2fixturedefs.get(name) for name in info.names_closure if name not in named]
    of_one_test = [fixture for fixture in fixtures if fixture is not None and fixture[-1].scope == "function"]
    is_shared = head.get_closest_marker("shares_fixtures") is not None
    return "request" not in info.argnames and (is_shared or not of_one_test)


def _names(mark: pytest.Mark) -> list[str]:
    names = mark.args[0] if mark.args else mark.kwargs["argnames"]
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)


def _merge(items: list[pytest.Function]) -> pytest.Function:
    head = items[0]
    rows = [(item.callspec.id, item.callspec.params) for item in items]
    table = type(head).from_parent(head.parent, name=head.originalname, callobj=_run_rows(head.obj, rows))
    table.own_markers = head.own_markers
    return table


def _run_rows(function: Callable[..., Any], rows: _Rows) -> Callable[..., Any]:
    """A test that runs a function for each row, and then raises what failed."""

    @functools.wraps(function)
    def run(**fixtures: Any) -> None:
        failures = _Failures(len(rows))
        for row, values in rows:
            with failures.noted(row):
                function(**fixtures | values)
        failures.raise_all()

    @functools.wraps(function)
    async def run_async(**fixtures: Any) -> None:
        failures = _Failures(len(rows))
        for row, values in rows:
            with failures.noted(row):
                await function(**fixtures | values)
        failures.raise_all()

    whole = inspect.signature(function)
    others = [parameter for name, parameter in whole.parameters.items() if name not in rows[0][1]]
    table = run_async if inspect.iscoroutinefunction(function) else run
    table.__signature__ = whole.replace(parameters=others)  # type: ignore[union-attr]  # pytest reads the fixtures there
    return table


class _Failures:
    """What failed of the rows of a table."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._errors: dict[str, Exception] = {}

    @contextlib.contextmanager
    def noted(self, row: str) -> Iterator[None]:
        """A block for one row."""
        try:
            yield
        except Exception as exc:  # noqa: BLE001 - raised at the end, with those of the other rows
            exc.add_note(f"row {row}")
            self._errors[row] = exc
        except (KeyboardInterrupt, GeneratorExit, pytest.exit.Exception):
            raise
        except BaseException as exc:  # noqa: BLE001 - outcomes of pytest, SystemExit, cancellations
            if isinstance(exc, pytest.fail.Exception) and _TIMEOUT in str(exc):  # no other row would have a limit
                pytest.fail(f"row {row}: {exc.msg}")
            error = AssertionError(f"row {row}: {type(exc).__name__} {exc}")
            self._errors[row] = error.with_traceback(exc.__traceback__)

    def raise_all(self) -> None:
        """Raise what failed, as one.

        Raises:
            AssertionError: one row failed, by its cause.
            ExceptionGroup: some rows failed; each error has a note with its row.
        """
        title = f"{len(self._errors)} of {self._rows} rows: {', '.join(self._errors)}"
        if len(self._errors) > 1:
            raise ExceptionGroup(title, list(self._errors.values()))
        for error in self._errors.values():  # of a group of one, the summary shows what is in it, without the row
            raise AssertionError(title) from error
