"""Security headers of every response: no scripts, frames, sniffing, caching or referrers."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SAFE_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_ENCODED = [(name.lower().encode(), value.encode()) for name, value in SAFE_HEADERS.items()]


class SecurityHeadersMiddleware:
    """ASGI middleware that adds the headers that a response does not set itself."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        await self._app(scope, receive, _Adding(send))


class _Adding:
    """``send`` of one request, adding."""

    __slots__ = ("_send",)

    def __init__(self, send: Send) -> None:
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            present = {name.lower() for name, _ in headers}
            message["headers"] = headers + [header for header in _ENCODED if header[0] not in present]
        await self._send(message)
