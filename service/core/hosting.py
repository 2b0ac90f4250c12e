"""Stores the files of a call; those that the user gets become sources that can be cited."""

from collections.abc import Sequence

from service.core.call_record import call_record
from service.core.scopes import Scope
from service.core.store_ports import ArtifactStore, NewArtifact, SourcePool, StoredArtifact


async def host(
    artifacts: ArtifactStore, sources: SourcePool, scope: Scope, new: Sequence[NewArtifact]
) -> list[StoredArtifact]:
    """Stores files, all of them or none; external ones get their rows in the sources pool.

    Raises:
        StoreFailedError, StoreFullError: a store failed.
    """
    stored = await artifacts.save(scope, new) if new else []
    call_record().stored += stored
    external = [version for version in stored if version.visibility == "external"]
    if external:
        await sources.add_files(scope, external)
    return stored
