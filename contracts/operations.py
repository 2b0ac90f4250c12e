"""What operators and users ask of a running service: its state, recent calls, the caller and the keys."""

from typing import Annotated, Literal

from pydantic import Field

from proofbox.contracts.network import ReachableHost
from proofbox.contracts.wire_model import WireModel

PAGE_CALLS_MAX = 500
CALLS_MINUTES_MAX = 7 * 24 * 60
"""How far the list of recent calls reaches back: a week."""


class ListedCall(WireModel):
    """One call, without its request and answer."""

    tool_call_id: str
    """The loop's own id."""
    conversation_id: str
    """Its conversation."""
    turn_id: str | None = None
    """Its turn; null if it is not known."""
    tool_id: str | None = None
    """The tool; null if it is not known."""
    status: Literal["open", "waiting", "done", "failed", "cancelled"]
    """``open`` is queued or runs, ``waiting`` needs an answer from outside; ``done`` has a response, ``failed``
    and ``cancelled`` have a problem."""
    code: str | None = None
    """``ok``, or the code of its error or problem; null while it is open."""
    created: str
    """When it was accepted: UTC, RFC 3339, ``Z``."""
    ended: str | None = None
    """When it ended; null while it is open."""
    files: int = 0
    """How many files of it were stored."""


class CallPage(WireModel):
    """A page of the recent calls of the user, the newest first."""

    calls: list[ListedCall]
    """The calls."""
    next: int | None
    """What the next request gives as ``before``; null on the last page."""


class PoolState(WireModel):
    """The warm pool's containers of one flavour."""

    flavour: str
    """Which libraries they have imported."""
    waiting: int
    """How many wait for a call."""
    starting: int
    """How many are being started."""
    wanted: int
    """How many should wait."""
    taken: dict[str, int]
    """Calls since the start that wanted this flavour, by what they got: ``warm``, ``bare``, ``cold``, ``own``."""


class ServiceStatus(WireModel):
    """The state of a running service: slots, queue, pool and engine."""

    version: str
    """The release."""
    boot_id: str
    """The id of the process, new with each start."""
    started: str
    """When the process started: UTC, RFC 3339, ``Z``."""
    state: Literal["serving", "draining"]
    """``draining``: it stops and takes no new calls."""
    engine: str
    """The container engine: ``docker`` or ``oci``."""
    engine_up: bool
    """Whether the engine answered when it was asked last."""
    running: int
    """Calls that have a slot."""
    running_max: int
    """How many slots there are."""
    queued: int
    """Calls that wait for a slot."""
    queue_max: int
    """How many calls may wait."""
    pool: list[PoolState]
    """The waiting containers, one entry for each flavour."""
    failed_starts: int
    """Containers that did not start, since the process started."""
    data_free_bytes: int | None
    """What is free on the file system of the data folder; null if it is not known."""


class LimitState(WireModel):
    """One limit of a caller."""

    name: str
    """Its name, such as ``calls_per_minute``."""
    limit: Annotated[int, Field(ge=0)]
    """Its value; 0: no limit."""
    own: bool
    """Whether it is set for the key; else it is the operator's for all keys."""
    used: int | None = None
    """How much of it is used now; null if it is not counted."""


class AllowedPackages(WireModel):
    """The Python packages that a caller's programs may have, beside the libraries of the image."""

    names: list[str] | None = None
    """The names that calls may ask for, sorted; what these need comes with them. Null: all of the index."""


class CallerInfo(WireModel):
    """The identity, scopes and limits of a request's caller."""

    tenant: str
    """The tenant."""
    project: str
    """The project."""
    user_type: str
    """What kind of user."""
    user: str
    """The user."""
    key_id: str | None = None
    """The id of the API key; null for a request without one."""
    scopes: list[str]
    """What it may do, sorted."""
    limits: list[LimitState]
    """Its limits."""
    network: list[ReachableHost] = []
    """The hosts that its programs may connect to; empty: none."""
    packages: AllowedPackages | None = None
    """The packages that its programs may have; null: none, because the operator has no package index."""


class ListedKey(WireModel):
    """One API key, without its secret and its hash."""

    key_id: str
    """Its id, also in logs."""
    name: str
    """The name that the operator gave it."""
    project: str | None = None
    """The project; null: any."""
    user_type: str | None = None
    """The user type; null: the operator's."""
    user: str | None = None
    """The user; null: the operator's."""
    scopes: list[str]
    """What it may do, sorted."""
    limits: dict[str, int]
    """The limits that it has of its own; 0: no limit."""
    network: list[str] | None = None
    """The hosts and ports that its programs may connect to, within the operator's; null: all of those."""
    packages: list[str] | None = None
    """The names of packages that its calls may ask for, within the operator's; null: all of those."""
    state: Literal["works", "expired", "revoked"]
    """Whether it works now."""
    created: str
    """When it was made: UTC, RFC 3339, ``Z``."""
    expires: str | None = None
    """When it expires."""
    revoked: str | None = None
    """When it was revoked."""
    used: str | None = None
    """When it was last used, to the minute."""


class KeyList(WireModel):
    """The API keys of the caller's tenant."""

    keys: list[ListedKey]
    """The keys, the oldest first."""
