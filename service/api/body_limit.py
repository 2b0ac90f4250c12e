"""A bound on the bytes of every request body, declared or not."""

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.core.errors import BodyTooLargeError


class BodyLimit:
    """ASGI middleware that raises BodyTooLargeError out of ``receive`` as soon as a body is known to be too large.

    A declared length is refused before a byte is read, so a client that waits for ``100 Continue`` sends nothing;
    a chunked body is refused at the first byte too many, and no more than that is ever held.

    Args:
        app: the application behind it.
        bytes_max: the bound, in bytes.
        bytes_max_of_method: the bound of methods that have one of their own.
    """

    def __init__(self, app: ASGIApp, bytes_max: int, bytes_max_of_method: Mapping[str, int]) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._bytes_max_of_method = bytes_max_of_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        bytes_max = self._bytes_max_of_method.get(scope["method"], self._bytes_max)
        await self._app(scope, _Counted(scope, receive, bytes_max), send)


class _Counted:
    """``receive`` of one request, counting."""

    def __init__(self, scope: Scope, receive: Receive, bytes_max: int) -> None:
        declared = Headers(scope=scope).get("content-length", "0")
        # The server has refused lengths that are no numbers; what it lets through is counted anyway.
        self._size_bytes_declared = int(declared) if declared.isascii() and declared.isdigit() else 0
        self._receive = receive
        self._bytes_max = bytes_max
        self._size_bytes = 0

    async def __call__(self) -> Message:
        if self._size_bytes_declared > self._bytes_max:
            raise self._too_large()
        message = await self._receive()
        if message["type"] == "http.request":
            self._size_bytes += len(message.get("body", b""))
            if self._size_bytes > self._bytes_max:
                raise self._too_large()
        return message

    def _too_large(self) -> BodyTooLargeError:
        return BodyTooLargeError(
            f"the body is larger than {self._bytes_max} bytes, the most that the operator allows"
        )
