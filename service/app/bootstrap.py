"""The composition root: build stores, engine and services from the settings, open and close them."""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from proofbox.contracts.provenance import AuditService
from proofbox.service.access.authenticator import Keyring
from proofbox.service.access.quotas import Quotas
from proofbox.service.api.app import release
from proofbox.service.app.auth_policy import refuse_without_keys
from proofbox.service.app.calls.callers import CallerParts, build_callers
from proofbox.service.app.calls.programs import (
    Outside,
    build_one_shot,
    build_provenance,
    build_tool_dependencies,
    call_limits,
)
from proofbox.service.app.gateway import (
    Gateway,
    GatewayDependencies,
    GatewayParts,
    build_gateway,
    build_gateway_parts,
)
from proofbox.service.app.maintenance import build_retention
from proofbox.service.app.network import LOOKUPS, build_network
from proofbox.service.app.operations import ProcessOperations, ProcessParts
from proofbox.service.app.processes.shared_jobs import SharedJobs
from proofbox.service.app.processes.wiring import Dispatching, DispatchNeeds
from proofbox.service.app.sandbox_engine import sandbox_engine
from proofbox.service.app.settings import Settings
from proofbox.service.app.stores import Stores, build_attachments, build_stores
from proofbox.service.app.telemetry import build_meter, build_tracer
from proofbox.service.app.tools import ToolDependencies, all_tools, cache_policy
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.download_links import DownloadLinks
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.upload_links import UploadLinks
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.concurrency import RepeatedJob
from proofbox.service.conversations.retention import RetentionSweeper
from proofbox.service.conversations.service import Conversations
from proofbox.service.egress.policy import CallerHosts, NetworkPolicy
from proofbox.service.identity import Principal
from proofbox.service.jobs.one_shot import OneShotJobs
from proofbox.service.jobs.rerun import Provenance
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.observability.tracing import Tracer
from proofbox.service.packages.port import Packages
from proofbox.service.previews.service import Previews
from proofbox.service.sandbox.containers import Containers
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.storage.artifacts.history import SqlFileHistory
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.audit_head_files import HeadFiles
from proofbox.service.storage.audit_signing import HeadSigner
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.link_keys import LinkKeyFile
from proofbox.service.storage.recent_calls import SqlRecentCalls
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.timeline.service import Timeline
from proofbox.service.web.client.resolver import Resolver, SystemResolver

log = logging.getLogger("proofbox")

_BOOT_ID_BYTES = 4


@dataclass(frozen=True, slots=True)
class Service:
    """All parts of the service.

    Attributes:
        settings: the settings.
        principal: the principal of requests without a key.
        keyring: the API keys.
        quotas: the usage of each caller.
        links: creates and verifies download links.
        uploads: creates and verifies upload links.
        database: the records of all stores.
        artifacts: the files of conversations.
        conversations: lists and deletes conversations.
        upkeep: deletes those that are not used any more, and makes the vectors of an earlier model again.
        sources: the sources that citations name.
        timeline: the event logs of conversations.
        paths: resolves logical paths.
        attachments: stores uploaded attachments.
        engine: the sandbox engine.
        image: the inventory of the sandbox image.
        calls: the life cycle of tool calls.
        gateway: agents, their runs, spaces and waits.
        provenance: audit lines and reruns.
        one_shot: runs programs for requests without a conversation.
        history: the versions of files and of calls.
        previews: pictures, tables and differences of files.
        recent_calls: the calls of the last hours.
        operations: the state of the process, and the keys.
        heads: signs the last audit line of each chain.
        meter: metrics.
        tracer: traces.
        network: decides about the network of programs.
        packages: installs packages for programs; None if the operator has no index.
        resolvers: resolve host names, of web pages and of programs.
        dispatching: what a process of many has; None for a service of one process.
    """

    settings: Settings
    principal: Principal
    keyring: Keyring
    quotas: Quotas
    links: DownloadLinks
    uploads: UploadLinks
    database: Database
    artifacts: SqlArtifactStore
    conversations: Conversations
    upkeep: Sequence[RetentionSweeper | RepeatedJob]
    sources: SqlSourcePool
    timeline: Timeline
    paths: LogicalPathResolver
    attachments: Attachments
    engine: PooledEngine
    image: ImageInventory
    calls: Calls
    gateway: Gateway
    provenance: Provenance
    one_shot: OneShotJobs
    history: SqlFileHistory
    previews: Previews
    recent_calls: SqlRecentCalls
    operations: ProcessOperations
    heads: HeadSigner
    meter: PrometheusMeter
    tracer: Tracer
    network: NetworkPolicy
    packages: Packages | None
    resolvers: tuple[SystemResolver, ...]
    dispatching: Dispatching | None = None


