"""The audit line of a deletion: who deleted what, why, and how much it was."""

from typing import Annotated, Literal

from pydantic import Field

from proofbox.contracts.provenance import AuditPrincipal, AuditService, Sha256
from proofbox.contracts.wire_model import WireModel

DELETION_FORMAT = "proofbox-audit-deletion-1"
DeletionReason = Literal["request", "retention"]


class DeletedData(WireModel):
    """What was deleted."""

    conversation_id: str
    """The conversation."""
    path: str | None = None
    """The logical path of the one file that was deleted; none if it was the whole conversation."""
    reason: DeletionReason
    """``request``: a client deleted it; ``retention``: it was unused for as long as the operator allows."""
    files: Annotated[int, Field(ge=0)]
    """How many files and attachments."""
    versions: Annotated[int, Field(ge=0)]
    """How many versions of them."""
    size_bytes: Annotated[int, Field(ge=0)]
    """The bytes of all these versions."""
    calls: Annotated[int, Field(ge=0)] = 0
    """How many calls, with their stored answers."""
    blocks: Annotated[int, Field(ge=0)] = 0
    """How many blocks of the timeline; of a single file those whose content was removed."""
    deleted: str
    """When: UTC, RFC 3339, ``Z``."""


class DeletionLine(WireModel):
    """A line of the audit log for a deletion; it stands in the same chain as the lines of calls."""

    seq: Annotated[int, Field(ge=1)]
    """Its number in the chain, 1 for the first."""
    previous: Sha256 | None
    """The SHA-256 of the line before it, byte for byte; null for the first."""
    format: Literal["proofbox-audit-deletion-1"] = "proofbox-audit-deletion-1"
    """How the line is to be read."""
    principal: AuditPrincipal
    """Whose data it was; with the id of the API key that asked for it."""
    service: AuditService
    """Which service."""
    request_id: str | None = None
    """The HTTP request, as in the log."""
    deletion: DeletedData
    """What was deleted."""
