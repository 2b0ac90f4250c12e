"""API keys in the database."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, select, update
from typing_extensions import override

from proofbox.service.access.api_keys import ApiKey, KeyStore, Permission
from proofbox.service.errors import CallerError
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import api_keys

_ALL = select(api_keys).order_by(api_keys.c.created, api_keys.c.id)
_ONE = select(api_keys).where(api_keys.c.id == bindparam("key_id"))
_USED = update(api_keys).where(api_keys.c.id == bindparam("key_id")).values(used=bindparam("used_at"))


class UnknownKeyError(CallerError):
    """No key has that id, or it is revoked and cannot be changed any more."""


class SqlApiKeys(KeyStore):
    """The KeyStore in the database, and what an operator does with keys.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def all(self) -> list[ApiKey]:
        return await self._database.read(lambda connection: [_key(row) for row in connection.execute(_ALL)])

    @override
    async def note_use(self, used: Mapping[str, str]) -> None:
        # In one order, so that two services that share nothing but the server never wait for each other.
        rows = [{"key_id": key_id, "used_at": at} for key_id, at in sorted(used.items())]
        if rows:
            await self._database.write(lambda connection: connection.execute(_USED, rows))

    async def add(self, key: ApiKey) -> None:
        """Store a new key.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """
        values = {
            "id": key.id,
            "name": key.name,
            "tenant": key.tenant,
            "project": key.project,
            "user_type": key.user_type,
            "user": key.user,
            "permissions": " ".join(sorted(key.permissions)),
            "limits": json.dumps(_stored_limits(key), sort_keys=True),
            "sha256": key.sha256,
            "created": key.created,
            "expires": key.expires,
        }
        await self._database.write(lambda connection: connection.execute(insert(api_keys), values))

    async def rotate(self, key_id: str, sha256: str, old_until: str) -> ApiKey:
        """Replace the secret of a key; the current one works until ``old_until``, an older one no longer.

        Raises:
            UnknownKeyError: no key of that id can be changed.
            StoreFailedError: the database failed.
        """

        def work(connection: Connection) -> ApiKey:
            known = _changeable(connection, key_id)
            changed = {"sha256": sha256, "old_sha256": known.sha256, "old_until": old_until}
            connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(changed))
            return _changeable(connection, key_id)

        return await self._database.write(work)

    async def revoke(self, key_id: str) -> ApiKey:
        """Revoke a key for ever.

        Raises:
            UnknownKeyError: no key of that id can be changed.
            StoreFailedError: the database failed.
        """

        def work(connection: Connection) -> ApiKey:
            _changeable(connection, key_id)
            connection.execute(update(api_keys).where(api_keys.c.id == key_id).values(revoked=utc_now()))
            return _key(connection.execute(_ONE, {"key_id": key_id}).one())

        return await self._database.write(work)


def _stored_limits(key: ApiKey) -> dict[str, Any]:
    lists = {"network": key.network, "packages": key.packages}
    return {**key.limits, **{name: list(value) for name, value in lists.items() if value is not None}}


def _changeable(connection: Connection, key_id: str) -> ApiKey:
    row = connection.execute(_ONE, {"key_id": key_id}).first()
    if row is None:
        raise UnknownKeyError(f"key '{key_id[:40]}' does not exist; 'proofbox keys list' shows all keys")
    if row.revoked is not None:
        raise UnknownKeyError(f"the key '{key_id}' was revoked at {row.revoked}; create another one")
    return _key(row)


def _key(row: Row[Any]) -> ApiKey:
    # A scope of a newer release that this one does not know gives nothing.
    known = {permission.value for permission in Permission}
    limits = json.loads(row.limits)
    network, packages = limits.pop("network", None), limits.pop("packages", None)
    return ApiKey(
        id=row.id,
        name=row.name,
        tenant=row.tenant,
        project=row.project,
        user_type=row.user_type,
        user=row.user,
        permissions=frozenset(Permission(name) for name in row.permissions.split() if name in known),
        limits=limits,
        network=None if network is None else tuple(network),
        packages=None if packages is None else tuple(packages),
        sha256=row.sha256,
        old_sha256=row.old_sha256,
        old_until=row.old_until,
        created=row.created,
        expires=row.expires,
        revoked=row.revoked,
        used=row.used,
    )
