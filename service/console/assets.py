"""The built files of the console: read once, at the first request, with their compressed form."""

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

MEDIA_TYPES = {
    "console.js": "text/javascript; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "licences.txt": "text/plain; charset=utf-8",
}
"""The files that browsers load, by name."""
_COMPRESSED_FROM_BYTES = 1_000  # smaller files gain nothing
_VERSION_CHARS = 16


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the console.

    Attributes:
        content: its bytes.
        compressed: the same with gzip; None if that is not smaller.
        media_type: its media type.
        etag: its strong entity tag: the SHA-256 of the bytes, quoted.
    """

    content: bytes
    compressed: bytes | None
    media_type: str
    etag: str


@cache
def read_asset(name: str) -> Asset:
    """Read a file of the console.

    Args:
        name: a key of `MEDIA_TYPES`.

    Raises:
        KeyError: the console has no such file.
    """
    media_type = MEDIA_TYPES[name]
    content = _read(name)
    compressed = gzip.compress(content, 6, mtime=0) if len(content) >= _COMPRESSED_FROM_BYTES else None
    return Asset(content, compressed, media_type, f'"{hashlib.sha256(content).hexdigest()}"')


@cache
def read_page() -> str:
    """Return the HTML page; its links carry the version of the files.

    ``{nonce}`` is the place of the nonce, ``{base}`` the one of the relative address of the service's root.
    """
    return _read("page.html").decode().replace("{version}", version())


@cache
def version() -> str:
    """Return the version of script and style: 16 characters of a hash over both."""
    return hashlib.sha256(_read("console.js") + _read("console.css")).hexdigest()[:_VERSION_CHARS]


def _read(name: str) -> bytes:
    return (files("proofbox.service.console") / "static" / name).read_bytes()
