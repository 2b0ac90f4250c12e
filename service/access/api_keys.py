"""API keys: the format of a secret, its stored hash, and the principal of a key.

A secret is ``pbx_<id>_<random><checksum>``: a prefix that secret scanners find, the id of its record, 43 random
characters (256 bits) and a CRC-32, by which a scanner and the service recognise a mistyped key without a look-up.
The store has its SHA-256. A password needs a slow hash because it can be guessed; 256 random bits cannot.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

PREFIX = "pbx"
_ID_CHARACTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # without characters that look alike
_ID_LENGTH = 12
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_LENGTH = 43
_CHECKSUM_LENGTH = 6
_SECRET = re.compile(rf"{PREFIX}_([a-z2-9]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{{_RANDOM_LENGTH + _CHECKSUM_LENGTH}}}")
_NO_SECRET = hashlib.sha256(b"").hexdigest()


class Permission(StrEnum):
    """A permission of a key; each route requires one, or any key."""

    CALLS_RUN = "calls:run"
    CALLS_READ = "calls:read"
    ARTIFACTS_READ = "artifacts:read"
    ARTIFACTS_WRITE = "artifacts:write"
    TIMELINE_READ = "timeline:read"
    TIMELINE_WRITE = "timeline:write"
    METRICS_READ = "metrics:read"
    KEYS_READ = "keys:read"
    AGENTS_READ = "agents:read"
    AGENTS_WRITE = "agents:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    SPACES_READ = "spaces:read"
    SPACES_WRITE = "spaces:write"
    SPACES_ACT_AS = "spaces:act_as"


ALL_PERMISSIONS = frozenset(Permission)
USUAL_PERMISSIONS = ALL_PERMISSIONS - {
    Permission.METRICS_READ,
    Permission.KEYS_READ,
    Permission.AGENTS_WRITE,
    Permission.SPACES_ACT_AS,
}
"""What an agent needs. The others are given on request only: the metrics count the calls of every tenant, the keys
are the operator's concern, whoever
writes an agent's tools makes the service send requests, and `spaces:act_as` answers in the name of others."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """The record of a key.

    Attributes:
        id: its id, also in logs.
        name: the name that the operator gave it.
        tenant: the tenant that it acts for.
        project: the project; None: any, which a request names.
        user_type: the user type; None: the operator's.
        user: the user; None: the operator's.
        permissions: its permissions.
        sha256: the hash of its secret.
        created: its creation time: UTC, RFC 3339, ``Z``.
        limits: its limits that replace the operator's.
        network: hosts and ports that its programs may connect to, within the operator's; None: all of those.
        packages: names of packages that its calls may ask for, within the operator's; None: all of those.
        old_sha256: the hash of the secret before the last rotation.
        old_until: when that one expires.
        expires: when it expires.
        revoked: when it was revoked.
        used: about when it was last used.
    """

    id: str
    name: str
    tenant: str
    project: str | None
    user_type: str | None
    user: str | None
    permissions: frozenset[Permission]
    sha256: str
    created: str
    limits: Mapping[str, int] = field(default_factory=dict)
    network: tuple[str, ...] | None = None
    packages: tuple[str, ...] | None = None
    old_sha256: str | None = None
    old_until: str | None = None
    expires: str | None = None
    revoked: str | None = None
    used: str | None = None

    def works_at(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and not (
            self.expires is not None and datetime.fromisoformat(self.expires) <= now
        )

    def has_secret(self, secret: str, now: datetime) -> bool:
        """Whether a secret is the current one, or the previous one before it expires; in constant time."""
        given = secret_sha256(secret)
        is_current = hmac.compare_digest(given, self.sha256)
        was_current = hmac.compare_digest(given, self.old_sha256 or _NO_SECRET)
        old_works = self.old_until is not None and now < datetime.fromisoformat(self.old_until)
        return is_current or (was_current and old_works)


class KeyStore(Protocol):
    """The store of keys. All methods raise StoreFailedError if the store fails."""

    async def all(self) -> list[ApiKey]:
        """Return all keys, the oldest first."""

    async def note_use(self, used: Mapping[str, str]) -> None:
        """Store when keys were last used, by their ids."""


def new_key_id() -> str:
    """Return a random id."""
    return "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))


def new_secret(key_id: str) -> str:
    """Return a new secret of a key; only its hash is stored."""
    unchecked = f"{PREFIX}_{key_id}_" + "".join(secrets.choice(_BASE62) for _ in range(_RANDOM_LENGTH))
    return unchecked + _checksum(unchecked)


def secret_sha256(secret: str) -> str:
    """Return the stored hash of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def key_id_of(secret: str) -> str | None:
    """Return the id in a secret; None if the format or the checksum is wrong."""
    match = _SECRET.fullmatch(secret)
    if match is None or _checksum(secret[:-_CHECKSUM_LENGTH]) != secret[-_CHECKSUM_LENGTH:]:
        return None
    return match[1]


def _checksum(text: str) -> str:
    number, characters = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_BASE62))
        characters = _BASE62[digit] + characters
    return characters
