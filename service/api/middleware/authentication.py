"""Check Host and Origin, authenticate the caller and apply its request limits, before any route runs."""

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proofbox.service.access.authenticator import Authenticator, Caller, RequestCredentials
from proofbox.service.access.bearer_tokens import CALLBACK_PREFIX, find_bearer_token
from proofbox.service.access.quotas import CallerMeter, Quotas
from proofbox.service.access_errors import MissingPermissionError, NotAuthenticatedError, OriginRefusedError
from proofbox.service.api.facade import Facade, facade_of
from proofbox.service.api.origin import require_own_origin
from proofbox.service.api.responses import log_failure, problem_response, request_id_of
from proofbox.service.api.services import Services
from proofbox.service.errors import ServiceError, UnsafeNameError

OPEN_PATHS = frozenset({"/livez", "/readyz", "/docs", "/docs/site", "/openapi.json"})
"""Routes without a key: their responses are the same for everyone."""
OPEN_BELOW = (
    "/docs/site/",
    "/static-offline-docs/",
    "/console/",
    "/v1/links/",
    "/v1/uploads/",
    "/.well-known/",
)
"""The documentation site; the scripts of the page of the API and of the console; links, which are credentials
themselves; metadata of OAuth, which does not exist: MCP clients that get 401 there do not use their key."""
CONSOLE = frozenset({"/", "/spaces"})
SPACE_PAGES_BELOW = "/spaces/"
"""The page of the console, which the settings can switch off; open too: it is the same for everyone."""
CALLS = "/v1/tool-calls"
SPACES_BELOW = "/v1/spaces/"
_HEALTH = frozenset({"/livez", "/readyz"})
_SERVER_ERROR = 500
# As RFC 9110 7.2 has it, without what a URL may hold beside a host: a user, a path, a query, a fragment.
_HOST = re.compile(
    r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*))(?::(?P<port>[0-9]{0,5}))?"
)
_PORT_MAX = 65_535
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_ONCE = frozenset({b"host", b"origin", b"authorization", b"content-type", b"content-length"})
_OURS = b"proofbox-"
_PRESENT_MAX = 200  # characters of what a client sent that are shown to it again


class HostCheck:
    """ASGI middleware that refuses ambiguous requests, and foreign names of a service on loopback.

    The second is for a service without keys that only this machine reaches.
    A browser on this machine reaches it as well, with web pages of any origin. A page may let its own host name
    resolve to this machine (DNS rebinding): then ``Host`` is that name. Or it may send cross-origin requests: then
    ``Origin`` is the page's.

    Args:
        app: the application behind it.
        names: the host names of the service; None: any name and any origin.
    """

    def __init__(self, app: ASGIApp, names: frozenset[str] | None) -> None:
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "http":
            try:
                _require_single_headers(scope["headers"])
                _require_printable_path(scope["path"])
                if self._names is not None and scope["path"] not in _HEALTH:
                    _require_own_name(Headers(scope=scope), self._names)
            except ServiceError as exc:
                await problem_response(exc, request_id_of(scope))(scope, receive, send)
                return
        await self._app(scope, receive, send)


