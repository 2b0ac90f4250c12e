"""Signatures of webhooks by Standard Webhooks, the secrets that sign them, and the tokens that answer them.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from proofbox.service.access.bearer_tokens import CALLBACK_PREFIX
from proofbox.service.identity import Principal

PREVIOUS_VALID = timedelta(hours=24)
"""How long the secret before the current one signs too."""
SECRET_PREFIX = "whsec_"  # noqa: S105 - a prefix
_SECRET_BYTES_MIN, _SECRET_BYTES_MAX = 24, 64
_TOKEN = re.compile(r"pbt_(?P<wait_id>wait_[0-9a-f]{24})_(?P<mac>[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class SecretGeneration:
    """Which of its derived secrets an agent uses.

    Attributes:
        number: 1, and one more for each rotation.
        rotated: when the newest one began: UTC, RFC 3339, ``Z``; None if it is the first.
    """

    number: int
    rotated: str | None


class GenerationStore(Protocol):
    """The generations of the secrets of agents. All methods raise StoreFailedError if the store fails."""

    async def generation(self, principal: Principal, agent_id: str) -> SecretGeneration:
        """The generation of an agent of the principal's project.

        Raises:
            UnknownAgentError: there is no such agent.
        """

    async def rotate(self, principal: Principal, agent_id: str) -> SecretGeneration:
        """Begins the next generation. Raises as `generation`."""


@dataclass(frozen=True, slots=True)
class AgentSecret:
    """The secret of an agent, as it is shown to the services that verify its webhooks.

    Attributes:
        secret: ``whsec_…``.
        previous_until: until when the one before signs too: UTC, RFC 3339, ``Z``; None if it does not.
    """

    secret: str
    previous_until: str | None


class SigningSecrets:
    """The secrets of agents, derived from the master key; none is stored.

    Args:
        master_key: reads the master key; it may raise StoreFailedError.
        generations: which derived secret is in use.
    """

    def __init__(self, master_key: Callable[[], bytes], generations: GenerationStore) -> None:
        self._master_key = master_key
        self._generations = generations

    async def show(self, principal: Principal, agent_id: str, *, rotate: bool = False) -> AgentSecret:
        """The current secret of an agent, after the next generation has begun if that is asked for.

        Raises:
            UnknownAgentError: the project has no such agent.
            StoreFailedError: the master key or the generations cannot be read.
        """
        at = await (self._generations.rotate if rotate else self._generations.generation)(principal, agent_id)
        until = _previous_until(at)
        key = self._derive(principal, agent_id, at.number)
        return AgentSecret(SECRET_PREFIX + base64.b64encode(key).decode(), None if until is None else _text(until))

    async def keys_of(self, principal: Principal, agent_id: str) -> list[bytes]:
        """The keys that sign now, the current one first. Raises as `show`."""
        at = await self._generations.generation(principal, agent_id)
        numbers = [at.number, at.number - 1] if _previous_until(at) is not None else [at.number]
        return [self._derive(principal, agent_id, number) for number in numbers]

    def _derive(self, principal: Principal, agent_id: str, number: int) -> bytes:
        return _mac(
            self._master_key(), "webhook secret", principal.tenant, principal.project, agent_id, str(number)
        )


class CallbackTokens:
    """Tokens that answer one wait of one call: a service that calls back has nothing else.

    Args:
        master_key: reads the master key; it may raise StoreFailedError.
    """

    def __init__(self, master_key: Callable[[], bytes]) -> None:
        self._master_key = master_key

    def issue(self, wait_id: str, tool_call_id: str) -> str:
        """The token of a wait, which may not be stored yet."""
        return f"{CALLBACK_PREFIX}{wait_id}_{self._sign(wait_id, tool_call_id)}"

    def verify(self, token: str, tool_call_id: str) -> str | None:
        """The wait that a token answers; None if it is not one of ours, or belongs to another call."""
        found = _TOKEN.fullmatch(token)
        if found is None:
            return None
        expected = self._sign(found["wait_id"], tool_call_id)
        return found["wait_id"] if hmac.compare_digest(expected, found["mac"]) else None

    def _sign(self, wait_id: str, tool_call_id: str) -> str:
        return _mac(self._master_key(), "callback token", wait_id, tool_call_id).hex()


def parse_secret(text: str) -> bytes:
    """The key of a secret ``whsec_…``.

    Raises:
        ValueError: it is not one; the message does not have it.
    """
    if not text.startswith(SECRET_PREFIX):
        raise ValueError(f"the secret does not begin with {SECRET_PREFIX}")
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError(f"the secret is not base64 after {SECRET_PREFIX}") from None
    if not _SECRET_BYTES_MIN <= len(key) <= _SECRET_BYTES_MAX:
        raise ValueError(f"the secret has {len(key)} bytes (limit {_SECRET_BYTES_MIN} to {_SECRET_BYTES_MAX})")
    return key


def sign_webhook(keys: Sequence[bytes], webhook_id: str, timestamp: int, body: bytes) -> list[tuple[str, str]]:
    """The headers that sign a body.

    Args:
        keys: one signature for each.
        webhook_id: the same for all attempts of a call.
        timestamp: of this attempt, in seconds since 1970.
        body: the exact bytes that are sent.
    """
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    signatures = [base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys]
    return [
        ("webhook-id", webhook_id),
        ("webhook-timestamp", str(timestamp)),
        ("webhook-signature", " ".join(f"v1,{signature}" for signature in signatures)),
    ]


def _mac(key: bytes, purpose: str, *parts: str) -> bytes:
    """HMAC-SHA-256 over parts whose borders are unambiguous."""
    message = b"".join(
        len(raw).to_bytes(4, "big") + raw for raw in (part.encode(errors="replace") for part in (purpose, *parts))
    )
    return hmac.digest(key, message, hashlib.sha256)


def _previous_until(at: SecretGeneration) -> datetime | None:
    if at.rotated is None:
        return None
    until = datetime.fromisoformat(at.rotated) + PREVIOUS_VALID
    return until if until > datetime.now(UTC) else None


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
