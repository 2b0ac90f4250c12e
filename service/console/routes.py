"""The routes ``/``, ``/spaces/…`` and ``/console/…``: one page, its script and its style, under their own policy.

They need no key: the page is the same for everyone, and sends the key of its user with each request to the API.
"""

import asyncio
import secrets

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from proofbox.service.api.download_headers import is_same_tag
from proofbox.service.api.error_handlers import NoRouteError
from proofbox.service.console.assets import MEDIA_TYPES, Asset, read_asset, read_page, version

_POLICY = (
    # Only the script of the page runs, also if an artifact of the same origin is named as a script.
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'self' 'nonce-{nonce}'; "
    "img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    # A text from outside becomes markup nowhere: the browser refuses innerHTML and the like.
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE_HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Accept",
}
_UNCHANGING = "public, max-age=31536000, immutable"  # a year; another version has another address
_REVALIDATED = "no-cache"
_NOT_MODIFIED = 304
_PATHS = "/ and /spaces"


def console_routes() -> list[Route]:
    """Build the routes of the console."""
    pages = [_LoggedRoute(path, get_page) for path in ("/", "/spaces", "/spaces/{space_id}")]
    return [*pages, _LoggedRoute("/console/{name}", get_asset)]


class _LoggedRoute(Route):
    """A route for GET and HEAD whose path names it in logs and metrics."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See `Route.matches`."""
        match, child = super().matches(scope)
        return match, {**child, "route": self} if match is not Match.NONE else child


async def get_page(request: Request) -> Response:
    """Answer with the page; a client that accepts no HTML gets the problem document of a path without a route.

    Raises:
        NoRouteError: the client does not accept HTML.
        MethodNotAllowedError: another method than GET or HEAD.
    """
    if not _accepts_html(request.headers.get("accept", "*/*")):
        raise NoRouteError(
            f"{_PATHS}: a web page for browsers (Accept: text/html); the API is described at /openapi.json"
        )
    page = await asyncio.to_thread(read_page)
    nonce = secrets.token_urlsafe(16)
    headers = {**_PAGE_HEADERS, "Content-Security-Policy": _POLICY.format(nonce=nonce)}
    base = "../" if "space_id" in request.path_params else ""
    return Response(page.replace("{base}", base).replace("{nonce}", nonce), headers=headers, media_type="text/html")


async def get_asset(request: Request) -> Response:
    """Answer with a file of the page, compressed if the client accepts it.

    Raises:
        NoRouteError: the console has no such file.
    """
    name = request.path_params["name"]
    if name not in MEDIA_TYPES:
        raise NoRouteError(f"/console/: no such file; it has {', '.join(MEDIA_TYPES)}")
    asset = await asyncio.to_thread(read_asset, name)
    is_current = request.query_params.get("v") == await asyncio.to_thread(version)
    headers = {
        "Cache-Control": _UNCHANGING if is_current else _REVALIDATED,
        "ETag": asset.etag,
        "Vary": "Accept-Encoding",
    }
    if is_same_tag(asset.etag, request.headers.get("if-none-match")):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return _asset_response(asset, headers, can_unzip="gzip" in request.headers.get("accept-encoding", ""))


def _asset_response(asset: Asset, headers: dict[str, str], *, can_unzip: bool) -> Response:
    if can_unzip and asset.compressed is not None:
        return Response(
            asset.compressed, headers={**headers, "Content-Encoding": "gzip", "Content-Type": asset.media_type}
        )
    return Response(asset.content, headers={**headers, "Content-Type": asset.media_type})


def _accepts_html(accept: str) -> bool:
    types = {part.partition(";")[0].strip().lower() for part in accept.split(",")}
    return not types.isdisjoint({"text/html", "text/*", "*/*"})