def _require_single_headers(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Refuse a request that repeats a header of identity or content: a proxy may have checked the other one.

    Raises:
        OriginRefusedError, NotAuthenticatedError, UnsafeNameError: a header is repeated.
    """
    seen: set[bytes] = set()
    for name, _ in headers:
        if name not in _ONCE and not name.startswith(_OURS):
            continue
        if name not in seen:
            seen.add(name)
            continue
        shown = name.decode("latin-1").title()
        text = f"{shown}: the header stands more than once (limit 1); send it once"
        if name in {b"host", b"origin"}:
            raise OriginRefusedError(text)
        if name == b"authorization":
            raise NotAuthenticatedError(text, was_given=True)
        raise UnsafeNameError(text)


def _require_printable_path(path: str) -> None:
    """Refuse a path with a control character.

    The ``$`` of a route's pattern also matches before a line feed at the end: the route would get a path that the
    checks before it do not recognise.

    Raises:
        UnsafeNameError: the path has one.
    """
    if _CONTROL.search(path):
        raise UnsafeNameError("path: it has a control character, such as a line feed; send it without")


def _require_own_name(headers: Headers, names: frozenset[str]) -> None:
    host = headers.get("host", "")
    if "host" in headers and not _is_own_name(host, names):
        raise OriginRefusedError(
            f"Host: '{host[:_PRESENT_MAX]}' is not a name of this service; use localhost, or have the "
            "operator add the name to PROOFBOX_ALLOWED_HOSTS"
        )
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in {f"{scheme}://{host.lower()}" for scheme in ("http", "https")}:
        raise OriginRefusedError(
            f"Origin: a web page of '{origin[:_PRESENT_MAX]}' may not use this service; call it from a program"
        )


def _is_own_name(host: str, names: frozenset[str]) -> bool:
    match = _HOST.fullmatch(host)
    if match is None or int(match["port"] or 0) > _PORT_MAX:
        return False
    name = (match["name"] or match["address"]).lower()
    address = ipaddress.IPv4Address if match["address"] is None else ipaddress.IPv6Address
    try:
        return address(name).is_loopback or name in names
    except ValueError:
        return match["address"] is None and (name in names or name.endswith(".localhost"))


class AuthenticationMiddleware:
    """ASGI middleware that authenticates the caller of every request.

    All routes but the listed ones need a key, so a new route is closed by default. No body is read before.

    Args:
        app: the application behind it.
        authenticator: identifies the caller.
        quotas: the request limits of callers.
        facades: APIs of other products, which authenticate the callers of their routes; no web page of another
            origin may use them, as a browser sends their forms without asking first.
        public_url: the URL of the service for clients; empty if it is not known.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        quotas: Quotas,
        facades: Sequence[Facade] = (),
        public_url: str = "",
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._quotas = quotas
        self._facades = facades
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        path: str = scope.get("path", "")
        facade = facade_of(self._facades, path) if self._facades else None
        is_open = path in OPEN_PATHS or path in CONSOLE or path.startswith((*OPEN_BELOW, SPACE_PAGES_BELOW))
        is_open = is_open or (facade is not None and path in facade.open_paths) or is_callback(scope)
        if scope["type"] != "http" or is_open:
            await self._app(scope, receive, send)
            return
        meter: CallerMeter | None = None
        is_call, respond = (
            (_runs_something, problem_response) if facade is None else (facade.is_call, facade.error_response)
        )
        try:
            caller = await self._caller(facade, Headers(scope=scope))
            _require_space_route(caller, path)
            meter = self._quotas.meter(caller.principal.caller, caller.own)
            meter.take_request(is_call=is_call(scope["method"], path))
        except ServiceError as exc:
            if exc.status >= _SERVER_ERROR:
                log_failure(exc, scope)
            headers = {} if meter is None else meter.headers()
            await respond(exc, request_id_of(scope), headers=headers)(scope, receive, send)
            return
        scope["state"]["caller"] = caller
        scope["state"]["meter"] = meter
        await self._app(scope, receive, _Limited(send, meter))

    async def _caller(self, facade: Facade | None, headers: Headers) -> Caller:
        if facade is not None:
            require_own_origin(headers, self._public_url)
            return await facade.authenticate(headers)
        return await self._authenticator.authenticate(_credentials(headers))


def _require_space_route(caller: Caller, path: str) -> None:
    """Refuse a space token at other routes than those of spaces; these check which space it opens.

    Raises:
        MissingPermissionError: it is another route.
    """
    if caller.grant is not None and not path.startswith(SPACES_BELOW):
        raise MissingPermissionError(
            f"a space token opens {SPACES_BELOW}{caller.grant.space_id} only; use an API key"
        )


def _runs_something(method: str, path: str) -> bool:
    """Whether a request is a call or a rerun."""
    return method == "POST" and (path == CALLS or (path.startswith(f"{CALLS}/") and path.endswith("/rerun")))


def is_callback(scope: Scope) -> bool:
    """Whether a request answers a call with a callback token, which its route checks: it opens nothing else."""
    path = scope.get("path", "")
    if scope.get("method") != "POST" or not (path.startswith(f"{CALLS}/") and path.endswith("/result")):
        return False
    return callback_token(Headers(scope=scope)) is not None


def callback_token(headers: Headers) -> str | None:
    """The callback token of a request; None if it has another credential, or none."""
    given = headers.getlist("authorization")
    return find_bearer_token(given[0], CALLBACK_PREFIX) if len(given) == 1 else None


class _Limited:
    """``send`` of one request: adds the headers of the caller's limits."""

    __slots__ = ("_meter", "_send")

    def __init__(self, send: Send, meter: CallerMeter) -> None:
        self._send = send
        self._meter = meter

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start" and (limits := self._meter.headers()):
            MutableHeaders(scope=message).update(limits)
        await self._send(message)


async def check_storage_quota(request: Request, services: Services) -> None:
    """Refuse a request whose project has used up its storage quota.

    Raises:
        StorageQuotaError: the quota is used up.
        StoreFailedError: the store failed.
    """
    state = request.scope["state"]
    who = caller_of(state).principal
    await services.quotas.check_storage_quota(state["meter"].allowed, who.tenant, who.project)


def caller_of(state: Mapping[str, object]) -> Caller:
    """Return the authenticated caller of a request."""
    caller = state["caller"]
    assert isinstance(caller, Caller)
    return caller


def _credentials(headers: Headers) -> RequestCredentials:
    return RequestCredentials(
        tuple(headers.getlist("authorization")),
        headers.get("Proofbox-Tenant"),
        headers.get("Proofbox-Project"),
    )
