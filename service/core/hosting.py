"""Stores the files of a call, and notes in its record what was stored."""

from collections.abc import Sequence

from service.core.call_record import call_record
from service.core.scopes import Scope
from service.core.store_ports import ArtifactStore, NewArtifact, StoredArtifact


async def host(artifacts: ArtifactStore, scope: Scope, new: Sequence[NewArtifact]) -> list[StoredArtifact]:
    """Stores files, all of them or none; external ones become sources that can be cited.

    Raises:
        StoreFailedError, StoreFullError: a store failed.
    """
    stored = await artifacts.save(scope, new) if new else []
    call_record().stored += stored
    return stored
