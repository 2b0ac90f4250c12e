"""Requests of programs with tools that a client can cancel by an id of its own making."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.identity import Principal

HEADER = "X-LibreChat-Code-Request-ID"
_ID = re.compile(r"[A-Za-z0-9_-]{16,128}")
_EARLY_S = 120.0
_EARLY_MAX = 10_000


class RequestCancelledError(Exception):
    """The client cancelled the request before its program started."""


@dataclass(slots=True)
class Cancellable:
    """A request that can be cancelled.

    Attributes:
        owner: the caller.
        conversation: the conversation of its run.
        call: the call id of its run; empty before the run.
        is_cancelled: whether the client has cancelled it.
    """

    owner: Principal
    conversation: str = ""
    call: str = ""
    is_cancelled: bool = False

    def start(self, conversation: str, call: str) -> None:
        """Note the run of the request.

        Raises:
            RequestCancelledError: it was cancelled before.
        """
        self.conversation, self.call = conversation, call
        if self.is_cancelled:
            raise RequestCancelledError


class Cancellations:
    """The requests of this process that can be cancelled. A cancellation may come before its request."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, Cancellable] = {}
        self._early: OrderedDict[str, tuple[Principal, float]] = OrderedDict()

    @contextmanager
    def request(self, owner: Principal, request_id: str | None) -> Iterator[Cancellable]:
        """Register a request as long as the block lasts.

        Raises:
            RefusedError: the id is malformed or in use.
        """
        cancellable = Cancellable(owner)
        if request_id is None:
            yield cancellable
            return
        request_id = parse_id(request_id, "Invalid programmatic request ID")
        if request_id in self._open:
            raise RefusedError("Programmatic request ID is already in use", status=409)
        early = self._early.pop(request_id, None)
        if early is not None and early[0] == owner and self._clock() - early[1] < _EARLY_S:
            cancellable.is_cancelled = True
        self._open[request_id] = cancellable
        try:
            yield cancellable
        finally:
            del self._open[request_id]

    def cancel(self, owner: Principal, request_id: str) -> Cancellable | None:
        """Cancel a request, or the one that will come with this id; None: none has come yet.

        Raises:
            RefusedError: it is the request of another caller.
        """
        cancellable = self._open.get(request_id)
        if cancellable is None:
            self._early[request_id] = (owner, self._clock())
            while len(self._early) > _EARLY_MAX:
                self._early.popitem(last=False)
            return None
        if cancellable.owner != owner:
            raise RefusedError("Programmatic request belongs to another principal", status=403)
        cancellable.is_cancelled = True
        return cancellable


def parse_id(text: str | None, error: str) -> str:
    """Return the id of a request.

    Raises:
        RefusedError: it has another form.
    """
    found = _ID.fullmatch((text or "").strip())
    if found is None:
        raise RefusedError(error)
    return found[0]
