"""How long the stores take: told to whoever counts it."""

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="StoreObserver")

Seen = Callable[[str, float], None]
"""Told what was done (``database_read``, ``database_write``, ``files``) and how many seconds it took."""


class StoreObserver(Protocol):
    """A store that tells.

    Attributes:
        seen: whom.
    """

    seen: Seen


def unseen(operation: str, seconds: float) -> None:
    """For stores that nobody counts."""


def timed(operation: str) -> "Callable[[Method[S, P, T]], Method[S, P, T]]":
    """Tells how long a method of a store took, waiting for its turn included, whether it went well or not."""

    def decorated(method: "Method[S, P, T]") -> "Method[S, P, T]":
        @wraps(method)
        async def told(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
            began = time.perf_counter()
            try:
                return await method(self, *args, **kwargs)
            finally:
                self.seen(operation, time.perf_counter() - began)

        return told  # type: ignore[return-value]  # the checker tells a self that is given by name from one that is not

    return decorated


Method = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
