"""Points of a call at which a test strikes: each write, request to the bytes, and step of a sandbox."""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from proofbox.service.sandbox.runner.sandbox import RunnerSandbox
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.database import Database

Side = Literal["before", "after"]
_SEAMS: tuple[tuple[type[Any], str], ...] = (
    (Database, "write"),
    (SqlArtifactStore, "_off_loop"),
    *((RunnerSandbox, step) for step in ("put", "run", "collect")),
)


@dataclass
class Strike:
    """Strikes the call that this task makes, once.

    Attributes:
        at: the number of the point, from 1.
        side: before or after what is done there.
        strike: what happens there.
        passed: what was done at each point so far.
    """

    at: int
    side: Side
    strike: Callable[[], None]
    passed: list[str] = field(default_factory=list)

    def reach(self, number: int, side: Side) -> None:
        """Strike, if this is the point."""
        if (number, side) == (self.at, self.side):
            self.strike()

    @property
    def was_reached(self) -> bool:
        """Whether there was such a point."""
        return len(self.passed) >= self.at


STRIKE: ContextVar[Strike | None] = ContextVar("strike", default=None)
"""What strikes the calls of this task, and of the tasks that it begins."""


def install(patch: pytest.MonkeyPatch) -> None:
    """Have the points of calls call their `STRIKE`."""
    for owner, name in _SEAMS:
        patch.setattr(owner, name, _struck(name, getattr(owner, name)))


def _struck(name: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def struck(*given: Any, **named: Any) -> Any:
        strike = STRIKE.get()
        if strike is None:
            return await work(*given, **named)
        strike.passed.append(name)
        number = len(strike.passed)
        strike.reach(number, "before")
        result = await work(*given, **named)
        strike.reach(number, "after")
        return result

    return struck
