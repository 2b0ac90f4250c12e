"""Headers of a file that somebody else wrote: right for programs, harmless in a browser."""

from datetime import datetime
from email.utils import format_datetime

from service.core.saved_as import content_disposition, media_type
from service.core.store_ports import StoredArtifact


def download_headers(artifact: StoredArtifact) -> dict[str, str]:
    """The headers of a whole file, but for its length.

    Whatever it is, a browser saves it and runs nothing of it: the media type is the file's own, yet the file comes
    as an attachment, unsniffed, in an origin of no rights.
    """
    return {
        "Accept-Ranges": "bytes",
        # The path stays, the bytes may change: keep it, but ask before using it again.
        "Cache-Control": "private, no-cache",
        "Content-Disposition": content_disposition(artifact.path.rel.rpartition("/")[2]),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Type": media_type(artifact.mime),
        "ETag": etag(artifact),
        "Last-Modified": format_datetime(datetime.fromisoformat(artifact.created), usegmt=True),
        "X-Content-Type-Options": "nosniff",
    }


def etag(artifact: StoredArtifact) -> str:
    """The strong entity tag of a version: its SHA-256."""
    return f'"{artifact.sha256}"'


def is_unchanged(artifact: StoredArtifact, if_none_match: str | None) -> bool:
    """Whether ``If-None-Match`` names this version: weak comparison, a list, or ``*``."""
    if if_none_match is None:
        return False
    known = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return known == ["*"] or etag(artifact) in known


def range_holds(artifact: StoredArtifact, if_range: str | None) -> bool:
    """Whether a range may be served: there is no ``If-Range``, or it names this very version.

    A date never does: two versions may share a second, and a part of the wrong one would spoil the client's copy.
    """
    return if_range is None or if_range.strip() == etag(artifact)
