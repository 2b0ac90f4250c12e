"""Whole calls without a container: the real tools, calls and local stores over an engine in memory."""

import hashlib
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from proofbox.contracts.paths import FilePath
from proofbox.contracts.provenance import AuditLine, AuditService, RerunReport
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.access.known_callers import KnownCallers
from proofbox.service.access.quotas import NO_LIMITS, Quotas
from proofbox.service.api.services import Services
from proofbox.service.app.gateway import GatewayDependencies, build_gateway, build_gateway_parts
from proofbox.service.app.tools import ToolDependencies, all_tools, program_tools
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.download_links import DownloadLinks
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import NewArtifact, NewSave, PreparedSave, StoredArtifact
from proofbox.service.artifacts.upload_links import UploadLinks
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings, CallTicket
from proofbox.service.conversations.service import Conversations
from proofbox.service.egress.policy import CallerHosts
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.one_shot import OneShotDependencies, OneShotJobs
from proofbox.service.jobs.rerun import Provenance, RerunDependencies
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.observability.metrics_port import NoMeter
from proofbox.service.previews.service import Previews
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.artifacts.history import SqlFileHistory
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.audit import SqlAuditStore
from proofbox.service.storage.audit_export import audit_lines
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.effects import dispatch_effects
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.link_keys import LinkKeyFile
from proofbox.service.storage.passages import SqlPassageStore
from proofbox.service.storage.readiness import StoreReadiness
from proofbox.service.storage.recent_calls import SqlRecentCalls
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from proofbox.service.timeline.cache_points import CachePolicy
from proofbox.service.timeline.service import Timeline
from proofbox.service.web.port import FetchedPage, WebFailedError
from proofbox.service.web.urls import WebUrl
from tests.support.fake_engine import FakeSandboxEngine
from tests.support.fresh_database import lay_out
from tests.support.given_settings import given_settings
from tests.support.operations import FixedOperations
from tests.support.program_proxy import network_policy

ANN = Principal("acme", "books", "registered", "ann")
SCOPE = ConversationKey(ANN, "conv-1")
MIB = 1024 * 1024
NO_SERVER = SecretStr("")
LIMITS = CallLimits(60, 1.0, 256 * MIB, 64, 16 * MIB, 1_000, 16 * MIB, 100, 8, MIB, 16 * MIB)
EXEC = "exec_tools.execute_code_python"


class DiskStore(SqlArtifactStore):
    """An artifact store whose staging folders have no room for some files.

    Attributes:
        full_names: the names whose writes end with "no space left on device".
        saves_nothing: an error that each save raises.
    """

    full_names: Sequence[str] = ()
    saves_nothing: Exception | None = None

    @asynccontextmanager
    async def staging(self) -> AsyncIterator[Path]:
        async with super().staging() as folder:
            for name in self.full_names:
                (folder / name).symlink_to("/dev/full")
            yield folder

    async def prepare(self, new: NewSave) -> PreparedSave:
        if self.saves_nothing is not None:
            raise self.saves_nothing
        return await super().prepare(new)


class FixedPages:
    """The port ``PageFetcher``: each address has the page that the test gave it."""

    def __init__(self) -> None:
        self.pages: dict[str, FetchedPage | WebFailedError] = {}

    async def fetch(self, url: WebUrl) -> FetchedPage:
        page = self.pages[str(url)]
        if isinstance(page, WebFailedError):
            raise page
        return page


