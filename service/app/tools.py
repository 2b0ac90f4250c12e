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
from service.artifacts.conversation_files import TurnFiles
from service.artifacts.port import ArtifactStore, SourcePool
from service.artifacts.skills import Skills
from service.calls.admission import Admission
from service.calls.direct_tool import ReactStory
from service.calls.param_references import References
from service.calls.tool import Story
from service.execution.tool import Execution
from service.jobs.runner import SandboxRuns
from service.react.document_reader import DocumentReading
from service.react.hide import HidingStory
from service.react.memsearch.tool import MemorySearch
from service.react.patch import Patching
from service.react.plan import PlanStory
from service.react.read import ReactRead, ReadBounds
from service.react.search_files import Searching
from service.react.text_file import TextFiles
from service.react.write import Writing
from service.rendering.tool import Rendering, RenderPolicy
from service.sandbox.image_inventory import ImageInventory
from service.sandbox.limits import CallPolicy
from service.timeline.cache_points import CachePolicy
from service.timeline.port import TimelineStore
from service.timeline.token_counter import TokenCounter
from service.web.fetch_tool import FetchPolicy, WebFetching
from service.web.page_reader import PageReading, ReadingPolicy
from service.web.port import PageFetcher, PageSearcher
from service.web.search_tool import WebSearching


@dataclass(frozen=True, slots=True)
class StoryParts:
    """What the stories are made of.

    Attributes:
        runs: runs programs in sandboxes.
        policy: the operator's decisions about any call.
        artifacts: the files of conversations.
        sources: what citations stand for.
        timelines: the event logs.
        files: the files of a call, stored or handed in.
        skills: what agents can read up on.
        tokens: counts tokens.
        memory: searches what was said by meaning.
        fetcher: fetches web pages.
        searcher: asks a search engine; None if the operator has named none.
        image: lists what the sandbox image has.
    """

    runs: SandboxRuns
    policy: CallPolicy
    artifacts: ArtifactStore
    sources: SourcePool
    timelines: TimelineStore
    files: TurnFiles
    skills: Skills
    tokens: TokenCounter
    memory: MemorySearch
    fetcher: PageFetcher
    searcher: PageSearcher | None
    image: ImageInventory | None = None


def cache_policy(settings: Settings) -> CachePolicy:
    """What of a timeline a prompt cache holds."""
    return CachePolicy(
        settings.cache_point_min_rounds, settings.cache_point_offset_rounds, settings.editable_tail_tokens
    )


def rerunnable(settings: Settings, parts: StoryParts, runs: SandboxRuns) -> tuple[Story, ...]:
    """The stories of the tools that run a program of the caller's or render a document, over other runs."""
    return (
        Execution(runs, parts.policy, parts.tokens, parts.image),
        Rendering(runs, RenderPolicy(parts.policy, settings.render_wall_s)),
    )


def stories(settings: Settings, parts: StoryParts) -> tuple[Story, ...]:
    """One story for each kind of tool."""
    inline_bytes_max = settings.inline_bytes_max
    reading_policy = ReadingPolicy(parts.policy, settings.web_read_wall_s, settings.web_read_page_s)
    read = ReactRead(
        parts.files,
        parts.sources,
        parts.skills,
        parts.tokens,
        ReadBounds(inline_bytes_max, settings.read_tokens_max),
        DocumentReading(parts.runs, reading_policy),
    )
    texts = TextFiles(parts.artifacts, parts.sources, parts.tokens, inline_bytes_max)
    writing = Writing(texts)
    references = References(parts.files)
    searching = Searching(parts.files, settings.file_search_s)
    reading = PageReading(parts.runs, reading_policy)
    fetching = WebFetching(
        parts.fetcher,
        reading,
        parts.sources,
        Admission(running_max=settings.web_fetching_max, queue_max=settings.queue_max),
        FetchPolicy(settings.web_call_s, settings.queue_s),
    )
    web_searching = WebSearching(parts.searcher, parts.sources)
    hiding = HidingStory(parts.timelines, parts.tokens, cache_policy(settings))
    return (
        *rerunnable(settings, parts, parts.runs),
        ReactStory(("react.read",), ReadParams, read.tell, parts.sources),
        ReactStory(("react.write", "react.stream"), WriteParams, writing.write, parts.sources, references),
        ReactStory(("react.file",), FileParams, writing.file, parts.sources, references),
        ReactStory(("react.patch",), PatchParams, Patching(texts, parts.files).patch, parts.sources, references),
        ReactStory(("react.search_files",), SearchFilesParams, searching.search, parts.sources),
        ReactStory(("react.hide",), HideParams, hiding.tell, parts.sources),
        ReactStory(("react.plan",), PlanParams, PlanStory(parts.timelines).tell, parts.sources),
        ReactStory(("react.memsearch",), MemsearchParams, parts.memory.tell, parts.sources),
        ReactStory(("web_tools.web_search",), WebSearchParams, web_searching.tell, parts.sources),
        ReactStory(("web_tools.web_fetch",), WebFetchParams, fetching.tell, parts.sources),
    )
