"""The application on real local stores, with calls and an engine in memory: behind ASGI and on a real port."""

import asyncio
import contextlib
import hashlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from proofbox.contracts.paths import FilePath
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.access.authenticator import Authenticator
from proofbox.service.access.quotas import NO_LIMITS, Quotas
from proofbox.service.api.app import create_app
from proofbox.service.api.connections import ConnectionLimits
from proofbox.service.api.gateway_services import GatewayServices
from proofbox.service.api.limited_protocol import LimitedProtocol
from proofbox.service.api.services import Services
from proofbox.service.app.gateway import GatewayDependencies, build_gateway, build_gateway_parts
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.download_links import DownloadLinks, LinkKey
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import NewArtifact, StoredArtifact
from proofbox.service.artifacts.upload_links import UploadLinks
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.conversations.service import Conversations
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.one_shot import OneShotDependencies, OneShotJobs
from proofbox.service.jobs.rerun import Provenance
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.observability.prometheus import PrometheusMeter
from proofbox.service.previews.service import Previews
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.storage.artifacts.history import SqlFileHistory
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.audit import SqlAuditStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.readiness import StoreReadiness
from proofbox.service.storage.recent_calls import SqlRecentCalls
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from proofbox.service.timeline.cache_points import CachePolicy
from proofbox.service.timeline.service import Timeline
from proofbox.service.web.client.resolver import SystemResolver
from tests.support.calls import MemoryCalls
from tests.support.fake_engine import FakeSandboxEngine
from tests.support.fresh_database import lay_out
from tests.support.given_settings import given_settings
from tests.support.operations import FixedOperations

PRINCIPAL = Principal("acme", "sales", "registered", "u-17")
BODY_BYTES_MAX = 300_000
ATTACHMENT_BYTES_MAX = 3_000_000
LINK_S = 600
MIB = 1024 * 1024
LIMITS = CallLimits(60, 1.0, 256 * MIB, 64, 16 * MIB, 1_000, 16 * MIB, 100, 8, MIB, 16 * MIB)


# Nothing is run again here: these calls have no program.
NOTHING_AGAIN: Any = None


@dataclass
class Flags:
    draining: bool = False
    now: float = 1_000_000.5
    operations: FixedOperations = field(default_factory=FixedOperations)


@dataclass
class Stores:
    database: Database
    artifacts: SqlArtifactStore
    sources: SqlSourcePool
    timelines: SqlTimelineStore


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[Stores]:
    database = Database(lay_out(tmp_path / "data"))
    await database.open()
    artifacts = SqlArtifactStore(database, LocalBlobStore(tmp_path / "data"))
    await artifacts.open()
    yield Stores(database, artifacts, SqlSourcePool(database), SqlTimelineStore(database))
    await artifacts.close()
    await database.close()


@pytest.fixture
def calls() -> MemoryCalls:
    return MemoryCalls()


@pytest.fixture
def engine() -> FakeSandboxEngine:
    return FakeSandboxEngine()


@pytest.fixture
def flags() -> Flags:
    return Flags()


@pytest.fixture
def skills_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "skills"
    folder.mkdir()
    return folder


@pytest.fixture
def link_keys() -> list[LinkKey]:
    """The keys of links; a test may change them."""
    return [LinkKey("k1", b"1" * 32)]


@pytest.fixture
def gateway(stores: Stores, tmp_path: Path, link_keys: list[LinkKey]) -> GatewayServices:
    """Agents, runs, spaces and waits over the stores; none of their calls runs here."""
    settings, admission = given_settings(tmp_path / "data"), Admission(running_max=1, queue_max=1)
    jobs = JobRunner(admission, NOTHING_AGAIN, NOTHING_AGAIN, stores.artifacts, stores.sources)
    policy, audited = CallPolicy(LIMITS, 1, 1, 0), AuditService(version="1.0", boot_id="boot-1")
    resolver, tokens = SystemResolver(), BpeTokenCounter()
    needs = GatewayDependencies(stores.database, stores.artifacts, {}, jobs, policy, resolver, tokens, audited)
    parts, store = build_gateway_parts(settings, needs), SqlCallStore(stores.database, call_effects())
    calls = Calls({}, admission, store, CallSettings(MIB, "boot-1", "1.0"), None, parts.tools)
    return build_gateway(settings, stores.database, parts, store, calls, lambda: link_keys).services


