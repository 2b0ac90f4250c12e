"""The tool ``web_tools.web_fetch``: fetches pages, extracts their text in a sandbox and stores them as sources."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from proofbox.contracts.codes import WebCode
from proofbox.contracts.react_tools import WebFetchParams
from proofbox.contracts.tool_call_response import SandboxInfo, ToolCallResponse
from proofbox.service.artifacts.port import NewPage, SourcePool
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.jobs.runner import PhaseTimer
from proofbox.service.timeline.truncation import json_bytes, truncate_evenly
from proofbox.service.web.page_reader import PageReader, PageText, plain_text
from proofbox.service.web.port import FetchedPage, PageFetcher, WebFailedError
from proofbox.service.web.response import result_blocks
from proofbox.service.web.urls import UrlRefusedError, WebUrl

_AT_ONCE = 5
_SHOWN_TITLE_CHARS = 200

Outcome = FetchedPage | WebFailedError


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """The operator's decisions about fetching.

    Attributes:
        call_s: wall clock for fetching all pages of a call.
        queue_s: how long a call may wait until others have fetched theirs.
    """

    call_s: float
    queue_s: float


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page that was fetched and read.

    Attributes:
        page: what came.
        text: its text.
        sid: its id in the sources pool.
    """

    page: FetchedPage
    text: PageText
    sid: int


class WebFetchTool:
    """Fetches pages for a model."""

    def __init__(
        self,
        fetcher: PageFetcher,
        reading: PageReader,
        sources: SourcePool,
        admission: Admission,
        policy: FetchPolicy,
    ) -> None:
        self._fetcher = fetcher
        self._reading = reading
        self._sources = sources
        self._admission = admission
        self._policy = policy

    async def run(self, call: ReactCall[WebFetchParams]) -> ToolCallResponse:
        """Runs one call; a page that cannot be had is an error in its own place.

        Raises:
            ToolRefusedError: ``fetch_failed``, if no page could be had.
            ServiceError: the service is at fault.
        """
        asked = {text: _parse_url(text) for text in call.params.urls}
        wanted = list(dict.fromkeys(url for url in asked.values() if isinstance(url, WebUrl)))
        timer = PhaseTimer(call.began)
        fetched = dict(zip(wanted, await self._fetch(wanted, call), strict=True))
        texts, sandbox = await self._read(call, fetched, timer)
        known = await self._remember(call, fetched, texts)
        answers: dict[str, ReadPage | WebFailedError] = {}
        for text, url in asked.items():
            answers[text] = url if isinstance(url, WebFailedError) else known[url]
        content = _content(answers)
        read = [answer.sid for answer in answers.values() if isinstance(answer, ReadPage)]
        if not read:
            why = "no page could be fetched; urls says why"
            raise ToolRefusedError(WebCode.FETCH_FAILED, why, shown=_failures(answers), has_run=True, urls=content)
        timer.stop()
        blocks, report = result_blocks(call, content, read), _report(answers)
        response = call.build_response(blocks, report=report, text=_text_of(report, content), ret=content)
        return response.model_copy(update={"timings_ms": timer.timings, "sandbox": sandbox})

    async def _fetch(self, urls: Sequence[WebUrl], call: ReactCall[WebFetchParams]) -> list[Outcome]:
        """What became of each address; all that is not there in time counts as failed."""
        if not urls:
            return []
        some = asyncio.Semaphore(_AT_ONCE)

        async def one(url: WebUrl) -> Outcome:
            try:
                async with asyncio.timeout_at(ends), some:
                    return await self._fetcher.fetch(url)
            except WebFailedError as exc:
                return exc
            except TimeoutError:
                return WebFailedError(
                    WebCode.FETCH_TIMEOUT,
                    f"the {len(urls)} pages of the call took longer than {self._policy.call_s:g} s; ask for fewer",
                )

        deadline, observer = time.monotonic() + self._policy.queue_s, call.observer
        with await self._admission.enter(deadline, observer.on_queued, observer.owner):
            ends = asyncio.get_running_loop().time() + self._policy.call_s
            return list(await asyncio.gather(*(one(url) for url in urls)))

    async def _read(
        self, call: ReactCall[WebFetchParams], fetched: dict[WebUrl, Outcome], timer: PhaseTimer
    ) -> tuple[dict[WebUrl, PageText | WebFailedError], SandboxInfo | None]:
        texts: dict[WebUrl, PageText | WebFailedError] = {}
        markup: dict[WebUrl, FetchedPage] = {}
        for url, outcome in fetched.items():
            if isinstance(outcome, WebFailedError):
                texts[url] = outcome
            elif outcome.is_html:
                markup[url] = outcome
            else:
                texts[url] = await asyncio.to_thread(plain_text, outcome)
        if not markup:
            return texts, None
        read = await self._reading.read(call, list(markup.values()), timer)
        return texts | dict(zip(markup, read.texts, strict=True)), read.sandbox

    async def _remember(
        self,
        call: ReactCall[WebFetchParams],
        fetched: dict[WebUrl, Outcome],
        texts: dict[WebUrl, PageText | WebFailedError],
    ) -> dict[WebUrl, ReadPage | WebFailedError]:
        """The pages as sources: the row of the address that was asked for, which a search may have found before."""
        known: dict[WebUrl, ReadPage | WebFailedError] = {}
        new: dict[WebUrl, NewPage] = {}
        for url, outcome in fetched.items():
            text = texts[url]
            if isinstance(text, WebFailedError):
                known[url] = text
            elif isinstance(outcome, FetchedPage):
                new[url] = NewPage(str(url), text.title, text.text, outcome.mime, call.turn_id)
        rows = await self._sources.add_pages(call.scope, list(new.values())) if new else []
        for url, row in zip(new, rows, strict=True):
            page, text = fetched[url], texts[url]
            if isinstance(page, FetchedPage) and isinstance(text, PageText):
                known[url] = ReadPage(page, text, row.sid)
        return known


