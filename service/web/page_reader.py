"""Reads HTML pages in a sandbox: untrusted markup is only ever opened there."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.codes import WebCode
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.artifacts.staging import Staging
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.file_content import FileContent
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.runner import JobContext, JobRunner, PhaseTimer, Program
from proofbox.service.sandbox.limits import CallLimits, CallPolicy
from proofbox.service.sandbox.port import Collected, ExpectedFile, FileState, InputFile, Job, OutputSpec, StreamName
from proofbox.service.web.port import FetchedPage, WebFailedError, clean_text

TEXT_CHARS_MAX = 100_000
"""How much of a page's text is kept, in characters."""
_TITLE_CHARS_MAX = 500
_ANSWER_BYTES_MAX = 64 * 1024 * 1024  # of 20 pages, a character in up to twelve bytes
ANSWER_NAME = "page_text.json"
"""The file that the program writes."""
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of a page.

    Attributes:
        title: its title; empty if it has none.
        text: its readable text: Markdown of HTML, anything else as it is.
        language: the language that it declares, such as ``de`` or ``en-GB``.
        published: the day it was published, as ``2026-11-22``.
    """

    title: str
    text: str
    language: str | None = None
    published: str | None = None


@dataclass(frozen=True, slots=True)
class ReadingPolicy:
    """The operator's decisions about reading pages.

    Attributes:
        calls: those about any call.
        wall_s: wall clock for all pages of a call.
        page_s: wall clock for each.
    """

    calls: CallPolicy
    wall_s: float
    page_s: float


@dataclass(frozen=True, slots=True)
class PagesRead:
    """The texts of some pages.

    Attributes:
        texts: the text of each page, in their order, or why there is none.
        sandbox: where they were read; None if there was no sandbox.
    """

    texts: list[PageText | WebFailedError]
    sandbox: SandboxInfo | None = None


class PageReader:
    """Extracts the readable text of HTML pages, all pages of a call in one sandbox.

    Args:
        jobs: runs the reader in sandboxes.
        policy: the operator's decisions.
    """

    def __init__(self, jobs: JobRunner, policy: ReadingPolicy) -> None:
        self._jobs = jobs
        self._policy = policy

    async def read(self, call: ReactCall[Any], pages: Sequence[FetchedPage], timer: PhaseTimer) -> PagesRead:
        """Reads pages; one that cannot be read is an error of its own.

        Raises:
            QueueFullError, QueueTimeoutError: there is no slot.
            EngineUnavailableError: there is no sandbox.
            StoreFailedError, StoreFullError: there is no staging folder.
        """
        bounds = self._policy.calls.bounds(call.request.limits, timeout_s=self._policy.wall_s)
        context = JobContext(call.scope, call.request, bounds, call.observer, timer)
        async with self._jobs.slot(context) as job:
            inputs = await _stage_pages(call.turn_id, pages, job.staging)
            code = _reader_request(pages, inputs, call.turn_id, self._policy.page_s)
            files = JobInputs({file.path.physical: file for file in inputs})
            result = await job.run(reader_program(code, call.turn_id, bounds.limits), files)
            if result.failure is not None:
                failed = WebFailedError(WebCode.UNREADABLE_PAGE, f"no page could be read: {result.failure.message}")
                return PagesRead([failed] * len(pages), result.sandbox)
            rows = await asyncio.to_thread(answer_rows, result.collected)
        padded = (rows + [None] * len(pages))[: len(pages)]
        return PagesRead([_page_text(row) for row in padded], result.sandbox)


def reader_program(request: bytes, turn_id: str, limits: CallLimits) -> Program:
    """The program that extracts text from pages and documents.

    Args:
        request: its request, as JSON.
        turn_id: the current turn.
        limits: what it may use.
    """
    expected = ExpectedFile(ANSWER_NAME, is_glob=False, matches_max=1, checks={})
    job = Job("page_text", request, "page_text", turn_id, limits)
    return Program(job, OutputSpec(turn_id, (expected,), 0, limits), _discard_output)


def _discard_output(stream: StreamName, piece: bytes, truncated: bool) -> None:
    """Drops what the libraries of the program print."""


async def _stage_pages(turn_id: str, pages: Sequence[FetchedPage], staging: Staging) -> list[InputFile]:
    files = []
    for number, page in enumerate(pages, start=1):
        source = await staging.write(f"fetched-{number}", page.body)
        path = FilePath(turn_id, Namespace.FILES, f"page-{number}.html")
        files.append(InputFile(path, FileContent(source), len(page.body), writable=False))
    return files


def _reader_request(
    pages: Sequence[FetchedPage], inputs: Sequence[InputFile], turn_id: str, page_s: float
) -> bytes:
    request = {
        "pages": [
            {"path": file.path.physical, "charset": page.charset, "url": str(page.url)}
            for page, file in zip(pages, inputs, strict=True)
        ],
        "target": FilePath(turn_id, Namespace.FILES, ANSWER_NAME).physical,
        "characters_max": TEXT_CHARS_MAX,
        "seconds_per_page": page_s,
    }
    return json.dumps(request).encode()


def answer_rows(collected: Collected) -> list[Any]:
    """Parses what the program wrote; a page may control the program, so every value is checked."""
    for found in collected.found:
        if found.state is FileState.FILE and found.source is not None and found.size_bytes <= _ANSWER_BYTES_MAX:
            try:
                pages = json.loads(found.source.read())["pages"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                return []
            return pages if isinstance(pages, list) else []
    return []


def _page_text(row: Any) -> PageText | WebFailedError:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str) or not isinstance(row.get("title"), str):
        error = row.get("error") if isinstance(row, dict) else None
        reason = clean_text(error)[:_TITLE_CHARS_MAX] if isinstance(error, str) else "the reader gave no answer"
        return WebFailedError(WebCode.UNREADABLE_PAGE, f"the page cannot be read: {reason}")
    text = clean_text(row["text"])[:TEXT_CHARS_MAX].strip()
    if not text:
        return WebFailedError(WebCode.UNREADABLE_PAGE, "the page has no readable text; it may be made by scripts")
    return PageText(
        title=" ".join(clean_text(row["title"]).split())[:_TITLE_CHARS_MAX],
        text=text,
        language=_match_value(_LANGUAGE, row.get("language")),
        published=_match_value(_DATE, row.get("date")),
    )


def _match_value(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def plain_text(page: FetchedPage) -> PageText:
    """Decodes a page that is not markup."""
    charset = page.charset if page.charset and _PAGE_CHARSET.fullmatch(page.charset) else "utf-8-sig"
    try:
        text = page.body.decode(charset, errors="replace")
    except LookupError:
        text = page.body.decode("utf-8-sig", errors="replace")
    name = page.url.target.partition("?")[0].rpartition("/")[2]
    return PageText(title=name or page.url.host, text=clean_text(text)[:TEXT_CHARS_MAX])


# Encodings that pages have. Some of Python's others are slow on purpose-made bytes, and none of them is on the web.
_PAGE_CHARSET = re.compile(
    r"utf-16(le|be)?|us-ascii|iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|shift[_-]jis|euc-(jp|kr)"
    r"|gb2312|gbk|gb18030|big5",
    re.IGNORECASE,
)
