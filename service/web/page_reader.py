"""Reads HTML pages in a sandbox: untrusted markup is only ever opened there."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contracts.codes import WebCode
from contracts.paths import FilePath, Namespace
from contracts.tool_call_request import ToolCallRequest
from service.calls.tool import CallObserver
from service.errors import StoreFailedError
from service.file_content import FileContent
from service.jobs.inputs import JobInputs
from service.jobs.runner import Attempt, JobRunner, Program
from service.sandbox.limits import CallPolicy
from service.sandbox.port import ExpectedFile, FileState, InputFile, Job, OutputSpec, StreamName
from service.web.port import FetchedPage, WebFailedError, clean_text

TEXT_CHARS_MAX = 100_000
"""How much of a page's text is kept, in characters."""
_TITLE_CHARS_MAX = 500
_ANSWER_BYTES_MAX = 64 * 1024 * 1024  # of 20 pages, a character in up to twelve bytes
ANSWER_NAME = "readable.json"
"""The file that the program writes."""
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class PageText:
    """What a page says.

    Attributes:
        title: its title; empty if it has none.
        text: its readable text: Markdown of HTML, anything else as it is.
        language: the language that it says it is in, such as ``de`` or ``en-GB``.
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


class PageReader:
    """Runs the program that takes the readable text out of HTML, once for all pages of a call."""

    def __init__(self, runs: JobRunner, policy: ReadingPolicy) -> None:
        self._runs = runs
        self._policy = policy

    async def read(
        self, request: ToolCallRequest, pages: Sequence[FetchedPage], attempt: Attempt, watcher: CallObserver
    ) -> list[PageText | WebFailedError]:
        """What the pages say, in their order; a page that cannot be read is an error of its own.

        Raises:
            QueueFullError, QueueTimeoutError: there is no place to run.
            EngineUnavailableError: there is no sandbox.
            StoreFailedError, StoreFullError: there is no staging folder.
        """
        bounds = self._policy.calls.bounds(request.limits, timeout_s=self._policy.wall_s)
        turn_id = request.turn_id or ""
        async with self._runs.place(bounds, attempt, watcher) as staging:
            inputs = await asyncio.to_thread(_staged, turn_id, pages, await staging.folder())
            attempt.gathered = JobInputs({file.path.physical: file for file in inputs})
            code = _request_of(pages, inputs, turn_id, self._policy.page_s)
            wanted = ExpectedFile(ANSWER_NAME, is_glob=False, matches_max=1, checks={})
            program = Program(
                Job("readable", code, "readable", turn_id, bounds.limits),
                OutputSpec(turn_id, (wanted,), 0, bounds.limits),
                discard_output,
            )
            await self._runs.run(request, bounds, program, attempt=attempt, staging=staging, watcher=watcher)
            if attempt.failure is not None:
                failed = WebFailedError(
                    WebCode.UNREADABLE_PAGE, f"no page could be read: {attempt.failure.message}"
                )
                return [failed] * len(pages)
            rows = await asyncio.to_thread(answer_rows, attempt)
        return [_page_text(row) for row in (rows + [None] * len(pages))[: len(pages)]]


def discard_output(stream: StreamName, piece: bytes, truncated: bool) -> None:
    """What the libraries of the program print is nobody's."""


def _staged(turn_id: str, pages: Sequence[FetchedPage], staging: Path) -> list[InputFile]:
    files = []
    for number, page in enumerate(pages, start=1):
        source = staging / f"fetched-{number}"
        try:
            source.write_bytes(page.body)
        except OSError as exc:
            raise StoreFailedError("the staging folder of the artifact store cannot be written") from exc
        path = FilePath(turn_id, Namespace.FILES, f"page-{number}.html")
        files.append(InputFile(path, FileContent(source), len(page.body), writable=False))
    return files


def _request_of(pages: Sequence[FetchedPage], inputs: Sequence[InputFile], turn_id: str, page_s: float) -> bytes:
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


def answer_rows(attempt: Attempt) -> list[Any]:
    """What the program wrote; a page may have taken it over, so nothing is taken for granted."""
    for found in attempt.collected.found:
        if found.state is FileState.FILE and found.source is not None and found.size_bytes <= _ANSWER_BYTES_MAX:
            try:
                pages = json.loads(found.source.read())["pages"]
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                return []
            return pages if isinstance(pages, list) else []
    return []


def _page_text(row: Any) -> PageText | WebFailedError:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str) or not isinstance(row.get("title"), str):
        told = row.get("error") if isinstance(row, dict) else None
        reason = clean_text(told)[:_TITLE_CHARS_MAX] if isinstance(told, str) else "the reader gave no answer"
        return WebFailedError(WebCode.UNREADABLE_PAGE, f"the page cannot be read: {reason}")
    text = clean_text(row["text"])[:TEXT_CHARS_MAX].strip()
    if not text:
        return WebFailedError(WebCode.UNREADABLE_PAGE, "the page has no readable text; it may be made by scripts")
    return PageText(
        title=" ".join(clean_text(row["title"]).split())[:_TITLE_CHARS_MAX],
        text=text,
        language=_matching(_LANGUAGE, row.get("language")),
        published=_matching(_DATE, row.get("date")),
    )


def _matching(pattern: re.Pattern[str], value: Any) -> str | None:
    return value if isinstance(value, str) and pattern.fullmatch(value) else None


def plain_text(page: FetchedPage) -> PageText:
    """A page that is no markup, as it is: decoding is all that happens to it."""
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
