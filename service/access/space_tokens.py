"""Space tokens: each opens one space as one entity, until it expires.

A token is ``pbs_<payload>.<signature>``: the payload is JSON as base64url without padding, the signature an
HMAC-SHA256 with a key of the service. No part of it is stored. Whether the entity is still a member is checked at
each request.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proofbox.service.access.bearer_tokens import SPACE_PREFIX
from proofbox.service.access_errors import NotAuthenticatedError

_SIGNED_FOR = b"proofbox space token 1."  # download links are signed with the same keys
_INVALID = "the space token is invalid or has expired; ask for another one"
SigningKeys = Callable[[], Sequence[tuple[str, bytes]]]
"""The ids and secrets of the keys in use, the newest first."""


@dataclass(frozen=True, slots=True)
class SpaceGrant:
    """What a space token opens.

    Attributes:
        tenant: the tenant of the space.
        project: its project.
        space_id: the space.
        entity_id: as whom.
        expires: until when, in seconds since 1970.
    """

    tenant: str
    project: str
    space_id: str
    entity_id: str
    expires: int


class SpaceTokens:
    """Makes and reads space tokens.

    Args:
        keys: the keys; the newest one signs, all of them verify.
        now: the time, in seconds since 1970.
    """

    def __init__(self, keys: SigningKeys, now: Callable[[], float]) -> None:
        self._keys = keys
        self._now = now

    def make(self, grant: SpaceGrant) -> str:
        """Return a token for a grant."""
        key_id, secret = self._keys()[0]
        fields = [key_id, grant.tenant, grant.project, grant.space_id, grant.entity_id, grant.expires]
        payload = _encode(json.dumps(fields, separators=(",", ":")).encode())
        return f"{SPACE_PREFIX}{payload}.{_encode(_sign(secret, payload))}"

    def expiry(self, expires_s: int) -> int:
        """Return the time that many seconds from now, in seconds since 1970."""
        return int(self._now()) + expires_s

    def left_s(self, grant: SpaceGrant) -> float:
        """Return for how many seconds a grant holds from now on."""
        return grant.expires - self._now()

    def read(self, token: str) -> SpaceGrant:
        """Return what a token opens.

        Raises:
            NotAuthenticatedError: it is invalid or has expired.
        """
        payload, _, signature = token.removeprefix(SPACE_PREFIX).partition(".")
        try:
            fields = json.loads(_decode(payload))
            given = _decode(signature)
            key_id, tenant, project, space_id, entity_id, expires = fields
        except (ValueError, TypeError, RecursionError) as exc:
            raise NotAuthenticatedError(_INVALID, was_given=True) from exc
        secret = next((secret for known, secret in self._keys() if known == key_id), None)
        is_signed = secret is not None and hmac.compare_digest(given, _sign(secret, payload))
        if not is_signed or not isinstance(expires, int) or expires <= self._now():
            raise NotAuthenticatedError(_INVALID, was_given=True)
        return SpaceGrant(tenant, project, space_id, entity_id, expires)


def _sign(secret: bytes, payload: str) -> bytes:
    return hmac.new(secret, _SIGNED_FOR + payload.encode(), hashlib.sha256).digest()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode(text: str) -> bytes:
    """Decode base64url in its only spelling. Raises ValueError."""
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as exc:
        raise ValueError(text) from exc
    if _encode(raw) != text:
        raise ValueError(text)
    return raw
