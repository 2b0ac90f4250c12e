"""The services that routes use, and the limits of requests."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

from fastapi import Depends, Request
from pydantic import ValidationError

from proofbox.contracts.network import ReachableHost
from proofbox.contracts.operations import AllowedPackages, ServiceStatus
from proofbox.contracts.problems import FieldError
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import CallStatus
from proofbox.service.access.api_keys import ApiKey
from proofbox.service.access.authenticator import Authenticator
from proofbox.service.access.quotas import Quotas
from proofbox.service.api.gateway_services import GatewayServices
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.download_links import DownloadLinks
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import ArtifactStore, FileHistory, SourcePool
from proofbox.service.artifacts.upload_links import UploadLinks
from proofbox.service.calls.events import CallEvent
from proofbox.service.calls.port import CallKey, RecentCalls
from proofbox.service.calls.service import Answer
from proofbox.service.conversations.service import Conversations
from proofbox.service.identity import Principal
from proofbox.service.jobs.rerun import Provenance
from proofbox.service.observability.metrics_port import Meter, NoMeter
from proofbox.service.observability.tracing import NoTracer, Tracer
from proofbox.service.previews.service import Previews
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.port import SandboxEngine
from proofbox.service.timeline.service import Timeline


class Ticket(Protocol):
    """The subscription of one request to an accepted call; ``key`` names the call."""

    key: CallKey

    @property
    def replayed(self) -> bool:
        """Whether the answer was stored before this request."""

    def answered(self) -> asyncio.Future[Answer]:
        """The call's one answer when there is one, not to be cancelled; the service's failures are answers too."""

    def ended(self) -> asyncio.Future[Answer]:
        """As `answered`; of a call that waits for an answer from outside, what comes after that."""

    async def leave(self) -> None:
        """The client went away; when the last one has, the call goes on for a grace time only."""


class ToolCalls(Protocol):
    """The calls, as far as the routes need them."""

    async def submit(
        self,
        principal: Principal,
        request: ToolCallRequest,
        *,
        idempotency_key: str | None,
        request_id: str,
        detached: bool,
        run_lease: int | None = None,
    ) -> Ticket:
        """Accept a call, joins it or finds its answer.

        ``run_lease`` is the sender's lease of the run that the request names.

        Raises:
            ServiceError: it is refused.
        """

    def find_mistakes(self, principal: Principal, body: Any, refused: ValidationError) -> list[FieldError]:
        """What is wrong with a request whose envelope was refused, beyond that."""

    async def status(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """How a call stands.

        Raises:
            UnknownCallError: no call has that id.
            AmbiguousCallError: several conversations have one.
        """

    async def cancel(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """End a call, or leaves one that has ended as it is; how it stands. Raises as ``status``."""

    async def events(
        self, principal: Principal, tool_call_id: str, conversation_id: str | None, *, after: int
    ) -> AsyncIterator[CallEvent]:
        """The events of a call with a greater id than ``after``, up to the terminal one. Raises as ``status``."""


class Operations(Protocol):
    """What operators ask of the process."""

    async def status(self) -> ServiceStatus:
        """Slots, queue, pool and engine now."""

    async def keys(self) -> list[ApiKey]:
        """All API keys, the oldest first.

        Raises:
            StoreFailedError: the keys cannot be read.
        """

    def calls_of(self, caller: str) -> tuple[int, int]:
        """How many calls of a caller run, and how many wait."""


async def _find_nothing() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True)
class Services:
    """All services that a route may use.

    Attributes:
        calls: the life cycle of tool calls.
        provenance: audit lines and reruns.
        attachments: stores uploaded attachments.
        artifacts: the files of conversations.
        history: the versions of files and of calls.
        previews: pictures, tables and differences of files.
        recent_calls: the calls of the last hours.
        operations: the state of the process, and the keys.
        conversations: lists and deletes conversations and their files.
        sources: the sources that citations name.
        timeline: the event logs of conversations.
        recall: resolves logical paths that are not stored files.
        engine: the sandbox engine, for the readiness check.
        ping_engine: what the readiness check asks in place of the engine, in a process that runs no calls.
        find_away: what is away that accepted calls wait for: each part, and why.
        check_stores: raises the error of a store that cannot accept a call now.
        image: the inventory of the sandbox image.
        authenticator: identifies the caller of a request.
        quotas: the limits of callers.
        links: creates and verifies download links where the store has none.
        uploads: creates and verifies upload links.
        public_url: the URL of the service for clients; empty: links begin with their path.
        hosts: the host names of the service; None: any.
        metrics: the metrics, in the text format.
        draining: whether the service refuses new calls because it stops.
        body_bytes_max: the largest request body but for attachments, in bytes.
        bodies_bytes_max: the bytes of all bodies in memory, without attachments.
        body_s: how long the service waits for a request's body, beyond a second for each 64 KiB.
        meter: counts requests.
        tracer: traces them.
        heartbeat_s: the time between heartbeats of an event stream.
        ping_s_max: the timeout of engine and stores in the readiness check.
        absent_tools: the tools that the catalogue leaves out, and why.
        packages_of: returns the packages that the programs of a caller may have; None: the operator has no index.
        space_origins: the origins of web pages that may use the routes of spaces.
        network_of: lists the hosts that the programs of a caller may connect to.
        gateway: agents, runs, spaces and waits; None: an application without their routes, for tests.
    """

    calls: ToolCalls
    provenance: Provenance
    attachments: Attachments
    artifacts: ArtifactStore
    history: FileHistory
    previews: Previews
    recent_calls: RecentCalls
    operations: Operations
    conversations: Conversations
    sources: SourcePool
    timeline: Timeline
    paths: LogicalPathResolver
    engine: SandboxEngine
    image: ImageInventory
    authenticator: Authenticator
    quotas: Quotas
    links: DownloadLinks
    uploads: UploadLinks
    hosts: frozenset[str] | None
    metrics: Callable[[], bytes]
    draining: Callable[[], bool]
    check_stores: Callable[[], Awaitable[None]]
    body_bytes_max: int
    public_url: str = ""
    bodies_bytes_max: int = 512 * 1024 * 1024
    body_s: float = 60.0
    meter: Meter = field(default_factory=NoMeter)
    tracer: Tracer = field(default_factory=NoTracer)
    heartbeat_s: float = 15.0
    # Below the timeout of usual probes, so that they receive the reason.
    ping_s_max: float = 5.0
    absent_tools: Mapping[str, str] = field(default_factory=dict)
    packages_of: Callable[[Principal], AllowedPackages | None] = lambda _: None
    space_origins: frozenset[str] = frozenset()
    network_of: Callable[[Principal], list[ReachableHost]] = lambda _: []
    gateway: GatewayServices | None = None
    ping_engine: Callable[[], Awaitable[None]] | None = None
    find_away: Callable[[], Awaitable[Mapping[str, str]]] = _find_nothing


async def get_services(request: Request) -> Services:
    """Return the services of the application that serves a request."""
    services: Services = request.app.state.services
    return services


def require_gateway(services: Services) -> GatewayServices:
    """Return the services of agents, runs, spaces and waits."""
    if services.gateway is None:
        raise AssertionError("the application has no services for agents, runs, spaces and waits")
    return services.gateway


InjectedServices = Annotated[Services, Depends(get_services)]
