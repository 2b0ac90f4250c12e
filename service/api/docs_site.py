"""``/docs/site``: the documentation site, if this installation has it (`make docs-site`, `make dist`)."""

import base64
import hashlib
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fastapi import Request, Response
from starlette.responses import RedirectResponse
from starlette.routing import BaseRoute, Route

from proofbox.service.api.download_headers import is_same_tag
from proofbox.service.api.error_handlers import NoRouteError
from proofbox.service.concurrency import run_in_thread

PATH = "/docs/site"
ARCHIVE = Path(__file__).parents[2] / "docs_site.zip"
"""Where `make docs-site` puts it: data of the package `proofbox`, a quarter of the size of the files."""
INDEX = "index.html"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
    ".xml": "application/xml",
}
_OTHER_TYPE = "application/octet-stream"
_INLINE_SCRIPT = re.compile(rb"<script(?![^>]*\b(?:src|type)=)[^>]*>(.*?)</script>", re.DOTALL)
# The builder puts a hash of the content into the names of its own scripts and style sheets.
_HAS_HASH = re.compile(r"\.[0-9a-f]{8,}\.min\.(?:css|js)$")
_REVALIDATED, _FOREVER = "no-cache", "public, max-age=31536000, immutable"
_NO_PAGE = f"{PATH}: the documentation site has no page of this name; GET {PATH}/ has the contents"
_NOT_BUILT = (
    f"{PATH}: this installation has no documentation site; run 'make docs-site' in a checkout, or install the "
    "wheel of 'make dist'; GET /docs shows the API"
)


@dataclass(frozen=True, slots=True)
class _File:
    """A file of the site as it is sent.

    Attributes:
        content: its bytes.
        tag: its strong entity tag: the SHA-256 of the bytes, quoted.
        policy: its Content-Security-Policy; empty for the one that all responses have.
    """

    content: bytes
    tag: str
    policy: str


class DocsSite:
    """The built site in an archive.

    A path of a request selects one of the names in the archive; it never becomes a path of the file system.

    Args:
        archive: the built site, a ZIP file; it may be missing, or be replaced while the service runs.
    """

    def __init__(self, archive: Path = ARCHIVE) -> None:
        self._archive = archive

    def routes(self) -> Sequence[BaseRoute]:
        """The routes below ``/docs/site``; they need no key."""
        return [
            Route(PATH, self._to_index, methods=["GET"], include_in_schema=False),
            Route(f"{PATH}/{{path:path}}", self._serve, methods=["GET"], include_in_schema=False),
        ]

    async def _to_index(self, _request: Request) -> Response:
        # Relative: a proxy may serve the service below a path of its own.
        return RedirectResponse("site/", 308, {"Cache-Control": _REVALIDATED})

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["path"] or INDEX
        file = await run_in_thread(None, lambda: self._read(name))
        headers = {
            "Cache-Control": _FOREVER if _HAS_HASH.search(name) else _REVALIDATED,
            "ETag": file.tag,
            **({"Content-Security-Policy": file.policy} if file.policy else {}),
        }
        if is_same_tag(file.tag, request.headers.get("If-None-Match")):
            return Response(status_code=304, headers=headers)
        headers["Content-Type"] = _TYPES.get(Path(name).suffix, _OTHER_TYPE)
        return Response(file.content, headers=headers)

    def _read(self, name: str) -> _File:
        """Read a file of the site.

        Raises:
            NoRouteError: there is none of this name, or no site.
        """
        try:
            with zipfile.ZipFile(self._archive) as archive:
                content = archive.read(name)
        except FileNotFoundError:
            raise NoRouteError(_NOT_BUILT) from None
        except KeyError:
            raise NoRouteError(_NO_PAGE) from None
        return _File(content, f'"{hashlib.sha256(content).hexdigest()}"', _policy(name, content))


def _policy(name: str, content: bytes) -> str:
    """The policy of a page runs its own scripts and no others, and asks no other host."""
    if not name.endswith(".html"):
        return ""
    digests = {hashlib.sha256(code).digest() for code in _INLINE_SCRIPT.findall(content)}
    scripts = " ".join(["'self'", *sorted(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
