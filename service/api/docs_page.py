"""``/docs``: the page of documentation, under a policy that runs its own scripts and no others."""

import base64
import hashlib
import re

from fastapi import APIRouter, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

STATIC = "/static-offline-docs"
_INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
router = APIRouter()


@router.get("/docs", include_in_schema=False)
async def docs_page(request: Request) -> Response:
    """Swagger UI over this own document; all that it loads is relative to it: a proxy may add a prefix."""
    static = STATIC.removeprefix("/")  # relative to the page
    page = get_swagger_ui_html(
        openapi_url="openapi.json",
        title=f"{request.app.title} - Swagger UI",
        swagger_js_url=f"{static}/swagger-ui-bundle.js",
        swagger_css_url=f"{static}/swagger-ui.css",
        swagger_favicon_url=f"{static}/favicon.png",
    )
    hashes = [
        base64.b64encode(hashlib.sha256(code).digest()).decode() for code in _INLINE_SCRIPT.findall(page.body)
    ]
    scripts = " ".join(["'self'", *(f"'sha256-{each}'" for each in hashes)])
    page.headers["Content-Security-Policy"] = (
        f"default-src 'none'; script-src {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return page
