"""The duration of store operations, reported to an observer."""

import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="ObservedStore")

StoreObserver = Callable[[str, float], None]
"""Called with an operation (``database_read``, ``database_write``, ``files``) and its duration in seconds."""


class ObservedStore(Protocol):
    """A store whose operations are observed.

    Attributes:
        observer: called after each operation.
    """

    observer: StoreObserver


def ignore(operation: str, seconds: float) -> None:
    """Observe nothing."""


def timed(operation: str) -> "Callable[[Method[S, P, T]], Method[S, P, T]]":
    """Report the duration of a method of a store to its observer, queueing included, after errors too."""

    def decorated(method: "Method[S, P, T]") -> "Method[S, P, T]":
        @wraps(method)
        async def observed(self: S, *args: P.args, **kwargs: P.kwargs) -> T:
            began = time.perf_counter()
            try:
                return await method(self, *args, **kwargs)
            finally:
                self.observer(operation, time.perf_counter() - began)

        return observed  # type: ignore[return-value]  # mypy distinguishes a self that is passed by name

    return decorated


Method = Callable[Concatenate[S, P], Coroutine[Any, Any, T]]
