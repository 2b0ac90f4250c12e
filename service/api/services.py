"""What the HTTP doors lead to: the services and bounds that the composition root hands over."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Protocol

from fastapi import Depends, Request

from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import CallStatus
from service.access.authenticator import Access
from service.access.quotas import Quotas
from service.artifacts.attachments import Attachments
from service.artifacts.download_links import DownloadLinks
from service.artifacts.path_resolver import LogicalPathResolver
from service.artifacts.port import ArtifactStore, SourcePool
from service.calls.events import CallEvent
from service.calls.port import CallKey
from service.calls.service import Answer
from service.identity import Principal
from service.jobs.rerun import Provenance
from service.observability.metrics_port import Meter, NoMeter
from service.observability.tracing import NoTracer, Tracer
from service.sandbox.image_inventory import ImageInventory
from service.sandbox.port import SandboxEngine
from service.timeline.service import Timeline


class Ticket(Protocol):
    """The place of one request at a call that was accepted; ``key`` names it."""

    key: CallKey

    @property
    def replayed(self) -> bool:
        """The answer was stored before this request."""

    def answered(self) -> asyncio.Future[Answer]:
        """The call's one answer when there is one, not to be cancelled; the service's failures are answers too."""

    async def leave(self) -> None:
        """The client went away; when the last one has, the call goes on for a grace time only."""


class ToolCalls(Protocol):
    """The calls, as far as the doors need them."""

    async def submit(
        self,
        principal: Principal,
        request: ToolCallRequest,
        *,
        idempotency_key: str | None,
        request_id: str,
        detached: bool,
    ) -> Ticket:
        """Accepts a call, joins it or finds its answer.

        Raises:
            ServiceError: it is refused.
        """

    async def status(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """How a call stands.

        Raises:
            UnknownCallError: there is none of that id.
            AmbiguousCallError: several conversations have one.
        """

    async def cancel(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """Ends a call, or leaves one that has ended as it is; how it stands. Raises as ``status``."""

    async def events(
        self, principal: Principal, tool_call_id: str, conversation_id: str | None, *, after: int
    ) -> AsyncIterator[CallEvent]:
        """The events of a call with a greater id than ``after``, up to the terminal one. Raises as ``status``."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that a route may reach.

    Attributes:
        calls: the tool calls.
        provenance: the audit lines of calls, and running them again.
        attachments: takes attachments in; knows their largest size.
        artifacts: the files of conversations.
        sources: what the citations of conversations stand for.
        timeline: the event logs of conversations.
        recall: what logical paths mean that are no stored files.
        engine: where sandboxes come from; asked whether it answers.
        check_stores: raises the error of a store that could not take a call now.
        image: what the sandbox image has.
        access: who comes in, and as whom.
        quotas: how much each caller may ask for.
        links: makes and checks links to files that the store has no links to.
        public_url: how clients reach the service; empty: links begin with their path.
        hosts: the names under which the service may be asked; None: any.
        metrics: what `/metrics` says, in the text format.
        draining: whether the service takes no new calls any more.
        body_bytes_max: the largest request body but for attachments, in bytes.
        bodies_bytes_max: how many bytes of bodies, but for attachments, may be in memory at one time.
        body_s: how long a request's body may keep the service waiting, beyond a second for each 64 KiB.
        meter: counts requests.
        tracer: traces them.
        heartbeat_s: after so many seconds without an event a stream of events shows that it is alive.
        ping_s_max: how long engine and stores may take to answer when the service is asked whether it is ready.
    """

    calls: ToolCalls
    provenance: Provenance
    attachments: Attachments
    artifacts: ArtifactStore
    sources: SourcePool
    timeline: Timeline
    paths: LogicalPathResolver
    engine: SandboxEngine
    image: ImageInventory
    access: Access
    quotas: Quotas
    links: DownloadLinks
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
    # Below the time-out of the usual probes, so that they get the reason and not silence.
    ping_s_max: float = 5.0


async def doors_of(request: Request) -> Services:
    """The doors of the application that serves a request."""
    doors: Services = request.app.state.doors
    return doors


OpenDoors = Annotated[Services, Depends(doors_of)]
