"""The composition root: reads the settings, builds engine, stores and services, hands them to the doors."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import uvicorn
from fastapi import FastAPI

from service.api.app import create_app
from service.api.doors import Doors
from service.api.server import DrainingServer
from service.core.admission import Admission
from service.core.attachments import Attachments
from service.core.calls import Calls, CallSettings
from service.core.execution import Execution
from service.core.limits import CallLimits, CallPolicy, limit_names
from service.core.rehosting import Rehosting, WorkspaceBounds
from service.core.rendering import Rendering, RenderPolicy
from service.core.sandbox_runs import SandboxRuns
from service.core.scopes import Principal
from service.core.timeline import Timeline
from service.engines.pooled import PooledEngine
from service.sandboxes import sandbox_engine
from service.settings import Settings
from service.stores.calls import SqliteCallStore
from service.stores.folders import AssetFolders
from service.stores.local_artifacts import LocalArtifactStore
from service.stores.sources import SqliteSourcePool
from service.stores.sqlite import Database
from service.stores.timelines import SqliteTimelineStore

log = logging.getLogger("proofbox")

_BOOT_ID_BYTES = 4
_LAST_ANSWERS_S = 5  # until answers and event streams that are still being sent are cut off


@dataclass(frozen=True, slots=True)
class Service:
    """Everything that runs, wired together.

    Attributes:
        settings: the operator's decisions.
        principal: on whose behalf every request speaks.
        database: what the stores keep their records in.
        artifacts: the files of conversations.
        sources: what their citations stand for.
        timeline: their event logs.
        attachments: takes attachments in.
        engine: where sandboxes come from.
        calls: the calls.
    """

    settings: Settings
    principal: Principal
    database: Database
    artifacts: LocalArtifactStore
    sources: SqliteSourcePool
    timeline: Timeline
    attachments: Attachments
    engine: PooledEngine
    calls: Calls


def _call_limits(settings: Settings) -> CallLimits:
    return CallLimits(**{name: getattr(settings, name) for name in limit_names()})


def build(settings: Settings) -> Service:
    """Wires everything together; nothing is opened or started yet.

    Raises:
        OSError: the seccomp profile cannot be read.
    """
    boot_id = secrets.token_hex(_BOOT_ID_BYTES)
    limits = _call_limits(settings)
    database = Database(settings.data_dir)
    artifacts = LocalArtifactStore(database, settings.data_dir)
    sources = SqliteSourcePool(database)
    timelines = SqliteTimelineStore(database)
    engine = sandbox_engine(settings, limits, boot_id)
    workspace = WorkspaceBounds(settings.workspace_bytes_max, settings.workspace_files_max)
    rehosting = Rehosting(artifacts, sources, AssetFolders(settings.asset_roots), workspace)
    admission = Admission(running_max=settings.running_max, queue_max=settings.queue_max)
    runs = SandboxRuns(admission, rehosting, engine, artifacts, sources)
    policy = CallPolicy(limits, settings.queue_s, settings.overhead_s, settings.inline_bytes_max)
    calls = Calls(
        # One story for each kind of tool.
        (Execution(runs, policy), Rendering(runs, RenderPolicy(policy, settings.render_wall_s))),
        admission,
        SqliteCallStore(database),
        CallSettings(remembered_bytes_max=settings.remembered_bytes_max, boot_id=boot_id),
    )
    return Service(
        settings=settings,
        principal=Principal(settings.tenant, settings.project, settings.user_type, settings.user),
        database=database,
        artifacts=artifacts,
        sources=sources,
        timeline=Timeline(timelines),
        attachments=Attachments(
            artifacts,
            sources,
            timelines,
            bytes_max=settings.attachment_bytes_max,
            inline_bytes_max=settings.inline_bytes_max,
        ),
        engine=engine,
        calls=calls,
    )


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[None]:
    """Opens the stores, starts the engine, answers what an earlier life left; closes all on exit.

    Raises:
        ServiceError: a store or the engine cannot be used; the message says what to do.
    """
    async with AsyncExitStack() as stack:
        await service.database.open()
        stack.push_async_callback(service.database.close)
        await service.artifacts.open()
        stack.push_async_callback(service.artifacts.close)
        stack.push_async_callback(service.engine.stop)
        await service.engine.start()
        if interrupted := await service.calls.recover():
            log.warning("answered %d calls that an earlier life of the service left open", interrupted)
        stack.push_async_callback(service.calls.close, service.settings.shutdown_grace_s)
        yield


def application(service: Service) -> FastAPI:
    """The HTTP application over a service that runs."""
    doors = Doors(
        calls=service.calls,
        attachments=service.attachments,
        artifacts=service.artifacts,
        sources=service.sources,
        timeline=service.timeline,
        engine=service.engine,
        principal=service.principal,
        draining=lambda: service.calls.is_closing,
        body_bytes_max=service.settings.body_bytes_max,
        heartbeat_s=service.settings.heartbeat_s,
    )
    return create_app(doors)


def serve(settings: Settings) -> None:
    """Serves until it is told to stop (SIGINT, SIGTERM).

    Raises:
        ServiceError: a store or the engine cannot be used; the message says what to do.
    """
    asyncio.run(_serve(build(settings)))


async def _serve(service: Service) -> None:
    settings = service.settings
    config = uvicorn.Config(
        application(service),
        host=settings.host,
        port=settings.port,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_LAST_ANSWERS_S,
    )
    async with running(service):
        await DrainingServer(config, lambda: service.calls.close(settings.shutdown_grace_s)).serve()
