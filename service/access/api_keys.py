"""API keys: how a secret looks, what is kept of it, and whom it speaks for.

A secret is ``pbx_<id>_<random><checksum>``: a prefix that scanners of source code find, the id that its record has,
43 random characters (256 bits) and a CRC-32, so that a scanner, and the door, tell a key from a look-alike without
asking anybody. What is kept is a SHA-256. A password needs a slow hash because it can be guessed; 256 random bits
cannot, at any speed.
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
_ID_CHARACTERS = "abcdefghijkmnpqrstuvwxyz23456789"  # nothing that is mistaken for another when it is read aloud
_ID_LENGTH = 12
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_LENGTH = 43
_CHECKSUM_LENGTH = 6
_SECRET = re.compile(rf"{PREFIX}_([a-z2-9]{{{_ID_LENGTH}}})_[0-9A-Za-z]{{{_RANDOM_LENGTH + _CHECKSUM_LENGTH}}}")
_NOBODYS = hashlib.sha256(b"").hexdigest()


class Permission(StrEnum):
    """What a key may do; each route asks for one, or for any key."""

    CALLS_RUN = "calls:run"
    CALLS_READ = "calls:read"
    ARTIFACTS_READ = "artifacts:read"
    ARTIFACTS_WRITE = "artifacts:write"
    TIMELINE_READ = "timeline:read"
    TIMELINE_WRITE = "timeline:write"
    METRICS_READ = "metrics:read"


ALL_PERMISSIONS = frozenset(Permission)
USUAL_PERMISSIONS = ALL_PERMISSIONS - {Permission.METRICS_READ}
"""What an agent's loop needs: the metrics count the calls of every tenant."""


@dataclass(frozen=True, slots=True)
class ApiKey:
    """What is kept of a key.

    Attributes:
        id: names it, also in logs.
        name: what its maker calls it.
        tenant: the tenant that it speaks for.
        project: the project; None: any, which a request names.
        user_type: the user type; None: the operator's.
        user: the user; None: the operator's.
        permissions: what it may do.
        sha256: the hash of its secret.
        created: when it was made: UTC, RFC 3339, ``Z``.
        limits: its own numbers in place of the operator's, by their names.
        old_sha256: the hash of the secret before the last rotation.
        old_until: until when that one works.
        expires: from when on it does not work.
        revoked: since when it does not work.
        used: about when it was used last.
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
        """Whether a secret is its own, or the one before while that still works. Takes the same time for any."""
        given = secret_sha256(secret)
        is_current = hmac.compare_digest(given, self.sha256)
        was_current = hmac.compare_digest(given, self.old_sha256 or _NOBODYS)
        old_works = self.old_until is not None and now < datetime.fromisoformat(self.old_until)
        return is_current or (was_current and old_works)


class KeyStore(Protocol):
    """Where keys are kept. All methods raise StoreFailedError if the store fails."""

    async def all(self) -> list[ApiKey]:
        """Every key, the oldest first."""

    async def note_use(self, used: Mapping[str, str]) -> None:
        """Writes down when keys were used last, by their ids."""


def new_key_id() -> str:
    """An id that no other key has."""
    return "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))


def new_secret(key_id: str) -> str:
    """A fresh secret of a key; nothing can tell it again."""
    unchecked = f"{PREFIX}_{key_id}_" + "".join(secrets.choice(_BASE62) for _ in range(_RANDOM_LENGTH))
    return unchecked + _checksum(unchecked)


def secret_sha256(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def key_id_of(secret: str) -> str | None:
    """The id that a secret names; None if it is no secret: another form, or a wrong checksum."""
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
