"""Authentication: the caller of a request, by its key or without one."""

import asyncio
import hmac
import logging
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from proofbox.service.access.api_keys import ALL_PERMISSIONS, ApiKey, KeyStore, Permission, key_id_of
from proofbox.service.access.bearer_tokens import SPACE_PREFIX, find_bearer_token
from proofbox.service.access.quotas import NO_LIMITS, Allowances
from proofbox.service.access.space_tokens import SpaceGrant, SpaceTokens
from proofbox.service.access_errors import MissingPermissionError, NotAuthenticatedError, WrongTenantError
from proofbox.service.errors import OurError, UnsafeNameError
from proofbox.service.identity import Principal

FRESH_S = 1.0
"""The age of cached keys: a revoked key works no longer than this."""
USES_STORED_EVERY_S = 60.0
TOKEN_PERMISSIONS = frozenset({Permission.SPACES_READ, Permission.SPACES_WRITE})
"""What a space token may do, in its space."""
_PROJECT = re.compile(r"[A-Za-z0-9_.@-]{1,100}")

_log = logging.getLogger("proofbox.access")


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request.

    Attributes:
        principal: the principal that it acts for.
        permissions: its permissions.
        own: limits of its key that replace the operator's.
        grant: what its space token opens; None: it has a key, or none is needed.
    """

    principal: Principal
    permissions: frozenset[Permission]
    own: Allowances
    grant: SpaceGrant | None = None

    def require(self, permission: Permission) -> None:
        """Require a permission.

        Raises:
            MissingPermissionError: the key does not have it.
        """
        if permission not in self.permissions:
            raise MissingPermissionError(
                f"the key {self.principal.key_id} does not have the scope {permission}; use a key that has it",
                permission,
            )


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The credentials of a request.

    Attributes:
        authorization: the values of ``Authorization``.
        tenant: the value of ``Proofbox-Tenant``.
        project: the value of ``Proofbox-Project``.
    """

    authorization: tuple[str, ...] = ()
    tenant: str | None = None
    project: str | None = None


