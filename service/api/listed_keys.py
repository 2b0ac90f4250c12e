"""API keys and limits as they are listed, for the caller who may see them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from proofbox.contracts.operations import LimitState, ListedKey
from proofbox.service.access.api_keys import ApiKey
from proofbox.service.access.quotas import ALLOWANCE_NAMES, CallerMeter
from proofbox.service.api.services import Services
from proofbox.service.identity import Principal


def list_keys(keys: Sequence[ApiKey], principal: Principal) -> list[ListedKey]:
    """Build the entries of the keys that a caller may see: of its tenant, and of its project if it has only one."""
    own = next((key for key in keys if key.id == principal.key_id), None)
    project = None if own is None else own.project
    now = datetime.now(UTC)
    return [
        _entry(key, now)
        for key in keys
        if key.tenant == principal.tenant and (project is None or key.project == project)
    ]


def _entry(key: ApiKey, now: datetime) -> ListedKey:
    return ListedKey(
        key_id=key.id,
        name=key.name,
        project=key.project,
        user_type=key.user_type,
        user=key.user,
        scopes=sorted(key.permissions),
        limits=dict(key.limits),
        network=None if key.network is None else list(key.network),
        packages=None if key.packages is None else list(key.packages),
        state="revoked" if key.revoked else "works" if key.works_at(now) else "expired",
        created=key.created,
        expires=key.expires,
        revoked=key.revoked,
        used=key.used,
    )


async def describe_limits(services: Services, principal: Principal, meter: CallerMeter) -> list[LimitState]:
    """Build the limits of a caller, with what is used of them.

    Raises:
        StoreFailedError: the stored bytes cannot be read.
    """
    allowed, own = asdict(meter.allowed), asdict(meter.own)
    has_key = principal.key_id is not None
    has_packages = services.packages_of(principal) is not None
    running, queued = services.operations.calls_of(principal.caller)
    used: dict[str, int | None] = {
        **meter.used(),
        "running_calls": running,
        "queued_calls": queued,
        "stored_bytes": await services.quotas.stored_bytes(principal.tenant, principal.project),
    }
    return [
        LimitState(name=name, limit=allowed[name] or 0, own=has_key and own[name] is not None, used=used.get(name))
        for name in ALLOWANCE_NAMES
        if has_packages or not name.startswith("package_")
    ]
