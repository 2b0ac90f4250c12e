"""The composition root: reads the settings, builds engine, stores and services, hands them to the doors."""

import asyncio
import logging
import os
import secrets
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

import uvicorn
from fastapi import FastAPI

from contracts.provenance import AuditService
from service.access.authenticator import Keyring
from service.access.quotas import Quotas
from service.api.app import create_app, release
from service.api.connections import ConnectionLimits, make_room_for_connections
from service.api.server import DrainingServer, server_config
from service.api.services import Services
from service.app import malloc_tuning as process_memory
from service.app.auth_policy import access_of, allowances, allowed_hosts, refuse_without_keys
from service.app.sandbox_engine import pool_readings, sandbox_engine, together_readings
from service.app.settings import Settings
from service.app.tools import ToolDependencies, all_tools, cache_policy, program_tools
from service.artifacts.attachments import Attachments
from service.artifacts.conversation_files import ConversationFiles
from service.artifacts.download_links import DownloadLinks
from service.artifacts.path_resolver import LogicalPathResolver
from service.calls.admission import Admission
from service.calls.service import Calls, CallSettings
from service.identity import Principal
from service.jobs.input_resolver import InputResolver, WorkspaceBounds
from service.jobs.rerun import Provenance, RerunDependencies
from service.jobs.runner import JobRunner
from service.observability.prometheus import PrometheusMeter
from service.observability.tracing import NoTracer, Tracer
from service.react.memsearch.minilm import MiniLmEmbedder
from service.react.memsearch.tool import MemorySearchTool
from service.sandbox.engine import PooledEngine
from service.sandbox.image_inventory import ImageInventory
from service.sandbox.limits import CallLimits, CallPolicy, limit_names
from service.storage.api_keys import SqlApiKeys
from service.storage.artifacts.blob_port import BlobStore
from service.storage.artifacts.disk_usage import file_bytes, free_bytes
from service.storage.artifacts.local_blobs import LocalBlobStore
from service.storage.artifacts.store import SqlArtifactStore
from service.storage.asset_folders import AssetFolders
from service.storage.audit import SqlAuditStore
from service.storage.audit_head_files import HeadFiles
from service.storage.audit_signing import HeadSigner
from service.storage.calls import SqlCallStore
from service.storage.database import Database
from service.storage.link_keys import LinkKeyFile
from service.storage.passages import SqlPassageStore
from service.storage.readiness import StoreReadiness
from service.storage.skill_folder import FolderSkills
from service.storage.sources import SqlSourcePool
from service.storage.timelines import SqlTimelineStore
from service.timeline.bpe_tokens import BpeTokenCounter
from service.timeline.service import Timeline
from service.web.client.fetcher import FetchBounds, HttpPageFetcher
from service.web.client.resolver import SystemResolver
from service.web.client.searxng import SearxngSearcher
from service.web.client.tls import loaded_when_asked
from service.web.port import PageFetcher, PageSearcher
from service.web.urls import WebUrl

log = logging.getLogger("proofbox")

