"""The second half of the composition root: which story tells the calls of which tool."""

from dataclasses import dataclass

from contracts.react_tools import (
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
from service.app.settings import Settings
from service.artifacts.path_resolver import LogicalPathResolver
from service.artifacts.port import ArtifactStore, SourcePool
from service.calls.admission import Admission
from service.calls.direct_tool import DirectTool
from service.calls.param_references import References
from service.calls.tool import Tool
from service.execution.tool import ExecTool
from service.jobs.runner import JobRunner
from service.react.document_reader import DocumentReader
from service.react.hide import HideTool
from service.react.memsearch.tool import MemorySearchTool
from service.react.patch import PatchTool
from service.react.plan import PlanTool
from service.react.read import ReadBounds, ReadTool
from service.react.search_files import SearchFilesTool
from service.react.text_file import TextFiles
from service.react.write import WriteTool
from service.rendering.tool import RenderPolicy, RenderTool
from service.sandbox.image_inventory import ImageInventory
from service.sandbox.limits import CallPolicy
from service.timeline.cache_points import CachePolicy
from service.timeline.port import TimelineStore
from service.timeline.token_counter import TokenCounter
from service.web.fetch_tool import FetchPolicy, WebFetchTool
from service.web.page_reader import PageReader, ReadingPolicy
from service.web.port import PageFetcher, PageSearcher
from service.web.search_tool import WebSearchTool


@dataclass(frozen=True, slots=True)
class ToolDependencies:
    """What the stories are made of.

    Attributes:
        runs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        artifacts: the files of conversations.
        sources: what citations stand for.
        timelines: the event logs.
        paths: resolves the paths of a call, stored or handed in.
        tokens: counts tokens.
        memory: searches what was said by meaning.
        fetcher: fetches web pages.
        searcher: asks a search engine; None if the operator has named none.
        image: lists what the sandbox image has.
    """

    runs: JobRunner
    policy: CallPolicy
    artifacts: ArtifactStore
    sources: SourcePool
    timelines: TimelineStore
    paths: LogicalPathResolver
    tokens: TokenCounter
    memory: MemorySearchTool
    fetcher: PageFetcher
    searcher: PageSearcher | None
    image: ImageInventory | None = None


def cache_policy(settings: Settings) -> CachePolicy:
    """What of a timeline a prompt cache holds."""
    return CachePolicy(
        settings.cache_point_min_rounds, settings.cache_point_offset_rounds, settings.editable_tail_tokens
    )


def rerunnable(settings: Settings, parts: ToolDependencies, runs: JobRunner) -> tuple[Tool, ...]:
    """The stories of the tools that run a program of the caller's or render a document, over other runs."""
    return (
        ExecTool(runs, parts.policy, parts.tokens, parts.image),
        RenderTool(runs, RenderPolicy(parts.policy, settings.render_wall_s)),
    )


def stories(settings: Settings, parts: ToolDependencies) -> tuple[Tool, ...]:
    """One story for each kind of tool."""
    inline_bytes_max = settings.inline_bytes_max
    reading_policy = ReadingPolicy(parts.policy, settings.web_read_wall_s, settings.web_read_page_s)
    read = ReadTool(
        parts.paths,
        parts.tokens,
        ReadBounds(inline_bytes_max, settings.read_tokens_max),
        DocumentReader(parts.runs, reading_policy),
    )
    texts = TextFiles(parts.paths.files, parts.sources, parts.tokens, inline_bytes_max)
    writing = WriteTool(texts)
    references = References(parts.paths.files)
    searching = SearchFilesTool(parts.paths.files, settings.file_search_s)
    reading = PageReader(parts.runs, reading_policy)
    fetching = WebFetchTool(
        parts.fetcher,
        reading,
        parts.sources,
        Admission(running_max=settings.web_fetching_max, queue_max=settings.queue_max),
        FetchPolicy(settings.web_call_s, settings.queue_s),
    )
    web_searching = WebSearchTool(parts.searcher, parts.sources)
    hiding = HideTool(parts.timelines, parts.tokens, cache_policy(settings))
    return (
        *rerunnable(settings, parts, parts.runs),
        DirectTool(("react.read",), ReadParams, read.tell, parts.sources),
        DirectTool(("react.write", "react.stream"), WriteParams, writing.write, parts.sources, references),
        DirectTool(("react.file",), FileParams, writing.file, parts.sources, references),
        DirectTool(("react.patch",), PatchParams, PatchTool(texts, parts.paths).patch, parts.sources, references),
        DirectTool(("react.search_files",), SearchFilesParams, searching.search, parts.sources),
        DirectTool(("react.hide",), HideParams, hiding.tell, parts.sources),
        DirectTool(("react.plan",), PlanParams, PlanTool(parts.timelines).tell, parts.sources),
        DirectTool(("react.memsearch",), MemsearchParams, parts.memory.tell, parts.sources),
        DirectTool(("web_tools.web_search",), WebSearchParams, web_searching.tell, parts.sources),
        DirectTool(("web_tools.web_fetch",), WebFetchParams, fetching.tell, parts.sources),
    )
