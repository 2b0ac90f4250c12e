"""Files as lists and their metadata show them."""

from collections.abc import Callable
from typing import Any

from proofbox.service.facades.librechat.files import SessionFile


def describe(file: SessionFile) -> dict[str, Any]:
    """Return the metadata of a file."""
    artifact = file.artifact
    return {
        "name": file.object_name,
        "originalFilename": file.name,
        "size": artifact.size_bytes,
        "lastModified": artifact.created,
        "etag": artifact.sha256,
        "contentType": artifact.mime,
        "readOnly": file.is_read_only,
    }


def _summary(file: SessionFile) -> dict[str, Any]:
    artifact = file.artifact
    return {
        "name": file.object_name,
        "size": artifact.size_bytes,
        "lastModified": artifact.created,
        "etag": artifact.sha256,
    }


def _full(file: SessionFile) -> dict[str, Any]:
    mime = file.artifact.mime
    return {
        **_summary(file),
        "metadata": {"content-type": mime, "original-filename": file.name},
        "contentType": mime,
    }


def _normalized(file: SessionFile) -> dict[str, Any]:
    return {
        "id": file.id,
        "name": file.name,
        "storage_session_id": file.session,
        "size": file.artifact.size_bytes,
        "contentType": file.artifact.mime,
        "lastModified": file.artifact.created,
        **({"read_only": True} if file.is_read_only else {}),
    }


DETAILS: dict[str, Callable[[SessionFile], Any]] = {
    "simple": lambda file: file.object_name,
    "summary": _summary,
    "full": _full,
    "normalized": _normalized,
}
"""What a list has of each file, by the detail that the client asks for."""
