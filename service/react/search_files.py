"""``react.search_files``: search the files of the conversation by name and content.

These are what a program finds: the newest version of each name of the conversation. Patterns are a model's, so they
run under a clock of processor time, and without the lock that would hold up everything else.
"""

import asyncio
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from proofbox.contracts.codes import ToolCode
from proofbox.contracts.react_tools import SearchFilesParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.found_file import ConversationFile
from proofbox.service.artifacts.staging import staging
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.text_encoding import as_utf_8
from proofbox.service.visible_text import list_first, visible_line

if TYPE_CHECKING:
    import regex

FILE_BYTES_MAX = 10 * 1024 * 1024
"""As much of a file is searched."""
CALL_BYTES_MAX = 512 * 1024 * 1024
"""As much is read for one call."""
_LINES_SHOWN = 5
_COUNTING_PART = 0.25  # of the time that all patterns have: so much more for the count of lines that are not shown
_LINE_CHARS = 200
_REPORT_LINES = 100
_REPORT_CHARS = 4_000
_TEXT_LINES = 500
_TEXT_CHARS = 20_000
_NAMED_MAX = 10
_SNIFFED_BYTES = 8_192
STRETCH_CHARS = 64 * 1024
"""As much of a text is matched at one time."""
REPEATS_MAX = 100_000
"""What the numbers of all repeats of a pattern may multiply to."""
_VERBOSE = re.compile(r"\(\?[A-Za-z0-9-]*x")
_BRACES = re.compile(r"\{([^{}]*)\}")
_NUMBER = re.compile(r"\d{1,9}")


