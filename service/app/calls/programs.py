"""Build what runs programs: the dependencies of the tools, reruns, and jobs without a conversation."""

import logging
import os
from dataclasses import dataclass, replace
from functools import partial

from proofbox.contracts.provenance import AuditService
from proofbox.service.app.calls.callers import CallerParts
from proofbox.service.app.extras import can_search_memory, missing_modules
from proofbox.service.app.packages.wiring import SandboxParts, build_packages
from proofbox.service.app.settings import Settings
from proofbox.service.app.stores import Stores
from proofbox.service.app.tools import ToolDependencies, program_tools
from proofbox.service.app.web_client import build_web_client
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.calls.lookup import find_printed_output
from proofbox.service.egress.policy import NetworkPolicy
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.one_shot import OneShotDependencies, OneShotJobs
from proofbox.service.jobs.rerun import Provenance, RerunDependencies
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.react.memsearch.e5 import E5Embedder
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallLimits, CallPolicy, limit_names
from proofbox.service.sandbox.workspace import ArchiveBounds
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.audit import SqlAuditStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.passages import SqlPassageStore
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from proofbox.service.web.client.resolver import SystemResolver

log = logging.getLogger("proofbox.memory")


def call_limits(settings: Settings) -> CallLimits:
    """The limits of a call that asks for no others."""
    return CallLimits(**{name: getattr(settings, name) for name in limit_names()})


def _memory_search(settings: Settings, stores: Stores, files: ConversationFiles) -> MemorySearchTool | None:
    """The search of past turns; by words alone without the model, None without the libraries that run it."""
    if not can_search_memory():
        return None
    if missing := missing_modules("memory"):
        log.warning("memory searches compare words alone: %s is not installed", *missing)
    return MemorySearchTool(
        stores.timelines,
        SqlPassageStore(stores.database),
        files,
        None if missing else E5Embedder(max(1, (os.cpu_count() or 1) // 2)),
        half_life_days=settings.memory_half_life_days,
    )


@dataclass(frozen=True, slots=True)
class Outside:
    """How the service reaches other machines.

    Attributes:
        resolver: resolves the host names of web pages.
        network: decides about the network of programs.
    """

    resolver: SystemResolver
    network: NetworkPolicy


def build_tool_dependencies(
    settings: Settings,
    stores: Stores,
    engine: PooledEngine,
    image: ImageInventory,
    callers: CallerParts,
    outside: Outside,
) -> ToolDependencies:
    """Build what the tools need.

    Args:
        settings: of the service.
        stores: where files, blocks and sources are.
        engine: runs sandboxes.
        image: lists what the sandbox image has.
        callers: knows callers, and gives their calls slots.
        outside: how the service reaches other machines.
    """
    files = ConversationFiles(stores.artifacts, stores.timelines, AssetFolders(settings.asset_roots))
    workspace = WorkspaceBounds(settings.workspace_bytes_max, settings.workspace_files_max)
    fetcher, searcher = build_web_client(settings, outside.resolver)
    jobs = JobRunner(
        callers.admission,
        InputResolver(files, stores.sources, workspace),
        engine,
        stores.artifacts,
        stores.sources,
    )
    policy = CallPolicy(
        call_limits(settings),
        settings.queue_s,
        settings.overhead_s,
        settings.inline_bytes_max,
        ArchiveBounds(settings.full_workspace_entries_max, settings.full_workspace_bytes_max),
    )
    calls = SqlCallStore(stores.database)
    return ToolDependencies(
        jobs=jobs,
        policy=policy,
        artifacts=stores.artifacts,
        sources=stores.sources,
        timelines=stores.timelines,
        calls=calls,
        paths=LogicalPathResolver(
            files,
            stores.sources,
            FolderSkills(settings.skills_dir),
            partial(find_printed_output, calls),
        ),
        tokens=BpeTokenCounter(),
        memory=_memory_search(settings, stores, files),
        fetcher=fetcher,
        searcher=searcher,
        network=outside.network,
        image=image,
        packages=build_packages(settings, callers.quotas, SandboxParts(jobs, policy, image), outside.resolver),
    )


def build_provenance(
    settings: Settings, stores: Stores, parts: ToolDependencies, audited: AuditService
) -> Provenance:
    """Build what reads audit lines and runs calls again."""
    reruns = RerunDependencies(
        parts.jobs,
        partial(program_tools, settings, parts),
        parts.paths.files,
        parts.sources,
        call_limits(settings),
        audited,
    )
    return Provenance(SqlCallStore(stores.database), SqlAuditStore(stores.database), reruns)


def build_one_shot(
    settings: Settings, stores: Stores, parts: ToolDependencies, audited: AuditService
) -> OneShotJobs:
    """Build what runs programs for requests without a conversation."""
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
