"""Builds what deletes conversations and runs that are not used any more."""

from proofbox.service.app.settings import Settings
from proofbox.service.app.stores import Stores
from proofbox.service.calls.admission import Admission
from proofbox.service.conversations.retention import RetentionPolicy, RetentionSweeper
from proofbox.service.conversations.service import Conversations
from proofbox.service.facades.librechat.ids import STATE_PREFIX, STATE_SWEPT_S
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.storage.gateway.run_retention import SqlRunRetention


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
