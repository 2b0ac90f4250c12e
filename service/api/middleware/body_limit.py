"""Limits of request bodies: size, time, memory of all bodies, and the upload quota of the caller."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proofbox.service.access.authenticator import Caller
from proofbox.service.access.quotas import CallerMeter
from proofbox.service.errors import BodyTooLargeError, RateLimitedError, RequestTimeoutError

SLOWEST_BYTES_PER_S = 64 * 1024


class BodyLimitMiddleware:
    """ASGI middleware that raises out of ``receive`` as soon as a body exceeds a limit.

    A declared length above the bound is refused before a byte is read, so a client that waits for ``100 Continue``
    sends nothing; a chunked body is refused at the first byte too many, and no more than that is ever held. Room in
    memory is taken as bytes arrive: a length that is only declared takes none. A body that comes drop by drop is
    given up, and so is one that stops.

    Args:
        app: the application behind it.
        bytes_max: the bound, in bytes.
        own_bytes_max: the bound of requests that have one of their own: by path, or by method and how the path
            begins (``PUT /v1/conversations/``).
        body_s: how long the service waits for a body, beyond a second for each 64 KiB that comes.
        held_max: how many bytes of bodies may be in memory at one time; those with a bound of their own go to the
            disk and are not counted.
    """

    def __init__(
        self, app: ASGIApp, bytes_max: int, own_bytes_max: Mapping[str, int], body_s: float, held_max: int
    ) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._own_bytes_max = own_bytes_max
        self._body_s = body_s
        self._held = _Held(max(held_max, bytes_max), bytes_max)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        own_max = self._find_own_max(scope["method"], scope["path"])
        if own_max is not None:
            await self._app(scope, _Counted(scope, receive, own_max, self._body_s), send)
            return
        with self._held.room(_caller(scope)) as take:
            await self._app(scope, _Counted(scope, receive, self._bytes_max, self._body_s, take), send)

    def _find_own_max(self, method: str, path: str) -> int | None:
        if path in self._own_bytes_max:
            return self._own_bytes_max[path]
        asked = f"{method} {path}"
        return next((own for start, own in self._own_bytes_max.items() if asked.startswith(start)), None)


def _caller(scope: Scope) -> str:
    caller = scope["state"].get("caller")
    return caller.principal.caller if isinstance(caller, Caller) else ""


class _Held:
    """The bodies that are in memory: of one caller at most half of what is allowed, so that others find room."""

    def __init__(self, bytes_max: int, body_bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._share = max(body_bytes_max, bytes_max // 2)
        self._of: Counter[str] = Counter()

    def room(self, caller: str) -> "_Room":
        """A context manager for what one body takes."""
        return _Room(self, caller)

    def take(self, caller: str, size_bytes: int) -> None:
        """Take room for bytes of one body.

        Raises:
            RateLimitedError: there is not so much left.
        """
        if self._of[caller] + size_bytes > self._share or self._of.total() + size_bytes > self._bytes_max:
            raise RateLimitedError(
                f"request_bodies: {self._of.total()} bytes of bodies are worked on, {self._bytes_max} may be, "
                f"of one caller {self._share}; send it again in a moment",
                retry_after_s=1,
            )
        self._of[caller] += size_bytes

    def give_back(self, caller: str, size_bytes: int) -> None:
        """Give room back."""
        self._of[caller] -= size_bytes
        if not self._of[caller]:
            del self._of[caller]


class _Room:
    """Gives what takes room for bytes of one body; the room is given back when the block ends."""

    __slots__ = ("_caller", "_held", "_taken")

    def __init__(self, held: _Held, caller: str) -> None:
        self._held = held
        self._caller = caller
        self._taken = 0

    def __enter__(self) -> Callable[[int], None]:
        return self._take

    def __exit__(self, *_exc: object) -> None:
        self._held.give_back(self._caller, self._taken)

    def _take(self, size_bytes: int) -> None:
        self._held.take(self._caller, size_bytes)
        self._taken += size_bytes


def _take_none(_size_bytes: int) -> None:
    pass


class _Counted:
    """``receive`` of one request, counting."""

    __slots__ = (
        "_body_s",
        "_bytes_max",
        "_has_begun",
        "_is_whole",
        "_meter",
        "_receive",
        "_size_bytes",
        "_size_bytes_declared",
        "_take",
        "_waited_s",
    )

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        bytes_max: int,
        body_s: float,
        take: Callable[[int], None] = _take_none,
    ) -> None:
        self._take = take
        declared = Headers(scope=scope).get("content-length", "0")
        # The server has refused lengths that are no numbers; what it lets through is counted anyway.
        self._size_bytes_declared = int(declared) if declared.isascii() and declared.isdigit() else 0
        self._meter: CallerMeter | None = scope["state"].get("meter")
        self._receive = receive
        self._bytes_max = bytes_max
        self._size_bytes = 0
        self._body_s = body_s
        self._waited_s = 0.0
        self._has_begun = False
        self._is_whole = False

    async def __call__(self) -> Message:
        if self._is_whole:
            return await self._receive()  # what is waited for now is that the client goes away
        if self._size_bytes_declared > self._bytes_max:
            raise self._too_large()
        if self._size_bytes_declared and not self._has_begun:
            self._count_upload(self._size_bytes_declared)
        self._has_begun = True
        message = await self._within_time()
        if message["type"] != "http.request":
            return message
        size_bytes = len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        self._size_bytes += size_bytes
        if self._size_bytes > self._bytes_max:
            raise self._too_large()
        if size_bytes:
            self._take(size_bytes)
            if not self._size_bytes_declared:
                self._count_upload(size_bytes)
        return message

    def _count_upload(self, size_bytes: int) -> None:
        if self._meter is not None:
            self._meter.take_upload(size_bytes)

    async def _within_time(self) -> Message:
        # Only the time that the service waits for the client counts, not that of a slow disk in between. Bytes make
        # up for past waiting only, so a client that sends fast and then stops holds no memory.
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._body_s - self._waited_s):
                message = await self._receive()
        except TimeoutError as exc:
            raise RequestTimeoutError(
                f"body: the service was waiting for {self._body_s:g} s beyond the time of {self._size_bytes} bytes "
                f"(limit: a second for {SLOWEST_BYTES_PER_S} bytes); send it again"
            ) from exc
        made_up_s = len(message.get("body", b"")) / SLOWEST_BYTES_PER_S
        self._waited_s = max(0.0, self._waited_s + time.monotonic() - began - made_up_s)
        return message

    def _too_large(self) -> BodyTooLargeError:
        return BodyTooLargeError(
            f"the body is larger than {self._bytes_max} bytes, the most that the operator allows"
        )