@dataclass(slots=True)
class _Clock:
    """What is left of the processor time that the patterns of one call may take.

    It is not wall-clock time: on a busy machine the same search takes longer to answer.

    Attributes:
        left_s: in seconds.
        limit_s: what there was at first.
    """

    left_s: float
    limit_s: float

    def search(
        self, field_name: str, pattern: "regex.Pattern[str]", text: str, at: int = 0
    ) -> "regex.Match[str] | None":
        """The first match from ``at`` on.

        Raises:
            ToolRefusedError: ``regex_timeout``.
        """
        if self.left_s <= 0:
            raise self._refusal(field_name)
        with self.counting():
            try:
                # Concurrent: the matcher gives up the interpreter's lock. Its time-out counts the processor time of
                # all threads, so it never comes later than that of this one.
                return pattern.search(text, at, timeout=self.left_s, concurrent=True)
            except (TimeoutError, MemoryError) as exc:
                self.left_s = 0.0  # other threads may have used part of it
                raise self._refusal(field_name) from exc

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Takes the processor time of the block, which stays in one thread, from what is left."""
        began = time.thread_time()
        try:
            yield
        finally:
            self.left_s -= time.thread_time() - began

    def _refusal(self, field_name: str) -> ToolRefusedError:
        return ToolRefusedError(
            ToolCode.REGEX_TIMEOUT,
            f"{field_name} took more than the {self.limit_s:g} s of processor time that a search has; "
            "write a simpler pattern, or name fewer files",
            field=field_name,
        )


@dataclass(slots=True)
class _Lines:
    """The lines of a file where a pattern matches.

    Attributes:
        first: the numbers of the first, from 1, and their texts.
        more: how many more were counted.
        is_counted: these are all.
    """

    first: list[tuple[int, str]] = field(default_factory=list)
    more: int = 0
    is_counted: bool = True

    def fields(self) -> dict[str, Any]:
        """What the hit of the file has of them."""
        return {
            "lines": [number for number, _ in self.first],
            "texts": [text for _, text in self.first],
            **({"more_lines": self.more} if self.more else {}),
            **({} if self.is_counted else {"more_than_counted": True}),
        }


@dataclass(slots=True)
class _Found:
    """What has been found so far."""

    hits: list[dict[str, Any]] = field(default_factory=list)
    partly: list[str] = field(default_factory=list)
    binary: int = 0
    unread: int = 0
    lost: list[str] = field(default_factory=list)
    total: int = 0
    is_counted: bool = True


class SearchFilesTool:
    """Searches the files of a turn.

    Args:
        files: where they are found.
        search_s: the processor time that the patterns of one call may take, in seconds.
    """

    def __init__(self, files: ConversationFiles, search_s: float) -> None:
        self._files = files
        self._search_s = search_s

    async def search(self, call: ReactCall[SearchFilesParams]) -> ToolCallResponse:
        """Answers ``react.search_files``.

        Raises:
            ToolRefusedError: a pattern cannot be read, or takes too long.
            StoreFailedError: a store failed.
        """
        params = call.params
        clock = _Clock(self._search_s, self._search_s)
        counting = _Clock(self._search_s * _COUNTING_PART, self._search_s)
        name = await asyncio.to_thread(_read, "name_regex", params.name_regex, clock)
        content = await asyncio.to_thread(_read, "content_regex", params.content_regex, clock)
        reach = self._files.of_call(call.scope, call.request.timeline)
        newest = (await reach.newest_by_name(call.turn_id)).values()
        own = sorted((file for file in newest if file.path.turn_id == call.turn_id), key=lambda file: file.path)
        files = [*own, *(file for file in newest if file.path.turn_id != call.turn_id)]
        if name is not None:
            files = await asyncio.to_thread(_filter, files, name, clock)
        found = _Found()
        room = CALL_BYTES_MAX
        async with staging(self._files.artifacts) as folder:
            for file in files:
                lines = None
                if content is not None:
                    size = FILE_BYTES_MAX if file.size_bytes is None else min(file.size_bytes, FILE_BYTES_MAX)
                    if size > room:
                        found.unread += 1
                        continue
                    data = await reach.head(file, FILE_BYTES_MAX, folder)
                    if data is None:
                        found.lost.append(file.path.physical)
                        continue
                    room -= len(data)
                    try:
                        lines = await _lines(file, data, content, (clock, counting), found)
                    except ToolRefusedError:
                        if len(found.hits) < params.max_hits:
                            raise
                        found.is_counted = False  # what is listed is complete, the count is not
                        break
                    if not lines.first:
                        continue
                found.total += 1
                if len(found.hits) == params.max_hits:
                    continue
                hit = {"path": file.path.physical, "size_bytes": file.size_bytes, "mime": file.mime}
                found.hits.append(hit if lines is None else {**hit, **lines.fields()})
        result = _result(found)
        blocks = [*call.opening_blocks(), call.write.result_json(result)]
        listed = f", {len(found.hits)} of them listed" if found.total > len(found.hits) else ""
        head = f"Found: {found.total} files{listed}"
        listing = _listing(found.hits, _REPORT_LINES, _REPORT_CHARS)
        omissions = _omissions(found)
        text = "\n".join([f"{head}{_listing(found.hits, _TEXT_LINES, _TEXT_CHARS)}", *omissions])
        return call.build_response(
            blocks, report="\n".join([f"{head}{listing}", *omissions]), text=text, ret=result
        )


def _listing(hits: Sequence[dict[str, Any]], lines_max: int, chars_max: int) -> str:
    """The hits as ``grep -n`` prints them, up to a bound."""
    rows = [row for hit in hits for row in (_rows(hit) if "lines" in hit else [hit["path"]])]
    shown = "\n".join(visible_line(row) for row in rows[:lines_max])
    is_cut = len(rows) > lines_max or len(shown) > chars_max
    text = (
        f"{shown[:chars_max]}\n[… more of {len(hits)} files: narrow name_regex or content_regex …]"
        if is_cut
        else shown
    )
    return f"\n{text}" if text else ""


def _rows(hit: dict[str, Any]) -> list[str]:
    """The lines of a file, then how many more match."""
    more, more_than = hit.get("more_lines", 0), hit.get("more_than_counted", False)
    rows = [f"{hit['path']}:{number}: {text}" for number, text in zip(hit["lines"], hit["texts"], strict=True)]
    if more:
        lines = "1 more line matches" if more == 1 else f"{more:,} more lines match"
        rows.append(f"{hit['path']}: {'at least ' if more_than else ''}{lines}")
    elif more_than:
        rows.append(f"{hit['path']}: more lines may match")
    return rows


async def _lines(
    file: ConversationFile,
    data: bytes,
    pattern: "regex.Pattern[str]",
    clocks: tuple[_Clock, _Clock],
    found: _Found,
) -> _Lines:
    """The lines where a pattern matches in the first bytes of a file."""
    is_whole = not (len(data) == FILE_BYTES_MAX and file.size_bytes != FILE_BYTES_MAX)
    data, _ = await asyncio.to_thread(as_utf_8, data, is_whole=is_whole)
    if b"\x00" in data[:_SNIFFED_BYTES]:
        found.binary += 1
        return _Lines()
    if not is_whole:
        found.partly.append(file.path.physical)
    return await asyncio.to_thread(_matches, data, pattern, *clocks)


def _read(field_name: str, text: str | None, clock: _Clock) -> "regex.Pattern[str] | None":
    """What `_compile_pattern` gives; the time for it counts."""
    with clock.counting():
        return _compile_pattern(field_name, text)


def _compile_pattern(field_name: str, text: str | None) -> "regex.Pattern[str] | None":
    """A pattern; ``^`` and ``$`` stand for the ends of lines.

    Raises:
        ToolRefusedError: ``invalid_regex``.
    """
    if not text:
        return None
    import regex  # noqa: PLC0415 - 2 MB that a service in which nobody searches is spared

    try:
        _refuse_expensive(text)
        return regex.compile(text, regex.MULTILINE | regex.VERSION0, cache_pattern=False)
    except (regex.error, RecursionError, MemoryError, OverflowError, ValueError) as exc:
        position = getattr(exc, "pos", None)
        at = "" if position is None else f" at position {position}"
        reason = getattr(exc, "msg", None) or (str(exc) if isinstance(exc, ValueError) else "it is nested too deep")
        raise ToolRefusedError(
            ToolCode.INVALID_REGEX,
            f"{field_name} is no regular expression that can be searched for: {reason}{at}",
            field=field_name,
            position=position,
        ) from exc


def _refuse_expensive(text: str) -> None:
    """Refuses repeats that would fill the memory when the pattern is compiled, where no clock runs.

    Raises:
        ValueError: all the repeats together, or a flag that would hide them.
    """
    if _VERBOSE.search(text):
        raise ValueError("the flag x is not taken; write the pattern without spaces and comments")
    product = 1
    for braces in _BRACES.findall(text):
        product *= max([int(number) for number in _NUMBER.findall(braces)] or [1]) or 1
        if product > REPEATS_MAX:
            raise ValueError(f"its repeats {{n}} multiply to more than {REPEATS_MAX}; use * or + in place of some")


def _filter(files: list[ConversationFile], pattern: "regex.Pattern[str]", clock: _Clock) -> list[ConversationFile]:
    """The files whose path in the workspace, or whose path below files/ or attachments/, matches."""
    return [
        file
        for file in files
        if any(
            clock.search("name_regex", pattern, name)
            for name in (file.path.rel, file.path.physical, file.path.rel.rpartition("/")[2])
        )
    ]


def _matches(data: bytes, pattern: "regex.Pattern[str]", clock: _Clock, counting: _Clock) -> _Lines:
    """The lines of a UTF-8 text where a pattern matches; a byte that is not UTF-8 stands for U+FFFD.

    Raises:
        ToolRefusedError: ``regex_timeout`` by ``clock``; ``counting`` ends the count of lines that are not shown.
    """
    text = data.decode("utf-8-sig", "replace")
    found = _Lines()
    line, now = 1, clock
    try:
        for stretch in _stretches(text):
            at = 0
            while at < len(stretch) and (match := now.search("content_regex", pattern, stretch, at)):
                if len(found.first) < _LINES_SHOWN:
                    number = line + stretch.count("\n", 0, match.start())
                    found.first.append((number, _shown(stretch, match.start())))
                else:
                    found.more += 1
                now = clock if len(found.first) < _LINES_SHOWN else counting
                # On from the next line.
                at = stretch.find("\n", match.start()) + 1 or len(stretch)
            line += stretch.count("\n")
    except ToolRefusedError:
        if now is clock:
            raise
        found.is_counted = False
    return found


def _shown(stretch: str, at: int) -> str:
    """The line at a position; of a long one the part there."""
    begin, end = stretch.rfind("\n", 0, at) + 1, stretch.find("\n", at)
    shown = stretch[begin : end if end >= 0 else len(stretch)]
    if at - begin > _LINE_CHARS // 2:
        shown = "…" + shown[at - begin - _LINE_CHARS // 4 :]
    return shown[:_LINE_CHARS].rstrip("\r")


def _stretches(text: str) -> Iterator[str]:
    """A text in stretches of whole lines, or of one long line: the matcher's memory grows with what it reads."""
    begin = 0
    while begin < len(text):
        end = begin + STRETCH_CHARS
        if end < len(text):
            end = text.rfind("\n", begin, end) + 1 or end
        yield text[begin:end]
        begin = end


