"""Stores the files of a call, and notes in its record what was stored."""

from collections.abc import Sequence

from service.artifacts.port import ArtifactStore, NewArtifact, StoredArtifact
from service.calls.run_record import call_record
from service.identity import ConversationKey


async def host(
    artifacts: ArtifactStore, scope: ConversationKey, new: Sequence[NewArtifact]
) -> list[StoredArtifact]:
    """Stores files, all of them or none; external ones become sources that can be cited.

    Raises:
        StoreFailedError, StoreFullError: a store failed.
    """
    stored = await artifacts.save(scope, new) if new else []
    call_record().stored += stored
    return stored