class Names:
    """A name server: every name is this machine, but for what the test says.

    Attributes:
        answers: the addresses of a name; a list of lists is one answer for each question, the last one for ever.
        asked: the names that were asked for.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[list[str]]] = {}
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.answers.get(host, [["127.0.0.1"]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Pipeline:
    """Calls of one caller in one conversation.

    Attributes:
        engine: where their sandboxes come from.
        artifacts: the files of the conversation.
        admission: bounds how many calls run; the test may hold its only place.
        names: resolves the host names of requests of agents' tools.
        gateway: agents, runs, spaces and waits.
    """

    def __init__(
        self,
        folder: Path,
        database: Database,
        artifacts: DiskStore,
        running_max: int = 1,
        boot_id: str = "boot-1",
        **settings_of: Any,
    ) -> None:
        self.quotas = Quotas(NO_LIMITS)
        self.folder = folder
        self.engine = FakeSandboxEngine()
        self.artifacts = artifacts
        self.web = FixedPages()
        self.admission = Admission(running_max=running_max, queue_max=1)
        self.database = database
        self.sources = SqlSourcePool(database)
        self.timelines = SqlTimelineStore(database)
        self.files = ConversationFiles(artifacts, self.timelines, AssetFolders((folder,)))
        self.paths = LogicalPathResolver(self.files, self.sources, FolderSkills(folder / "skills"))
        resolver = InputResolver(self.files, self.sources, WorkspaceBounds(1_000_000, 500))
        jobs = JobRunner(self.admission, resolver, self.engine, artifacts, self.sources)
        settings = given_settings(folder / "data", **settings_of)
        known = KnownCallers(Keyring(SqlApiKeys(database)), self.quotas)
        tools = ToolDependencies(
            jobs=jobs,
            policy=CallPolicy(LIMITS, queue_s=5, overhead_s=10, inline_bytes_max=1_000),
            artifacts=artifacts,
            sources=self.sources,
            timelines=self.timelines,
            calls=SqlCallStore(database),
            paths=self.paths,
            tokens=BpeTokenCounter(),
            memory=MemorySearchTool(self.timelines, SqlPassageStore(database), self.files, None, half_life_days=30),
            fetcher=self.web,
            searcher=None,
            network=network_policy(settings.sandbox_network, CallerHosts(self.quotas.network, known.learn)),
        )
        audited = AuditService(version="1.0", boot_id="boot-1")
        rebuild = partial(program_tools, settings, tools)
        self.one_shot = OneShotJobs(
            OneShotDependencies(
                jobs, rebuild, artifacts, SqlAuditStore(database), tools.policy, LIMITS.wall_s, audited
            )
        )
        reruns = RerunDependencies(jobs, rebuild, self.files, self.sources, LIMITS, audited)
        store = self.store = SqlCallStore(database, {**call_effects(), **dispatch_effects()})
        own_tools, self.names = all_tools(settings, tools), Names()
        needs = GatewayDependencies(
            database, artifacts, own_tools, jobs, tools.policy, self.names, tools.tokens, audited
        )
        parts = build_gateway_parts(settings, needs)
        call_settings = self.call_settings = CallSettings(MIB, boot_id, "1.0")
        self.calls = Calls(own_tools, self.admission, store, call_settings, None, parts.tools)
        self.calls.stored.learn = known.learn
        self.link_keys = LinkKeyFile(settings.data_dir).in_use
        self.gateway = build_gateway(settings, database, parts, store, self.calls, self.link_keys)
        self.provenance = Provenance(store, SqlAuditStore(database), reruns)
        self.conversations = Conversations(
            SqlConversationStore(database, artifacts), artifacts, self.calls, self.quotas, NoMeter(), audited
        )
        self._count = 0

    async def submit(self, tool_id: str, params: dict[str, Any], **fields: Any) -> CallTicket:
        """Sends a call that outlives its client; its id is ``call_1``, ``call_2`` and so on."""
        self._count += 1
        request = {
            "tool_id": tool_id,
            "tool_call_id": f"call_{self._count}",
            "conversation_id": SCOPE.conversation_id,
            "turn_id": "turn_1",
            "params": params,
            **fields,
        }
        parsed = ToolCallRequest.model_validate_json(json.dumps(request))
        return await self.calls.submit(ANN, parsed, idempotency_key=None, request_id="req-1", detached=True)

    async def answer(self, tool_id: str, params: dict[str, Any], **fields: Any) -> dict[str, Any]:
        """The body of a call's answer: a response, or a problem with its ``status``."""
        answer = await (await self.submit(tool_id, params, **fields)).answer()
        body: dict[str, Any] = json.loads(answer.body)
        return body

    async def execute(self, *contract: dict[str, Any], code: str = "print(1)", **fields: Any) -> dict[str, Any]:
        """The answer of a program with a contract; without promises it explores."""
        params = {"contract": list(contract)} if contract else {"explore": True}
        return await self.answer(EXEC, params, code=code, **fields)

    async def save(self, physical: str, content: bytes = b"some bytes", mime: str = "text/plain") -> StoredArtifact:
        """Stores a file of the conversation."""
        path, sha256 = FilePath.from_physical(physical), hashlib.sha256(content).hexdigest()
        new = NewArtifact(path, FileContent(content), len(content), sha256, mime, "internal", "d", "call_0")
        [stored] = await self.artifacts.save(SCOPE, [new])
        return stored

    async def stored(self, physical: str) -> bytes | None:
        """The latest content of a file; None if there is none or a program removed it."""
        artifact = await self.artifacts.latest(SCOPE, FilePath.from_physical(physical))
        if artifact is None or artifact.removed:
            return None
        return (await self.artifacts.contents(SCOPE, [artifact]))[0]

    async def until(self, name: str, ticket: CallTicket) -> None:
        """Waits for an event of a call."""
        async for event in await self.calls.events(ANN, ticket.key.tool_call_id, "conv-1", after=0):
            if event.name == name:
                return

    @staticmethod
    def deadline() -> float:
        """Until when a test waits for a slot, on the monotonic clock."""
        return time.monotonic() + 60

    @staticmethod
    def names_of(physical: str) -> list[str]:
        """The names in a staging folder that a file of the timeline may be written to."""
        return [f"block-{hashlib.sha256(physical.encode()).hexdigest()}"]

    async def audit(self, tool_call_id: str = "call_1") -> AuditLine:
        """The audit line of a call."""
        line = await self.provenance.line(ANN, tool_call_id, SCOPE.conversation_id)
        return AuditLine.model_validate_json(line.text)

    def audit_lines(self) -> list[AuditLine]:
        """All audit lines of the project, those of reruns too."""
        with audit_lines(self.folder / "data", SecretStr("")) as lines:
            return [AuditLine.model_validate_json(line.text) for line in lines]

    async def rerun(self, tool_call_id: str = "call_1", principal: Principal = ANN) -> RerunReport:
        """Runs a call again."""
        return await self.provenance.rerun(principal, tool_call_id, SCOPE.conversation_id, "req-2")