def _parse_url(text: str) -> WebUrl | WebFailedError:
    try:
        return WebUrl.parse(text)
    except UrlRefusedError as exc:
        return WebFailedError(WebCode.URL_NOT_ALLOWED, str(exc))


def _content(answers: dict[str, ReadPage | WebFailedError]) -> dict[str, Any]:
    """The content block: by address, 20,480 bytes at most unless the addresses alone take more."""
    content = {asked: _entry(asked, answer) for asked, answer in answers.items()}
    read = {asked: answer for asked, answer in answers.items() if isinstance(answer, ReadPage)}
    room = TEXT_BYTES_MAX - json_bytes(content)
    shares = truncate_evenly([answer.text.text for answer in read.values()], max(room, 0))
    for asked, text in zip(read, shares, strict=True):
        content[asked]["content"] = text
    return content


def _entry(asked: str, answer: ReadPage | WebFailedError) -> dict[str, Any]:
    if isinstance(answer, WebFailedError):
        return {"error": {"code": answer.code, "message": answer.message}}
    page, text = answer.page, answer.text
    came_from = str(page.url)
    entry: dict[str, Any] = {"content": "", "title": text.title[:_SHOWN_TITLE_CHARS], "sid": answer.sid}
    entry["mime"] = page.mime
    if came_from != asked:
        entry["url"] = came_from
    if text.language:
        entry["language"] = text.language
    if text.published:
        entry["published"] = text.published
    return entry


def _text_of(report: str, content: dict[str, Any]) -> str:
    """The pages with their texts, for a model."""
    cut = "\n[… react.read reads on: so:sources_pool[{sid}]#L1-200 …]"
    pages = [
        f"[[[S:{page['sid']}]] {page['title']} {asked}]\n{page['content']}"
        + (cut.format(sid=page["sid"]) if page["content"].endswith(TRUNCATED_SUFFIX) else "")
        for asked, page in content.items()
        if "sid" in page
    ]
    return "\n\n".join([report, *pages])


def _report(answers: dict[str, ReadPage | WebFailedError]) -> str:
    read = [f"- [[S:{a.sid}]] {url}" for url, a in answers.items() if isinstance(a, ReadPage)]
    return "\n".join(["Fetched pages:", *read, *([failed] if (failed := _failures(answers)) else [])])


def _failures(answers: dict[str, ReadPage | WebFailedError]) -> str:
    failed = [f"- {url}: {a.code} — {a.message}" for url, a in answers.items() if isinstance(a, WebFailedError)]
    return "\n".join(["Not fetched:", *failed]) if failed else ""
