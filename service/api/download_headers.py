"""Headers of an untrusted file: correct for programs, harmless in a browser."""

from datetime import datetime
from email.utils import format_datetime

from proofbox.service.artifacts.content_disposition import content_disposition, media_type
from proofbox.service.artifacts.port import StoredArtifact


def download_headers(artifact: StoredArtifact) -> dict[str, str]:
    """Build the headers of a file, without its length."""
    return {
        **harmless_headers(artifact.path.rel.rpartition("/")[2], artifact.mime),
        "Accept-Ranges": "bytes",
        "Artifact-Version": str(artifact.version),
        "ETag": etag(artifact),
        "Last-Modified": format_datetime(datetime.fromisoformat(artifact.created), usegmt=True),
    }


def harmless_headers(name: str, mime: str) -> dict[str, str]:
    """Build headers with which a browser saves a file and does not run it.

    The media type is the file's; it is an attachment, not sniffed, in a sandboxed origin.
    """
    return {
        # A later version may have the same path: caches must revalidate.
        "Cache-Control": "private, no-cache",
        "Content-Disposition": content_disposition(name),
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Content-Type": media_type(mime),
        "X-Content-Type-Options": "nosniff",
    }


def etag(artifact: StoredArtifact) -> str:
    """Return the strong entity tag of a version: its SHA-256."""
    return f'"{artifact.sha256}"'


def is_unchanged(artifact: StoredArtifact, if_none_match: str | None) -> bool:
    """Whether ``If-None-Match`` names this version: weak comparison, a list, or ``*``."""
    return is_same_tag(etag(artifact), if_none_match)


def is_same_tag(tag: str, if_none_match: str | None) -> bool:
    """Whether ``If-None-Match`` names a strong entity tag."""
    if if_none_match is None:
        return False
    known = [given.strip().removeprefix("W/") for given in if_none_match.split(",")]
    return known == ["*"] or tag in known


def range_holds(artifact: StoredArtifact, if_range: str | None) -> bool:
    """Whether a range may be served: there is no ``If-Range``, or it names this version.

    A date never does: two versions may share a second, and a part of the wrong one would spoil the client's copy.
    """
    return if_range is None or if_range.strip() == etag(artifact)
