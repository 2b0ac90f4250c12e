"""Builds the stores that most parts of the service use."""

from dataclasses import dataclass

from proofbox.service.app.blob_stores import build_blob_store
from proofbox.service.app.settings import Settings
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.effects import dispatch_effects
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores.

    Attributes:
        database: the records of all stores.
        artifacts: the files of conversations.
        sources: the sources that citations name.
        timelines: the event logs of conversations.
        calls: the calls.
    """

    database: Database
    artifacts: SqlArtifactStore
    sources: SqlSourcePool
    timelines: SqlTimelineStore
    calls: SqlCallStore


def build_stores(settings: Settings, boot_id: str) -> Stores:
    """Build the stores of one process of the service.

    Raises:
        StoreFailedError: the settings of the object store make no client.
    """
    url, timeout_s = settings.database_url, settings.database_timeout_s
    database = Database(settings.data_dir, url, timeout_s, shared=settings.is_shared)
    artifacts = SqlArtifactStore(
        database,
        build_blob_store(settings),
        boot_id if settings.is_shared else "",
        # A disk that fails does not recover by itself, and its store may have moved the files.
        settings.s3_retry_s if settings.s3_bucket else 0,
    )
    calls = SqlCallStore(database, {**call_effects(), **dispatch_effects()})
    return Stores(database, artifacts, SqlSourcePool(database), SqlTimelineStore(database), calls)


def build_attachments(settings: Settings, stores: Stores) -> Attachments:
    """Build what stores the files that clients add."""
    return Attachments(
        stores.artifacts,
        stores.sources,
        bytes_max=settings.attachment_bytes_max,
        inline_bytes_max=settings.inline_bytes_max,
    )