def _omissions(found: _Found) -> list[str]:
    """What was not searched, in words."""
    partly, lost = (list_first(paths, _NAMED_MAX) for paths in (found.partly, found.lost))
    reported = [
        (found.partly, f"Only the first {FILE_BYTES_MAX} bytes were searched of {partly}"),
        (not found.is_counted, "There may be more: the patterns took too long to count all"),
        (found.binary, f"{found.binary} binary files were not searched"),
        (found.unread, f"{found.unread} files were not searched: one call reads {CALL_BYTES_MAX} bytes"),
        (found.lost, f"Not searched, because their bytes are missing or damaged: {lost}"),
    ]
    return [f"Note: {text}" for is_so, text in reported if is_so]


def _result(found: _Found) -> dict[str, Any]:
    result: dict[str, Any] = {
        "paths": [hit["path"] for hit in found.hits],
        "hits": found.hits,
        "total": found.total,
        "truncated": found.total > len(found.hits) or not found.is_counted,
    }
    extra = {
        "more_than_total": not found.is_counted,
        "partly_searched": found.partly,
        "searched_bytes_per_file": FILE_BYTES_MAX if found.partly else 0,
        "binary_skipped": found.binary,
        "too_much_to_read": found.unread,
        "not_to_be_had": len(found.lost),
    }
    return {**result, **{name: value for name, value in extra.items() if value}}
