"""Work on the stores: retention, and what commands do while no service runs."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from proofbox.contracts.provenance import AuditService
from proofbox.service.access.quotas import NO_LIMITS, Quotas
from proofbox.service.api.app import release
from proofbox.service.app.blob_stores import build_blob_store
from proofbox.service.app.settings import Settings
from proofbox.service.app.stores import Stores
from proofbox.service.calls.admission import Admission
from proofbox.service.conversations.port import RunRetention
from proofbox.service.conversations.retention import RetentionPolicy, RetentionSweeper
from proofbox.service.conversations.service import Conversations
from proofbox.service.errors import StoreFailedError
from proofbox.service.facades.librechat.ids import STATE_PREFIX, STATE_SWEPT_S
from proofbox.service.identity import ConversationKey
from proofbox.service.observability.metrics_port import NoMeter
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.check.store_check import StoreCheck
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.run_retention import SqlRunRetention


class NoCalls:
    """The calls of a process that runs none."""

    async def is_busy(self, scope: ConversationKey) -> bool:  # noqa: ARG002 - a port
        """Return False: the store knows which calls a service left open."""
        return False

    def forget_conversation(self, scope: ConversationKey) -> None:
        """Do nothing."""


@asynccontextmanager
async def opened_conversations(settings: Settings) -> AsyncIterator[tuple[Conversations, RunRetention]]:
    """Open the stores for deletions: conversations, and ended runs of agents.

    Raises:
        StoreFailedError: a store cannot be used, or the service runs and uses it.
        StoreFullError: no space is left.
    """
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open()
    try:
        artifacts = SqlArtifactStore(database, build_blob_store(settings))
        await artifacts.open()
        try:
            store = SqlConversationStore(database, artifacts)
            audited = AuditService(version=release(), boot_id=secrets.token_hex(4))
            conversations = Conversations(store, artifacts, NoCalls(), Quotas(NO_LIMITS), NoMeter(), audited)
            yield conversations, SqlRunRetention(database)
        finally:
            await artifacts.close()
    finally:
        await database.close()


@asynccontextmanager
async def opened_check(settings: Settings, progress: Callable[[str], None]) -> AsyncIterator[StoreCheck]:
    """Open the stores for a check; a service may use them meanwhile.

    Raises:
        StoreFailedError: a store cannot be used, or there is no database.
    """
    is_here = not settings.database_url.get_secret_value()
    if is_here and not (settings.data_dir / "proofbox.sqlite3").is_file():
        raise StoreFailedError("data_dir: the folder has no database of the service; set PROOFBOX_DATA_DIR")
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    is_idle = await database.open_beside()
    try:
        yield StoreCheck(database, build_blob_store(settings), is_idle=is_idle, progress=progress)
    finally:
        await database.close()


def build_retention(
    settings: Settings, stores: Stores, conversations: Conversations, admission: Admission, meter: PrometheusMeter
) -> RetentionSweeper:
    """Build the retention sweeper, which is not started."""
    runs = SqlRunRetention(stores.database)
    return RetentionSweeper(conversations, retention_policy(settings), lambda: admission.queued > 0, meter, runs)


def retention_policy(settings: Settings) -> RetentionPolicy:
    """Return which conversations the retention sweeper deletes."""
    temporary = ((STATE_PREFIX, STATE_SWEPT_S),) if settings.librechat else ()
    return RetentionPolicy(settings.retention_days, settings.retention_every_s, temporary)
