"""The response with the content of a path that is not a stored file: blocks, sources, skills."""

import hashlib

from fastapi import Request, Response

from service.api.download_headers import harmless_headers, is_same_tag
from service.artifacts.path_resolver import PathContent


def content_response(request: Request, found: PathContent, if_none_match: str | None) -> Response:
    """The whole content; a browser saves it and runs nothing of it."""
    tag = f'"{hashlib.sha256(found.content).hexdigest()}"'
    headers = {**harmless_headers(found.name, found.mime), "ETag": tag}
    if is_same_tag(tag, if_none_match):
        return Response(status_code=304, headers={name: headers[name] for name in ("Cache-Control", "ETag")})
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(len(found.content))})
    return Response(found.content, headers=headers)
