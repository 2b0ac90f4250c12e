"""The composition root: build stores, engine and services from the settings, open and close them."""

import asyncio
import logging
import os
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

from proofbox.contracts.provenance import AuditService
from proofbox.service.access.authenticator import Keyring
from proofbox.service.access.known_callers import KnownCallers
from proofbox.service.access.quotas import Quotas
from proofbox.service.api.app import release
from proofbox.service.app.auth_policy import allowances, allowances_without_key, refuse_without_keys
from proofbox.service.app.extras import missing_modules
from proofbox.service.app.gateway import Gateway, GatewayDependencies, build_gateway, build_gateway_parts
from proofbox.service.app.maintenance import build_retention
from proofbox.service.app.network import LOOKUPS, build_network
from proofbox.service.app.operations import ProcessOperations, ProcessParts
from proofbox.service.app.packages.wiring import SandboxParts, build_packages
from proofbox.service.app.processes.shared_jobs import SharedJobs
from proofbox.service.app.processes.wiring import Dispatching, DispatchNeeds
from proofbox.service.app.sandbox_engine import sandbox_engine
from proofbox.service.app.settings import Settings
from proofbox.service.app.stores import Stores, build_attachments, build_stores
from proofbox.service.app.telemetry import build_meter, build_tracer
from proofbox.service.app.tools import ToolDependencies, all_tools, cache_policy, program_tools
from proofbox.service.app.web_client import build_web_client
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.download_links import DownloadLinks
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.upload_links import UploadLinks
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.conversations.retention import RetentionSweeper
from proofbox.service.conversations.service import Conversations
from proofbox.service.egress.policy import NetworkPolicy
from proofbox.service.identity import Principal
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.one_shot import OneShotDependencies, OneShotJobs
from proofbox.service.jobs.output_retry import RetriedOutputs
from proofbox.service.jobs.rerun import Provenance, RerunDependencies
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.observability.tracing import Tracer
from proofbox.service.packages.port import Packages
from proofbox.service.previews.service import Previews
from proofbox.service.react.memsearch.minilm import MiniLmEmbedder
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.sandbox.containers import Containers
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallLimits, CallPolicy, limit_names
from proofbox.service.sandbox.workspace import ArchiveBounds
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.artifacts.history import SqlFileHistory
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.audit import SqlAuditStore
from proofbox.service.storage.audit_head_files import HeadFiles
from proofbox.service.storage.audit_signing import HeadSigner
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.link_keys import LinkKeyFile
from proofbox.service.storage.passages import SqlPassageStore
from proofbox.service.storage.recent_calls import SqlRecentCalls
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
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
        retention: deletes those that are not used any more.
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
    retention: RetentionSweeper
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


def _call_limits(settings: Settings) -> CallLimits:
    return CallLimits(**{name: getattr(settings, name) for name in limit_names()})


