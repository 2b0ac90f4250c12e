"""The tool registry: which tool runs the calls of which id."""

from dataclasses import dataclass

from proofbox.contracts.codes import ToolCode
from proofbox.contracts.react_tools import (
    TOOL_ALIASES,
    FileParams,
    HideParams,
    MemsearchParams,
    PatchParams,
    PlanParams,
    ReadParams,
    SearchFilesParams,
    WebFetchParams,
    WebSearchParams,
    WriteParams,
)
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX, OutputFormat
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.app.extras import NO_MEMORY_SEARCH, can_search_memory
from proofbox.service.app.settings import Settings
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import ArtifactStore, SourcePool
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.direct_tool import DirectTool, ReactCall, ToolRefusedError
from proofbox.service.calls.param_references import References
from proofbox.service.calls.port import CallStore
from proofbox.service.calls.tool import Tool
from proofbox.service.egress.policy import NetworkPolicy
from proofbox.service.execution.tool import ExecTool
from proofbox.service.jobs.runner import JobRunner
from proofbox.service.packages.port import Packages
from proofbox.service.react.document_reader import DocumentReader
from proofbox.service.react.hide import HideTool
from proofbox.service.react.memsearch.tool import MemorySearchTool
from proofbox.service.react.patch import PatchTool
from proofbox.service.react.plan import PlanTool
from proofbox.service.react.read import ReadBounds, ReadTool
from proofbox.service.react.search_files import SearchFilesTool
from proofbox.service.react.text_file import TextFiles
from proofbox.service.react.write import WriteTool
from proofbox.service.rendering.tool import RenderPolicy, RenderTool
from proofbox.service.sandbox.image_inventory import ImageInventory
from proofbox.service.sandbox.limits import CallPolicy
from proofbox.service.timeline.cache_points import CachePolicy
from proofbox.service.timeline.port import TimelineStore
from proofbox.service.timeline.token_counter import TokenCounter
from proofbox.service.web.fetch_tool import FetchPolicy, WebFetchTool
from proofbox.service.web.page_reader import PageReader, ReadingPolicy
from proofbox.service.web.port import PageFetcher, PageSearcher
from proofbox.service.web.search_tool import WebSearchTool


@dataclass(frozen=True, slots=True)
class ToolDependencies:
    """What the tools need.

    Attributes:
        jobs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        artifacts: the files of conversations.
        sources: what citations stand for.
        timelines: the event logs.
        calls: the accepted calls.
        paths: resolves the paths of a call, stored or handed in.
        tokens: counts tokens.
        memory: searches past turns by meaning; None if its libraries are not installed.
        fetcher: fetches web pages.
        searcher: asks a search engine; None if the operator has named none.
        network: decides about the network of programs.
        image: lists what the sandbox image has.
        packages: installs packages; None if the operator has no index.
    """

    jobs: JobRunner
    policy: CallPolicy
    artifacts: ArtifactStore
    sources: SourcePool
    timelines: TimelineStore
    calls: CallStore
    paths: LogicalPathResolver
    tokens: TokenCounter
    memory: MemorySearchTool | None
    fetcher: PageFetcher
    searcher: PageSearcher | None
    network: NetworkPolicy
    image: ImageInventory | None = None
    packages: Packages | None = None


def cache_policy(settings: Settings) -> CachePolicy:
    """What of a timeline a prompt cache holds."""
    return CachePolicy(
        settings.cache_point_min_rounds, settings.cache_point_offset_rounds, settings.editable_tail_tokens
    )


def program_tools(settings: Settings, parts: ToolDependencies, jobs: JobRunner) -> dict[str, Tool]:
    """Builds the tools that run a program of the caller's or render a document; their calls can be run again."""
    render_policy = RenderPolicy(parts.policy, settings.render_wall_s)
    return {
        **{
            exec_tool_id(name): ExecTool(
                name,
                jobs,
                parts.policy,
                parts.tokens,
                parts.image,
                calls=parts.calls,
                network=parts.network,
                packages=parts.packages,
            )
            for name in Language
        },
        **{f"{RENDER_TOOL_PREFIX}{output}": RenderTool(output, jobs, render_policy) for output in OutputFormat},
    }


async def _refuse_memory_search(_call: ReactCall[MemsearchParams]) -> ToolCallResponse:
    raise ToolRefusedError(
        ToolCode.MEMORY_NOT_INSTALLED, f"{NO_MEMORY_SEARCH}. react.read opens paths that are known"
    )


def absent_tools() -> dict[str, str]:
    """The tools that the catalogue leaves out, and why; a call of one is refused with that reason."""
    return {} if can_search_memory() else {"react.memsearch": NO_MEMORY_SEARCH}


def all_tools(settings: Settings, parts: ToolDependencies) -> dict[str, Tool]:
    """Builds every tool, by the ids that it is called by."""
    inline_bytes_max, sources = settings.inline_bytes_max, parts.sources
    reading_policy = ReadingPolicy(parts.policy, settings.web_read_wall_s, settings.web_read_page_s)
    read = ReadTool(
        parts.paths,
        parts.tokens,
        ReadBounds(inline_bytes_max, settings.read_tokens_max),
        DocumentReader(parts.jobs, reading_policy),
    )
    texts = TextFiles(parts.paths.files, sources, parts.tokens, inline_bytes_max)
    write = WriteTool(texts)
    references = References(parts.paths.files)
    fetch = WebFetchTool(
        parts.fetcher,
        PageReader(parts.jobs, reading_policy),
        sources,
        Admission(running_max=settings.web_fetching_max, queue_max=settings.queue_max),
        FetchPolicy(settings.web_call_s, settings.queue_s),
    )
    search = WebSearchTool(parts.searcher, sources)
    search_files = SearchFilesTool(parts.paths.files, settings.file_search_s)
    hide = HideTool(parts.timelines, parts.tokens, cache_policy(settings))
    write_tool = DirectTool(WriteParams, write.write, sources, references)
    search_memory = parts.memory.run if parts.memory else _refuse_memory_search
    tools: dict[str, Tool] = {
        **program_tools(settings, parts, parts.jobs),
        "react.read": DirectTool(ReadParams, read.run, sources),
        "react.write": write_tool,
        "react.stream": write_tool,
        "react.file": DirectTool(FileParams, write.file, sources, references),
        "react.patch": DirectTool(PatchParams, PatchTool(texts, parts.paths).patch, sources, references),
        "react.search_files": DirectTool(SearchFilesParams, search_files.search, sources),
        "react.hide": DirectTool(HideParams, hide.run, sources),
        "react.plan": DirectTool(PlanParams, PlanTool(parts.timelines).run, sources),
        "react.memsearch": DirectTool(MemsearchParams, search_memory, sources),
        "web_tools.web_search": DirectTool(WebSearchParams, search.run, sources),
        "web_tools.web_fetch": DirectTool(WebFetchParams, fetch.run, sources),
    }
    return tools | {alias: tools[tool_id] for alias, tool_id in TOOL_ALIASES.items()}
