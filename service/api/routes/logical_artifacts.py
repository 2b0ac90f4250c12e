"""Logical paths that are not stored files: the text of blocks, rows of the sources pool, skills."""

import hashlib

from fastapi import Request, Response

from proofbox.service.api.download_headers import harmless_headers, is_same_tag
from proofbox.service.artifacts.path_resolver import PathContent


def content_response(request: Request, found: PathContent, if_none_match: str | None) -> Response:
    """Build the response with the whole content; a browser saves it and does not run it."""
    tag = f'"{hashlib.sha256(found.content).hexdigest()}"'
    headers = {**harmless_headers(found.name, found.mime), "ETag": tag}
    if is_same_tag(tag, if_none_match):
        return Response(status_code=304, headers={name: headers[name] for name in ("Cache-Control", "ETag")})
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(len(found.content))})
    return Response(found.content, headers=headers)
