"""The port of the store of audit lines; those of stored calls are added by `CallStore.finish`."""

from typing import Protocol

from proofbox.service.calls.port import AuditDraft, AuditedLine, CallKey
from proofbox.service.identity import Principal


class AuditStore(Protocol):
    """The audit lines, a chain for each project of a tenant. All methods raise StoreFailedError."""

    async def of_call(self, key: CallKey) -> AuditedLine | None:
        """The line of a call; None while it has no answer, and for calls of releases that kept none."""

    async def add(self, principal: Principal, draft: AuditDraft) -> AuditedLine:
        """Adds a line that belongs to no stored call.

        Raises:
            StoreFullError: no space is left.
        """
