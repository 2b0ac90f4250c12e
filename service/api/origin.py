"""Check the origin of requests that a browser sends across origins without asking first, such as forms.

Also where keys are required: a browser remembers Basic credentials, and a proxy may add those of its users.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers

from proofbox.service.access_errors import OriginRefusedError

_SHOWN_MAX = 200
_DEFAULT_PORTS = {"http": 80, "https": 443}


def require_own_origin(headers: Headers, public_url: str) -> None:
    """Refuse a request of a web page of another origin.

    Args:
        headers: the headers of the request.
        public_url: the URL of the service for clients; empty if it is not known.

    Raises:
        OriginRefusedError: ``Origin`` is not this service.
    """
    origin = headers.get("origin")
    if origin is None:
        return
    own = {_origin(f"{scheme}://{headers.get('host', '')}") for scheme in _DEFAULT_PORTS}
    if public_url:
        own.add(_origin(public_url))
    own.discard(None)
    if _origin(origin) not in own:
        raise OriginRefusedError(
            f"Origin: a web page of '{origin[:_SHOWN_MAX]}' may not use this service; call it from a program"
        )


def _origin(url: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of a URL; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if parts.hostname is None or port is None:
        return None
    return parts.scheme, parts.hostname, port