@dataclass(frozen=True, slots=True)
class _Base:
    """What calls are built on."""

    audited: AuditService
    stores: Stores
    tracer: Tracer
    callers: CallerParts
    engine: PooledEngine
    image: ImageInventory
    network: NetworkPolicy
    resolvers: tuple[SystemResolver, SystemResolver]
    tools: ToolDependencies
    heads: HeadSigner
    meter: PrometheusMeter


def _build_base(settings: Settings, containers: Containers | None, resolve: Resolver | None) -> _Base:
    audited = AuditService(version=release(), boot_id=secrets.token_hex(_BOOT_ID_BYTES))
    stores = build_stores(settings, audited.boot_id)
    tracer = build_tracer(settings, audited.boot_id)
    callers = build_callers(settings, stores)
    limits = call_limits(settings)
    engine = sandbox_engine(settings, limits, audited.boot_id, callers.load, tracer, containers)
    image = ImageInventory(engine, limits)
    resolver, resolver_of_programs = SystemResolver(), SystemResolver(LOOKUPS)
    hosts = CallerHosts(callers.quotas.network, callers.known.learn)
    network = build_network(settings, hosts, resolve or resolver_of_programs, os.environ)
    outside = Outside(resolver, network)
    tools = build_tool_dependencies(settings, stores, engine, image, callers, outside)
    heads = HeadSigner(stores.database, HeadFiles(*settings.audit_files), settings.audit_head_s)
    meter = build_meter(settings, callers.admission, engine, heads)
    stores.database.observer = stores.artifacts.observer = meter.store_used
    network.observer = meter.connection_ended
    if tools.packages is not None:
        tools.packages.observer = meter
    return _Base(
        audited=audited,
        stores=stores,
        tracer=tracer,
        callers=callers,
        engine=engine,
        image=image,
        network=network,
        resolvers=(resolver, resolver_of_programs),
        tools=tools,
        heads=heads,
        meter=meter,
    )


@dataclass(frozen=True, slots=True)
class _CallParts:
    """The life cycle of calls, and what takes part in it."""

    calls: Calls
    gateway: GatewayParts
    dispatching: Dispatching | None


def _build_calls(settings: Settings, base: _Base) -> _CallParts:
    stores, parts, callers, audited = base.stores, base.tools, base.callers, base.audited
    call_settings = CallSettings(
        settings.event_log_bytes_max, audited.boot_id, audited.version, settings.lost_connection_grace_s
    )
    tools = all_tools(settings, parts)
    needs = GatewayDependencies(
        stores.database, stores.artifacts, tools, parts.jobs, parts.policy, base.resolvers[0], parts.tokens, audited
    )
    gateway = build_gateway_parts(settings, needs)
    calls = Calls(tools, callers.admission, stores.calls, call_settings, base.meter, gateway.tools)
    calls.stored.learn = callers.known.learn
    if not settings.is_shared:
        return _CallParts(calls, gateway, None)
    shared = DispatchNeeds(
        database=stores.database,
        store=stores.calls,
        calls=calls,
        admission=callers.admission,
        quotas=callers.quotas,
        engine=base.engine,
        meter=base.meter,
        call_settings=call_settings,
        preparing=lambda: 0 if parts.packages is None else parts.packages.preparing,
    )
    return _CallParts(calls, gateway, Dispatching(settings, shared))


