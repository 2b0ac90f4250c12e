"""Build what knows callers and gives their calls slots."""

import os
from dataclasses import dataclass

from proofbox.service.access.authenticator import Keyring
from proofbox.service.access.known_callers import KnownCallers
from proofbox.service.access.quotas import Quotas
from proofbox.service.app.auth_policy import allowances, allowances_without_key
from proofbox.service.app.settings import Settings
from proofbox.service.app.stores import Stores
from proofbox.service.calls.admission import Admission
from proofbox.service.storage.api_keys import SqlApiKeys


@dataclass(frozen=True, slots=True)
class CallerParts:
    """What knows callers.

    Attributes:
        keyring: the API keys.
        quotas: the usage of each caller.
        known: the callers of calls that waited, or that other processes accepted.
        admission: the slots of this process.
    """

    keyring: Keyring
    quotas: Quotas
    known: KnownCallers
    admission: Admission

    def load(self) -> float:
        """The load of the machine as the pool sees it: running calls for each core, 1 while calls wait."""
        admission = self.admission
        return 1.0 if admission.queued else admission.running / (os.cpu_count() or 1)


def build_callers(settings: Settings, stores: Stores) -> CallerParts:
    """Build what knows callers, from the settings and the stores of keys and files."""
    has_limit = settings.key_running_calls is not None
    quotas = Quotas(allowances(settings), stores.artifacts.stored_bytes, has_running_limit=has_limit)
    keyring = Keyring(SqlApiKeys(stores.database))
    known = KnownCallers(keyring, quotas, allowances_without_key(settings))
    share_of = known.running_share if settings.is_shared else quotas.share
    admission = Admission(running_max=settings.running_max, queue_max=settings.queue_max, share_of=share_of)
    return CallerParts(keyring, quotas, known, admission)