def _memory_search(settings: Settings, stores: Stores, files: ConversationFiles) -> MemorySearchTool | None:
    """The search of past turns; None if its libraries are not installed."""
    if missing_modules("memory"):
        return None
    return MemorySearchTool(
        stores.timelines,
        SqlPassageStore(stores.database),
        files,
        MiniLmEmbedder(max(1, (os.cpu_count() or 1) // 2)),
        half_life_days=settings.memory_half_life_days,
    )


def _load(admission: Admission) -> float:
    """The load of the machine as the pool sees it: running calls for each core, 1 while calls wait."""
    return 1.0 if admission.queued else admission.running / (os.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class _Outside:
    resolver: SystemResolver
    network: NetworkPolicy
    quotas: Quotas


def _tool_dependencies(
    settings: Settings,
    stores: Stores,
    engine: PooledEngine,
    image: ImageInventory,
    admission: Admission,
    outside: _Outside,
) -> ToolDependencies:
    files = ConversationFiles(stores.artifacts, stores.timelines, AssetFolders(settings.asset_roots))
    workspace = WorkspaceBounds(
        settings.workspace_bytes_max,
        settings.workspace_files_max,
        settings.conversation_bytes_max,
        settings.conversation_files_max,
    )
    fetcher, searcher = build_web_client(settings, outside.resolver)
    jobs = JobRunner(
        admission,
        InputResolver(files, stores.sources, workspace),
        engine,
        stores.artifacts,
        stores.sources,
        # A disk that fails does not recover by itself, and its store may have moved the files.
        RetriedOutputs(stores.artifacts, settings.s3_retry_s) if settings.s3_bucket else None,
    )
    policy = CallPolicy(
        _call_limits(settings),
        settings.queue_s,
        settings.overhead_s,
        settings.inline_bytes_max,
        ArchiveBounds(settings.full_workspace_entries_max, settings.full_workspace_bytes_max),
    )
    return ToolDependencies(
        jobs=jobs,
        policy=policy,
        artifacts=stores.artifacts,
        sources=stores.sources,
        timelines=stores.timelines,
        paths=LogicalPathResolver(files, stores.sources, FolderSkills(settings.skills_dir)),
        tokens=BpeTokenCounter(),
        memory=_memory_search(settings, stores, files),
        fetcher=fetcher,
        searcher=searcher,
        network=outside.network,
        image=image,
        packages=build_packages(settings, outside.quotas, SandboxParts(jobs, policy, image), outside.resolver),
    )


def _provenance(settings: Settings, stores: Stores, parts: ToolDependencies, audited: AuditService) -> Provenance:
    reruns = RerunDependencies(
        parts.jobs,
        partial(program_tools, settings, parts),
        parts.paths.files,
        parts.sources,
        _call_limits(settings),
        audited,
    )
    return Provenance(SqlCallStore(stores.database), SqlAuditStore(stores.database), reruns)


def _one_shot(settings: Settings, stores: Stores, parts: ToolDependencies, audited: AuditService) -> OneShotJobs:
    # The files of its answers are files, never base64 in blocks.
    policy = replace(parts.policy, inline_bytes_max=0)
    return OneShotJobs(
        OneShotDependencies(
            parts.jobs,
            partial(program_tools, settings, replace(parts, policy=policy)),
            stores.artifacts,
            SqlAuditStore(stores.database),
            policy,
            settings.render_wall_s,
            audited,
        )
    )


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
    audited = AuditService(version=release(), boot_id=secrets.token_hex(_BOOT_ID_BYTES))
    stores = build_stores(settings, audited.boot_id)
    tracer = build_tracer(settings, audited.boot_id)
    has_limit = settings.key_running_calls is not None
    quotas = Quotas(allowances(settings), stores.artifacts.stored_bytes, has_running_limit=has_limit)
    keyring = Keyring(SqlApiKeys(stores.database))
    callers = KnownCallers(keyring, quotas, allowances_without_key(settings))
    share_of = callers.running_share if settings.is_shared else quotas.share
    admission = Admission(running_max=settings.running_max, queue_max=settings.queue_max, share_of=share_of)
    load = partial(_load, admission)
    engine = sandbox_engine(settings, _call_limits(settings), audited.boot_id, load, tracer, containers)
    image = ImageInventory(engine, _call_limits(settings))
    resolver, resolver_of_programs = SystemResolver(), SystemResolver(LOOKUPS)
    network = build_network(settings, quotas, resolve or resolver_of_programs, os.environ)
    parts = _tool_dependencies(settings, stores, engine, image, admission, _Outside(resolver, network, quotas))
    link_keys = LinkKeyFile(settings.keys_folder)
    heads = HeadSigner(stores.database, HeadFiles(*settings.audit_files), settings.audit_head_s)
    meter = build_meter(settings, admission, engine, heads)
    stores.database.observer = stores.artifacts.observer = meter.store_used
    network.observer = meter.connection_ended
    if parts.packages is not None:
        parts.packages.observer = meter
    call_settings = CallSettings(
        settings.event_log_bytes_max, audited.boot_id, audited.version, settings.lost_connection_grace_s
    )
    tools, store = all_tools(settings, parts), stores.calls
    needs = GatewayDependencies(
        stores.database, stores.artifacts, tools, parts.jobs, parts.policy, resolver, parts.tokens, audited
    )
    gateway_parts = build_gateway_parts(settings, needs)
    calls = Calls(tools, admission, store, call_settings, meter, gateway_parts.tools)
    dispatching = None
    if settings.is_shared:
        shared = DispatchNeeds(
            stores.database, store, calls, admission, quotas, callers, engine, meter, call_settings,
            preparing=lambda: 0 if parts.packages is None else parts.packages.preparing,
        )  # fmt: skip
        dispatching = Dispatching(settings, shared)
    conversations = Conversations(
        SqlConversationStore(stores.database, stores.artifacts), stores.artifacts, calls, quotas, meter, audited
    )
    one_shot = _one_shot(settings, stores, parts, audited)
    return Service(
        settings=settings,
        principal=Principal(settings.tenant, settings.project, settings.user_type, settings.user),
        keyring=keyring,
        quotas=quotas,
        links=DownloadLinks(link_keys.in_use, settings.link_s, time.time),
        uploads=UploadLinks(link_keys.in_use, settings.link_s, time.time),
        database=stores.database,
        artifacts=stores.artifacts,
        conversations=conversations,
        retention=build_retention(settings, stores, conversations, admission, meter),
        sources=stores.sources,
        timeline=Timeline(stores.timelines, parts.tokens, cache_policy(settings)),
        paths=parts.paths,
        attachments=build_attachments(settings, stores),
        engine=engine,
        image=image,
        calls=calls,
        gateway=build_gateway(settings, stores.database, gateway_parts, store, calls, link_keys.in_use),
        provenance=_provenance(settings, stores, parts, audited),
        one_shot=one_shot,
        history=SqlFileHistory(stores.database),
        previews=Previews(one_shot, stores.artifacts),
        recent_calls=SqlRecentCalls(stores.database),
        operations=ProcessOperations(settings, ProcessParts(admission, engine, calls, keyring, audited)),
        heads=heads,
        meter=meter,
        tracer=tracer,
        network=network,
        packages=parts.packages,
        resolvers=(resolver, resolver_of_programs),
        dispatching=dispatching,
    )


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
            service.retention.start()
            stack.push_async_callback(service.retention.stop)
        else:
            # It leaves after its calls have ended, or another process would undo what they save.
            stack.push_async_callback(dispatching.membership.stop)
            stack.push_async_callback(dispatching.stop_work)
            undo = partial(dispatching.undo_lost, service.artifacts)
            jobs = SharedJobs(settings, service.gateway, service.retention, service.heads, undo)
            await dispatching.start(jobs.begin, jobs.end)
        stack.push_async_callback(service.conversations.close)
        yield