class Keyring:
    """A cache of all API keys, refreshed every second.

    All keys are cached, so that requests with unknown keys do not reach the store.
    """

    def __init__(self, store: KeyStore) -> None:
        self._store = store
        self._keys: dict[str, ApiKey] = {}
        self._read_at = float("-inf")
        self._reading = asyncio.Lock()
        self._used: dict[str, str] = {}
        self._writing: asyncio.Task[None] | None = None

    async def find(self, secret: str) -> ApiKey | None:
        """Return the valid key of a secret, or None.

        Raises:
            StoreFailedError: the keys cannot be read.
        """
        await self._freshen()
        key = self._keys.get(key_id_of(secret) or "")
        now = datetime.now(UTC)
        if key is None or not key.has_secret(secret, now) or not key.works_at(now):
            return None
        self._used[key.id] = now.isoformat(timespec="seconds").replace("+00:00", "Z")
        return key

    async def all(self) -> list[ApiKey]:
        """Return all keys, also those that are expired or revoked, the oldest first.

        Raises:
            StoreFailedError: the keys cannot be read.
        """
        await self._freshen()
        return list(self._keys.values())

    async def has_any(self) -> bool:
        """Whether any key is valid now."""
        await self._freshen()
        now = datetime.now(UTC)
        return any(key.works_at(now) for key in self._keys.values())

    async def _freshen(self) -> None:
        if time.monotonic() - self._read_at < FRESH_S:
            return
        async with self._reading:
            if time.monotonic() - self._read_at < FRESH_S:
                return
            # The time before the query: a change during it is read again in time.
            queried_at = time.monotonic()
            self._keys = {key.id: key for key in await self._store.all()}
            self._read_at = queried_at

    def start(self) -> None:
        """Start to store regularly which keys were used."""
        self._writing = asyncio.create_task(self._write_uses())

    async def stop(self) -> None:
        """Stop, and store the rest."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)
        self._writing = None
        await self.write_uses()

    async def _write_uses(self) -> None:
        while True:
            await asyncio.sleep(USES_STORED_EVERY_S)
            await self.write_uses()

    async def write_uses(self) -> None:
        """Store which keys were used since the last time; after an error, with the next ones."""
        used, self._used = self._used, {}
        if not used:
            return
        try:
            await self._store.note_use(used)
        except OurError:
            _log.warning("the last use of keys could not be stored", exc_info=True)
            self._used = {**used, **self._used}


class Authenticator:
    """Determines the caller of a request from its credentials.

    Args:
        principal: the principal of requests without a key, and the defaults of keys without user or project.
        keyring: the keys; None: the header ``Authorization`` is ignored.
        required: whether a request without a key is refused.
        without_key: the limits of requests without a key.
        tokens: reads space tokens; None: there are none.
    """

    def __init__(
        self,
        principal: Principal,
        keyring: Keyring | None = None,
        *,
        required: bool = False,
        without_key: Allowances = NO_LIMITS,
        tokens: SpaceTokens | None = None,
    ) -> None:
        self._without_key = Caller(principal, ALL_PERMISSIONS, without_key)
        self._principal = principal
        self._keyring = keyring
        self._required = required
        self._tokens = tokens

    async def authenticate(self, credentials: RequestCredentials) -> Caller:
        """Return the caller of a request.

        Raises:
            NotAuthenticatedError: a key is required and missing, or the key is invalid.
            WrongTenantError: the request names a tenant or project of another caller.
            StoreFailedError: the keys cannot be read.
        """
        if (grant := await self._grant(credentials.authorization)) is not None:
            return _require_own_project(_token_caller(grant), credentials)
        if self._keyring is None or not (credentials.authorization or self._required):
            return _require_own_project(self._without_key, credentials)
        key = await self._keyring.find(_secret(credentials.authorization))
        if key is None:
            raise NotAuthenticatedError(
                "the key is unknown, expired or revoked; ask the operator for another", was_given=True
            )
        principal = Principal(
            key.tenant,
            key.project if key.project is not None else self._any_project(credentials.project),
            key.user_type or self._principal.user_type,
            key.user or self._principal.user,
            key.id,
        )
        own = Allowances.of_key(key)
        return _require_own_project(Caller(principal, key.permissions, own), credentials)

    async def _grant(self, authorization: tuple[str, ...]) -> SpaceGrant | None:
        """What the space token of a request opens; None if it has none."""
        if self._tokens is None or len(authorization) != 1:
            return None
        token = find_bearer_token(authorization[0], SPACE_PREFIX)
        if token is None:
            return None
        # In a thread: it checks whether the file of keys was changed.
        return await asyncio.to_thread(self._tokens.read, token)

    def _any_project(self, named: str | None) -> str:
        if named is None:
            return self._principal.project
        if _PROJECT.fullmatch(named) is None:
            raise UnsafeNameError("Proofbox-Project: a project has 1 to 100 characters of A-Z a-z 0-9 _ . @ -")
        return named


def _token_caller(grant: SpaceGrant) -> Caller:
    """The caller with a space token; each entity has request limits of its own."""
    principal = Principal(grant.tenant, grant.project, "space", grant.entity_id, f"space-token:{grant.entity_id}")
    return Caller(principal, TOKEN_PERMISSIONS, NO_LIMITS, grant)


def _secret(authorization: tuple[str, ...]) -> str:
    if not authorization:
        raise NotAuthenticatedError(
            "this service asks for an API key: send it as 'Authorization: Bearer pbx_…'; the operator makes one "
            "with 'proofbox keys create'",
            was_given=False,
        )
    scheme, _, secret = authorization[0].partition(" ")
    if len(authorization) > 1 or scheme.lower() != "bearer":
        raise NotAuthenticatedError("send one header, 'Authorization: Bearer pbx_…'", was_given=True)
    return secret.strip()


def _require_own_project(caller: Caller, credentials: RequestCredentials) -> Caller:
    for name, named, own in (
        ("Proofbox-Tenant", credentials.tenant, caller.principal.tenant),
        ("Proofbox-Project", credentials.project, caller.principal.project),
    ):
        if named is not None and not hmac.compare_digest(named.encode(), own.encode()):
            raise WrongTenantError(f"{name}: the request speaks for '{own}' by its key; leave the header out")
    return caller
