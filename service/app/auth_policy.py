"""The policy of authentication by the settings: when keys are required, host names, limits of callers."""

import ipaddress
import math

from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.access.quotas import NO_LIMITS, Allowances
from proofbox.service.access.space_tokens import SpaceTokens
from proofbox.service.app.settings import Settings
from proofbox.service.errors import ServiceError
from proofbox.service.identity import Principal

_LOCALHOST = "localhost"


class StartRefusedError(ServiceError):
    """The service would let in every client, or none."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens at an address."""
    if host == _LOCALHOST:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def needs_keys(settings: Settings) -> bool:
    """Whether a request without a key is refused.

    Raises:
        StartRefusedError: the settings would let in everybody who reaches the service.
    """
    if settings.auth != "off":
        return settings.auth == "required" or not is_loopback(settings.host)
    if not is_loopback(settings.host) and not settings.behind_authenticating_proxy:
        raise StartRefusedError(
            f"PROOFBOX_AUTH is off and PROOFBOX_HOST {settings.host} is reached by others: leave PROOFBOX_AUTH "
            "out, or set PROOFBOX_BEHIND_AUTHENTICATING_PROXY=true if a proxy in front decides who comes in"
        )
    return False


def build_authenticator(
    settings: Settings, principal: Principal, keyring: Keyring, tokens: SpaceTokens
) -> Authenticator:
    """Build the authenticator; it takes space tokens as well as keys."""
    return Authenticator(
        principal,
        None if settings.auth == "off" else keyring,
        required=needs_keys(settings),
        without_key=allowances_without_key(settings),
        tokens=tokens,
    )


def allowed_hosts(settings: Settings) -> frozenset[str] | None:
    """Return the host names of the service; None where a key, or a proxy, refuses web pages."""
    if needs_keys(settings) or settings.behind_authenticating_proxy:
        return None
    return frozenset(name.lower() for name in (*settings.allowed_hosts, settings.host, _LOCALHOST))


def allowances_without_key(settings: Settings) -> Allowances:
    """Return the limits of requests without a key."""
    return Allowances() if settings.limits_without_key else NO_LIMITS


def allowances(settings: Settings) -> Allowances:
    """Return the limits of a key without limits of its own."""
    running = settings.key_running_calls
    return Allowances(
        requests_per_minute=settings.key_requests_per_minute,
        calls_per_minute=settings.key_calls_per_minute,
        upload_bytes_per_minute=settings.key_upload_bytes_per_minute,
        running_calls=max(1, settings.running_max * 3 // 4) if running is None else running,
        queued_calls=settings.key_queued_calls,
        stored_bytes=settings.key_stored_bytes,
        package_count=settings.package_call_count_max,
        package_bytes=settings.package_call_bytes_max,
        package_install_s=math.ceil(settings.package_install_s),
    )


async def refuse_without_keys(settings: Settings, keyring: Keyring) -> None:
    """Refuse to start where keys are required and none exists.

    Raises:
        StartRefusedError: no client could authenticate.
        StoreFailedError: the keys cannot be read.
    """
    if not needs_keys(settings) or await keyring.has_any():
        return
    way_out = "create one with 'proofbox keys create --name <name>'"
    if is_loopback(settings.host):
        raise StartRefusedError(
            f"PROOFBOX_AUTH is required and no API key exists: {way_out}, or leave PROOFBOX_AUTH out"
        )
    raise StartRefusedError(
        f"the service would listen at {settings.host}, where others reach it, and has no API key: {way_out}, or "
        "set PROOFBOX_HOST=127.0.0.1"
    )