_BOOT_ID_BYTES = 4
_LAST_ANSWERS_S = 5  # until answers and event streams that are still being sent are cut off
_LAST_WORK_S = 5  # until stores and engine have to have ended what is under way


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that runs, wired together.

    Attributes:
        settings: the operator's decisions.
        principal: on whose behalf requests without a key speak.
        keyring: the API keys.
        quotas: what each caller has used up.
        links: makes and checks links to files.
        database: what the stores keep their records in.
        artifacts: the files of conversations.
        sources: what their citations stand for.
        timeline: their event logs.
        paths: resolves logical paths.
        attachments: takes attachments in.
        engine: where sandboxes come from.
        image: what their image has.
        calls: the calls.
        provenance: their audit lines, and running them again.
        heads: signs the last audit line of each chain.
        meter: counts them.
        tracer: traces them.
        resolver: how names of the web become addresses.
    """

    settings: Settings
    principal: Principal
    keyring: Keyring
    quotas: Quotas
    links: DownloadLinks
    database: Database
    artifacts: SqlArtifactStore
    sources: SqlSourcePool
    timeline: Timeline
    paths: LogicalPathResolver
    attachments: Attachments
    engine: PooledEngine
    image: ImageInventory
    calls: Calls
    provenance: Provenance
    heads: HeadSigner
    meter: PrometheusMeter
    tracer: Tracer
    resolver: SystemResolver


def _call_limits(settings: Settings) -> CallLimits:
    return CallLimits(**{name: getattr(settings, name) for name in limit_names()})


def _web(settings: Settings, resolver: SystemResolver) -> tuple[PageFetcher, PageSearcher | None]:
    tls = loaded_when_asked(settings.web_ca_file)

    bounds = FetchBounds(
        page_s=settings.web_page_s,
        bytes_max=settings.web_page_bytes_max,
        ports=frozenset(settings.web_ports),
        opened=settings.web_allowed_networks,
    )
    fetcher = HttpPageFetcher(bounds, resolver, tls)
    if not settings.web_search_url:
        return fetcher, None
    endpoint = WebUrl.parse(settings.web_search_url)
    return fetcher, SearxngSearcher(endpoint, settings.web_search_s, resolver, tls)


def _meter(settings: Settings, admission: Admission, engine: PooledEngine, heads: HeadSigner) -> PrometheusMeter:
    return PrometheusMeter(
        {
            "calls_running": ("Calls that have a place.", lambda: admission.running),
            "calls_queued": ("Calls that wait for one.", lambda: admission.queued),
            "pool_ready": ("Sandboxes of all flavours that wait for a call.", lambda: engine.pool.ready),
            "swept": ("Sandboxes that had to be swept, in this life of the service.", lambda: engine.swept),
            "engine_up": ("1 if the engine answered when it was asked last.", lambda: engine.is_up),
            "audit_signing": (
                "1 if the heads of all chains of audit lines are signed; 0 if something keeps them from it.",
                lambda: heads.is_signing,
            ),
            "data_free_bytes": (
                "What is free for the service on the file system of its data folder.",
                lambda: free_bytes(settings.data_dir),
            ),
            "database_bytes": (
                "The SQLite file and its log; 0 for a database on a server.",
                lambda: file_bytes(settings.data_dir),
            ),
        },
        release(),
        lambda: [*pool_readings(engine.pool), *together_readings(engine)],
    )


def _tracer(settings: Settings, boot_id: str) -> Tracer:
    if not settings.is_traced:
        return NoTracer()
    # Only here: who sends no traces does not pay for their client.
    from service.observability.otlp import OtlpTracer  # noqa: PLC0415

    return OtlpTracer(settings.otlp_endpoint, release(), boot_id)


def artifact_files(settings: Settings) -> BlobStore:
    """The bytes of artifacts: below the data folder, or in a bucket if one is named."""
    if not settings.s3_bucket:
        return LocalBlobStore(settings.data_dir)
    # Only here: who keeps files in a folder does not pay for the client of a bucket.
    from service.storage.artifacts.s3_blobs import S3BlobStore  # noqa: PLC0415
    from service.storage.artifacts.s3_client import Bucket  # noqa: PLC0415

    bucket = Bucket(
        name=settings.s3_bucket,
        prefix=settings.s3_prefix.strip("/"),
        endpoint=settings.s3_endpoint,
        link_endpoint=settings.s3_link_endpoint,
        region=settings.s3_region,
        access_key=settings.s3_access_key,
        secret_key=settings.s3_secret_key.get_secret_value(),
    )
    return S3BlobStore(bucket, settings.data_dir / "staging", settings.s3_part_bytes, settings.link_s)


def _memory_search(
    settings: Settings, database: Database, timelines: SqlTimelineStore, files: ConversationFiles
) -> MemorySearchTool:
    return MemorySearchTool(
        timelines,
        SqlPassageStore(database),
        files,
        MiniLmEmbedder(max(1, (os.cpu_count() or 1) // 2)),
        half_life_days=settings.memory_half_life_days,
    )


def _attachments(settings: Settings, artifacts: SqlArtifactStore, sources: SqlSourcePool) -> Attachments:
    return Attachments(
        artifacts,
        sources,
        bytes_max=settings.attachment_bytes_max,
        inline_bytes_max=settings.inline_bytes_max,
    )


def build(settings: Settings) -> Service:
    """Wires everything together; nothing is opened or started yet.

    Raises:
        OSError: the seccomp profile or the certificates of ``web_ca_file`` cannot be read.
        StoreFailedError: the settings of the object store make no client.
    """
    boot_id = secrets.token_hex(_BOOT_ID_BYTES)
    limits = _call_limits(settings)
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    artifacts = SqlArtifactStore(database, artifact_files(settings))
    sources = SqlSourcePool(database)
    timelines = SqlTimelineStore(database)
    tracer = _tracer(settings, boot_id)
    quotas = Quotas(allowances(settings), artifacts.stored_bytes)
    admission = Admission(running_max=settings.running_max, queue_max=settings.queue_max, share_of=quotas.share)
    cores = os.cpu_count() or 1

    def load() -> float:
        return 1.0 if admission.queued else admission.running / cores

    engine = sandbox_engine(settings, limits, boot_id, load, tracer)
    files = ConversationFiles(artifacts, timelines, AssetFolders(settings.asset_roots))
    workspace = WorkspaceBounds(
        settings.workspace_bytes_max,
        settings.workspace_files_max,
        settings.conversation_bytes_max,
        settings.conversation_files_max,
    )
    jobs = JobRunner(admission, InputResolver(files, sources, workspace), engine, artifacts, sources)
    tokens = BpeTokenCounter()
    paths = LogicalPathResolver(files, sources, FolderSkills(settings.skills_dir))
    resolver = SystemResolver()
    fetcher, searcher = _web(settings, resolver)
    image = ImageInventory(engine, limits)
    parts = ToolDependencies(
        jobs=jobs,
        policy=CallPolicy(limits, settings.queue_s, settings.overhead_s, settings.inline_bytes_max),
        artifacts=artifacts,
        sources=sources,
        timelines=timelines,
        paths=paths,
        tokens=tokens,
        memory=_memory_search(settings, database, timelines, files),
        fetcher=fetcher,
        searcher=searcher,
        image=image,
    )
    heads = HeadSigner(database, HeadFiles(*settings.audit_files), settings.audit_head_s)
    meter = _meter(settings, admission, engine, heads)
    database.seen = artifacts.seen = meter.store_used
    audited = AuditService(version=release(), boot_id=boot_id)
    reruns = RerunDependencies(jobs, partial(program_tools, settings, parts), files, sources, limits, audited)
    calls = Calls(
        all_tools(settings, parts),
        admission,
        SqlCallStore(database),
        CallSettings(settings.remembered_bytes_max, boot_id, audited.version, settings.lost_connection_grace_s),
        meter,
    )
    return Service(
        settings=settings,
        principal=Principal(settings.tenant, settings.project, settings.user_type, settings.user),
        keyring=Keyring(SqlApiKeys(database)),
        quotas=quotas,
        links=DownloadLinks(LinkKeyFile(settings.data_dir).in_use, settings.link_s, time.time),
        database=database,
        artifacts=artifacts,
        sources=sources,
        timeline=Timeline(timelines, tokens, cache_policy(settings)),
        paths=paths,
        attachments=_attachments(settings, artifacts, sources),
        engine=engine,
        image=image,
        calls=calls,
        provenance=Provenance(SqlCallStore(database), SqlAuditStore(database), reruns),
        heads=heads,
        meter=meter,
        tracer=tracer,
        resolver=resolver,
    )


@asynccontextmanager
async def running(service: Service, *, serves: bool = False) -> AsyncIterator[None]:
    """Opens the stores, starts the engine, answers what an earlier life left; closes all on exit.

    Args:
        service: what is to run.
        serves: whether others will reach it by HTTP.

    Raises:
        StartRefusedError: it would be reached by others, and lets in all of them or none.
        ServiceError: a store or the engine cannot be used; the message says what to do.
    """
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, service.tracer.close)
        await service.database.open()
        stack.push_async_callback(service.database.close)
        stack.callback(service.resolver.close)
        if serves:
            await refuse_without_keys(service.settings, service.keyring)
            service.keyring.start()
            stack.push_async_callback(service.keyring.stop)
        if service.settings.audit_head_s:
            service.heads.start()
            stack.push_async_callback(service.heads.stop)
        await service.artifacts.open()
        stack.push_async_callback(service.artifacts.close)
        stack.push_async_callback(service.engine.stop)
        await service.engine.start()
        stack.push_async_callback(service.image.close)
        if interrupted := await service.calls.recover():
            log.warning("answered %d calls that an earlier life of the service left open", interrupted)
        stack.push_async_callback(service.calls.close, service.settings.shutdown_grace_s)
        yield


def application(service: Service) -> FastAPI:
    """The HTTP application over a service that runs."""
    doors = Services(
        calls=service.calls,
        provenance=service.provenance,
        attachments=service.attachments,
        artifacts=service.artifacts,
        sources=service.sources,
        timeline=service.timeline,
        paths=service.paths,
        engine=service.engine,
        image=service.image,
        access=access_of(service.settings, service.principal, service.keyring),
        quotas=service.quotas,
        links=service.links,
        public_url=service.settings.public_url,
        hosts=allowed_hosts(service.settings),
        metrics=service.meter.text,
        meter=service.meter,
        tracer=service.tracer,
        draining=lambda: service.calls.is_closing,
        check_stores=StoreReadiness(service.database, service.settings.data_dir).check,
        body_bytes_max=service.settings.body_bytes_max,
        bodies_bytes_max=service.settings.bodies_bytes_max,
        body_s=service.settings.body_s,
        heartbeat_s=service.settings.heartbeat_s,
    )
    return create_app(doors)


def serve(settings: Settings) -> None:
    """Serves until it is told to stop (SIGINT, SIGTERM).

    Raises:
        ServiceError: a store or the engine cannot be used; the message says what to do.
    """
    process_memory.share_arenas()
    asyncio.run(_serve(build(settings)))


def http_config(service: Service) -> uvicorn.Config:
    """What the server serves, where, and how it speaks HTTP."""
    settings = service.settings
    connections_max = make_room_for_connections(settings.connections_max)
    limits = ConnectionLimits(
        settings.head_s, settings.unread_s, connections_max, settings.connections_per_address_max
    )
    where = settings.host, settings.port
    return server_config(application(service), where, limits=limits, last_answers_s=_LAST_ANSWERS_S)


async def _serve(service: Service) -> None:
    settings = service.settings

    async def drain() -> None:
        _end_within(settings.shutdown_grace_s + _LAST_ANSWERS_S + _LAST_WORK_S)
        await service.calls.close(settings.shutdown_grace_s)

    async with running(service, serves=True):
        process_memory.settle()
        await DrainingServer(http_config(service), drain).serve()


def _end_within(seconds: float) -> None:
    """Ends the process although a store or an engine that does not answer holds it up: a thread cannot be stopped.

    What is under way is lost then, as by a power cut: the next life answers it and removes what is left.
    """

    def end() -> None:
        log.error("something does not end within %g s; ending without it", seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