@pytest.fixture
def services(  # noqa: PLR0913, PLR0917 - the parts of an application
    stores: Stores,
    calls: MemoryCalls,
    engine: FakeSandboxEngine,
    flags: Flags,
    skills_dir: Path,
    link_keys: list[LinkKey],
    gateway: GatewayServices,
) -> Services:
    meter = PrometheusMeter({"pool_ready": ("Ready ones.", lambda: 2)})
    quotas = Quotas(NO_LIMITS)
    # No preview is made here: the files of these tests are refused before.
    one_shot = OneShotDependencies(
        NOTHING_AGAIN,
        NOTHING_AGAIN,
        stores.artifacts,
        SqlAuditStore(stores.database),
        CallPolicy(LIMITS, 1, 1, 0),
        10,
        AuditService(version="1.0", boot_id="boot-1"),
    )
    return Services(
        calls=calls,
        provenance=Provenance(SqlCallStore(stores.database), SqlAuditStore(stores.database), NOTHING_AGAIN),
        attachments=Attachments(
            stores.artifacts,
            stores.sources,
            bytes_max=ATTACHMENT_BYTES_MAX,
            inline_bytes_max=100_000,
        ),
        artifacts=stores.artifacts,
        history=SqlFileHistory(stores.database),
        previews=Previews(OneShotJobs(one_shot), stores.artifacts),
        recent_calls=SqlRecentCalls(stores.database),
        operations=flags.operations,
        conversations=Conversations(
            SqlConversationStore(stores.database, stores.artifacts),
            stores.artifacts,
            calls,
            quotas,
            meter,
            AuditService(version="1.0", boot_id="boot-1"),
        ),
        sources=stores.sources,
        timeline=Timeline(stores.timelines, BpeTokenCounter(), CachePolicy(6, 4, 10_000)),
        paths=LogicalPathResolver(
            ConversationFiles(stores.artifacts, stores.timelines, AssetFolders(())),
            stores.sources,
            FolderSkills(skills_dir),
        ),
        engine=engine,
        image=ImageInventory(engine, LIMITS),
        authenticator=Authenticator(PRINCIPAL),
        quotas=quotas,
        links=DownloadLinks(lambda: link_keys, LINK_S, lambda: flags.now),
        uploads=UploadLinks(lambda: link_keys, LINK_S, lambda: flags.now),
        hosts=None,
        metrics=meter.text,
        meter=meter,
        draining=lambda: flags.draining,
        check_stores=StoreReadiness(stores.database, skills_dir).check,
        body_bytes_max=BODY_BYTES_MAX,
        gateway=gateway,
    )


@pytest.fixture
def app(services: Services) -> FastAPI:
    return create_app(services)


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        yield client


class AnnouncedServer(uvicorn.Server):
    """A server that can be waited for."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@pytest.fixture
def head_s() -> float:
    """How long the head of a request may take; more than a busy machine needs."""
    return 60.0


@pytest.fixture
async def server(services: Services, head_s: float) -> AsyncIterator[str]:
    """The application behind a real server; its base URL. Its heartbeat is fast."""
    app = create_app(replace(services, heartbeat_s=0.02))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app,
            http=partial(LimitedProtocol, ConnectionLimits(head_s=head_s)),
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=0.2,  # connections that a test left open are not waited for
        )
        running = AnnouncedServer(config)
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        await running.up.wait()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        running.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@pytest.fixture
async def web(server: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def saved(stores: Stores) -> Any:
    """Saves a file of a conversation and answers what is stored."""

    async def save(
        path: FilePath, content: bytes, mime: str = "text/plain", conversation: str = "c1"
    ) -> StoredArtifact:
        async with stores.artifacts.staging() as folder:
            source = folder / "file"
            source.write_bytes(content)
            artifact = NewArtifact(
                path=path,
                source=FileContent(source),
                size_bytes=len(content),
                sha256=hashlib.sha256(content).hexdigest(),
                mime=mime,
                visibility="external",
                description="a file",
                tool_call_id="t1",
            )
            [stored] = await stores.artifacts.save(ConversationKey(PRINCIPAL, conversation), [artifact])
        return stored

    return save


@pytest.fixture
def call_body() -> dict[str, Any]:
    """The body of a call that is answered at once."""
    return {
        "tool_id": exec_tool_id(Language.PYTHON),
        "tool_call_id": "t1",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": {"contract": [{"filename": "a.txt", "description": "a text"}]},
        "code": "print('ünï')\n",
    }
