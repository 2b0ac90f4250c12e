"""Web pages of other origins: those that the operator names may use the routes of spaces, with a space token."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proofbox.service.access.bearer_tokens import SPACE_PREFIX, find_bearer_token
from proofbox.service.access_errors import OriginRefusedError
from proofbox.service.api.middleware.authentication import SPACES_BELOW
from proofbox.service.api.responses import problem_response, request_id_of

_PREFLIGHT_S = 600
_ALLOWED = {
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, Last-Event-ID",
    "Access-Control-Max-Age": str(_PREFLIGHT_S),
}
_EXPOSED = "Idempotent-Replayed, Retry-After, X-Request-ID"


class SpaceOrigins:
    """ASGI middleware that answers browsers' questions (CORS) for the routes of spaces.

    No answer allows credentials of the browser: a page sends a space token in ``Authorization``, never a cookie.

    Args:
        app: the application behind it.
        origins: the origins of these pages, such as ``https://chat.example.com``.
    """

    def __init__(self, app: ASGIApp, origins: frozenset[str]) -> None:
        self._app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        is_space = scope["type"] == "http" and scope["path"].startswith(SPACES_BELOW)
        origin = Headers(scope=scope).get("origin") if is_space and self._origins else None
        if origin is None or origin not in self._origins:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await Response(status_code=204, headers={**_allow(origin), **_ALLOWED})(scope, receive, send)
            return
        answering = _Allowing(send, origin)
        if find_bearer_token(headers.get("authorization", ""), SPACE_PREFIX) is None:
            exc = OriginRefusedError(
                f"Origin: a page of '{origin}' needs a space token in Authorization; ask its server for one"
            )
            await problem_response(exc, request_id_of(scope))(scope, receive, answering)
            return
        # What is behind refuses origins that it does not know.
        known = [(name, value) for name, value in scope["headers"] if name != b"origin"]
        await self._app({**scope, "headers": known}, receive, answering)


class _Allowing:
    """``send`` of one request: lets the page read the answer."""

    __slots__ = ("_origin", "_send")

    def __init__(self, send: Send, origin: str) -> None:
        self._send = send
        self._origin = origin

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update({**_allow(self._origin), "Access-Control-Expose-Headers": _EXPOSED})
        await self._send(message)


def _allow(origin: str) -> dict[str, str]:
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