def build(settings: Settings, containers: Containers | None = None, resolve: Resolver | None = None) -> Service:
    """Wire everything together; nothing is opened or started yet.

    Args:
        settings: of the service.
        containers: in place of those of the engine that the settings name.
        resolve: resolves the names that programs connect to, in place of this machine.

    Raises:
        OSError: the seccomp profile or the certificates of ``web_ca_file`` cannot be read.
        StoreFailedError: the settings of the object store make no client.
        HostSecretRefusedError: a secret of ``sandbox_network_secrets`` cannot be used.
    """
    base = _build_base(settings, containers, resolve)
    call_parts = _build_calls(settings, base)
    stores, parts, callers, audited = base.stores, base.tools, base.callers, base.audited
    calls, link_keys = call_parts.calls, LinkKeyFile(settings.keys_folder)
    listed = SqlConversationStore(stores.database, stores.artifacts)
    conversations = Conversations(listed, stores.artifacts, calls, callers.quotas, base.meter, audited)
    one_shot = build_one_shot(settings, stores, parts, audited)
    process = ProcessParts(callers.admission, base.engine, calls, callers.keyring, audited)
    return Service(
        settings=settings,
        principal=Principal(settings.tenant, settings.project, settings.user_type, settings.user),
        keyring=callers.keyring,
        quotas=callers.quotas,
        links=DownloadLinks(link_keys.in_use, settings.link_s, time.time),
        uploads=UploadLinks(link_keys.in_use, settings.link_s, time.time),
        database=stores.database,
        artifacts=stores.artifacts,
        conversations=conversations,
        upkeep=[
            build_retention(settings, stores, conversations, callers.admission, base.meter),
            *([] if parts.memory is None or parts.memory.vectors is None else [parts.memory.vectors.renewal]),
        ],
        sources=stores.sources,
        timeline=Timeline(stores.timelines, parts.tokens, cache_policy(settings)),
        paths=parts.paths,
        attachments=build_attachments(settings, stores),
        engine=base.engine,
        image=base.image,
        calls=calls,
        gateway=build_gateway(settings, stores.database, call_parts.gateway, stores.calls, calls, link_keys.in_use),
        provenance=build_provenance(settings, stores, parts, audited),
        one_shot=one_shot,
        history=SqlFileHistory(stores.database),
        previews=Previews(one_shot, stores.artifacts),
        recent_calls=SqlRecentCalls(stores.database),
        operations=ProcessOperations(settings, process),
        heads=base.heads,
        meter=base.meter,
        tracer=base.tracer,
        network=base.network,
        packages=parts.packages,
        resolvers=base.resolvers,
        dispatching=call_parts.dispatching,
    )


@asynccontextmanager
async def _upkeep(service: Service) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for job in service.upkeep:
            job.start()
            stack.push_async_callback(job.stop)
        yield


@asynccontextmanager
async def running(service: Service, *, serves: bool = False) -> AsyncIterator[None]:
    """Open the stores, start the engine, answer the calls that an earlier process left open; close all on exit.

    Args:
        service: the service.
        serves: whether clients reach it over HTTP.

    Raises:
        StartRefusedError: other machines reach it and no key exists, or none is required.
        ServiceError: a store or the engine cannot be used; the message has the remedy.
    """
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, service.tracer.close)
        await service.database.open()
        stack.push_async_callback(service.database.close)
        for resolver in service.resolvers:
            stack.callback(resolver.close)
        if serves:
            await refuse_without_keys(service.settings, service.keyring)
            service.keyring.start()
            stack.push_async_callback(service.keyring.stop)
        settings, dispatching = service.settings, service.dispatching
        if settings.audit_head_s and dispatching is None:
            service.heads.start()
            stack.push_async_callback(service.heads.stop)
        await service.artifacts.open()
        stack.push_async_callback(service.artifacts.close)
        if service.packages is not None and settings.runs_calls:
            await asyncio.to_thread(service.packages.open)
            stack.push_async_callback(service.packages.close)
        if settings.runs_calls:
            stack.push_async_callback(service.engine.stop)
            await service.engine.start()
            if service.packages is not None:
                stack.push_async_callback(service.packages.close)  # first: the engine compiles for it
        stack.push_async_callback(service.image.close)
        if dispatching is not None:
            await stack.enter_async_context(dispatching.opened())
        if interrupted := await service.calls.recover():
            log.warning("answered %d calls that an earlier process of the service left open", interrupted)
        stack.push_async_callback(service.calls.close, settings.shutdown_grace_s)
        stack.push_async_callback(service.gateway.stop)
        await service.gateway.start(alone=dispatching is None)
        if dispatching is None:
            await stack.enter_async_context(_upkeep(service))
        else:
            # It leaves after its calls have ended, or another process would undo what they save.
            stack.push_async_callback(dispatching.membership.stop)
            stack.push_async_callback(dispatching.stop_work)
            undo = partial(dispatching.undo_lost, service.artifacts)
            jobs = SharedJobs(settings, service.gateway, service.upkeep, service.heads, undo)
            await dispatching.start(jobs.begin, jobs.end)
        stack.push_async_callback(service.conversations.close)
        yield
