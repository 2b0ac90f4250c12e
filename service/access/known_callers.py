"""The limits of callers in a process that runs their calls later than their requests, or without these."""

from proofbox.service.access.authenticator import Keyring
from proofbox.service.access.quotas import NO_LIMITS, Allowances, Quotas, Share
from proofbox.service.identity import Principal

_SIGNED = ":"
"""In the id of a caller that came with a signed token; no id of an API key has it."""


async def learn_nothing(_principal: Principal) -> None:
    """Stands for `KnownCallers.learn` where the limits of callers never change."""


class KnownCallers:
    """Makes the quotas of this process know callers that another process has authenticated.

    Args:
        keyring: the API keys.
        quotas: of this process.
        without_key: the limits of requests without a key.
    """

    def __init__(self, keyring: Keyring, quotas: Quotas, without_key: Allowances = NO_LIMITS) -> None:
        self._keyring = keyring
        self._quotas = quotas
        self._without_key = without_key

    async def learn(self, principal: Principal) -> None:
        """Learn the limits and hosts of whoever asked for a call, as they are now.

        A key that was revoked since then keeps them. One that does not exist has no hosts.

        Raises:
            StoreFailedError: the keys cannot be read.
        """
        own = await self._own(principal.key_id)
        if own is not None:
            self._quotas.meter(principal.caller, own)

    async def _own(self, key_id: str | None) -> Allowances | None:
        if key_id is None:
            return self._without_key
        if _SIGNED in key_id:
            return Allowances()
        key = next((each for each in await self._keyring.all() if each.id == key_id), None)
        return None if key is None else Allowances.of_key(key)

    def running_share(self, caller: str) -> Share:
        """Return how many calls of a caller may run here; those that were accepted may all wait."""
        return Share(running=self._quotas.share(caller).running)