@asynccontextmanager
async def opened_pipeline(
    folder: Path, running_max: int = 1, url: SecretStr = NO_SERVER, *, shared: bool = False, **settings_of: Any
) -> AsyncIterator[Pipeline]:
    """A pipeline on local stores; its calls have ended when the block is left.

    Args:
        folder: where its data are.
        running_max: how many of its calls may run.
        url: the database.
        shared: whether other processes use the database.
        settings_of: settings.
    """
    data_dir = folder / "data"
    database = Database(data_dir if url.get_secret_value() else lay_out(data_dir), url, shared=shared)
    await database.open()
    artifacts = DiskStore(database, LocalBlobStore(folder / "data"))
    await artifacts.open()
    pipeline = Pipeline(folder, database, artifacts, running_max, **settings_of)
    await pipeline.calls.recover()
    await pipeline.gateway.start()
    try:
        yield pipeline
    finally:
        await pipeline.gateway.stop()
        await pipeline.calls.close(0)
        await artifacts.close()
        await database.close()


def services_over(pipeline: Pipeline) -> Services:
    """The services of an HTTP application over a pipeline."""
    return Services(
        calls=pipeline.calls,
        provenance=pipeline.provenance,
        attachments=Attachments(pipeline.artifacts, pipeline.sources, bytes_max=MIB, inline_bytes_max=1_000),
        artifacts=pipeline.artifacts,
        history=SqlFileHistory(pipeline.database),
        previews=Previews(pipeline.one_shot, pipeline.artifacts),
        recent_calls=SqlRecentCalls(pipeline.database),
        operations=FixedOperations(),
        conversations=pipeline.conversations,
        sources=pipeline.sources,
        timeline=Timeline(pipeline.timelines, BpeTokenCounter(), CachePolicy(6, 4, 10_000)),
        paths=pipeline.paths,
        engine=pipeline.engine,
        image=ImageInventory(pipeline.engine, LIMITS),
        authenticator=Authenticator(ANN),
        quotas=pipeline.quotas,
        links=DownloadLinks(pipeline.link_keys, 600, time.time),
        uploads=UploadLinks(pipeline.link_keys, 600, time.time),
        hosts=None,
        metrics=bytes,
        draining=lambda: False,
        check_stores=StoreReadiness(pipeline.database, pipeline.folder).check,
        body_bytes_max=MIB,
        gateway=pipeline.gateway.services,
    )


def notices(answer: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The notices of an answer, by their codes."""
    listed = [json.loads(block["text"]) for block in answer["blocks"] if block["type"] == "react.notice"]
    return {notice["code"]: notice for notice in listed}


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    """The verdict on each file of an answer, by its physical path."""
    return {artifact["physical_path"]: artifact["verdict"] for artifact in answer["artifacts"]}


def digests(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The digests of the content blocks of an answer."""
    return [json.loads(block["meta"]["digest"]) for block in answer["blocks"] if "digest" in block["meta"]]
