"""The tool ``web_tools.web_search``: queries the operator's engine and stores the results as sources."""

import asyncio
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.contracts.codes import WebCode
from proofbox.contracts.react_tools import WebSearchParams
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.port import NewPage, SourcePool
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.timeline.truncation import json_bytes, truncate_evenly
from proofbox.service.web.port import Hit, PageSearcher, WebFailedError
from proofbox.service.web.response import result_blocks

_AT_ONCE = 4
_SHOWN_TITLE_CHARS = 200
# A shorter text is useless; results are left out before texts become so short.
_TEXT_BYTES_MIN = 60


class WebSearchTool:
    """Searches the web for a model.

    Args:
        searcher: the operator's search engine; None if there is none.
        sources: where results are remembered.
    """

    def __init__(self, searcher: PageSearcher | None, sources: SourcePool) -> None:
        self._searcher = searcher
        self._sources = sources

    async def run(self, call: ReactCall[WebSearchParams]) -> ToolCallResponse:
        """Answers one call; a query that fails costs the others nothing.

        Raises:
            ToolRefusedError: ``search_not_configured``, or no query could be asked.
            ServiceError: the service is at fault.
        """
        if self._searcher is None:
            raise ToolRefusedError(
                WebCode.SEARCH_NOT_CONFIGURED,
                "this service has no search engine; its operator names one: PROOFBOX_WEB_SEARCH_URL. "
                "Pages whose address is known can be fetched with web_tools.web_fetch",
            )
        searcher, some = self._searcher, asyncio.Semaphore(_AT_ONCE)

        async def one(query: str) -> list[Hit] | WebFailedError:
            try:
                async with some:
                    return await searcher.search(query, call.params.n)
            except WebFailedError as exc:
                return exc

        queries = list(dict.fromkeys(call.params.queries))
        answers = await asyncio.gather(*(one(query) for query in queries))
        failed = [answer for answer in answers if isinstance(answer, WebFailedError)]
        if len(failed) == len(answers):
            raise ToolRefusedError(failed[0].code, failed[0].message, has_run=True)
        hits = _fitting(_merge_hits([answer for answer in answers if isinstance(answer, list)]))
        rows = await self._remember(call, hits)
        content = _content(hits, rows)
        blocks = result_blocks(call, content, [row.sid for row in rows])
        text = _text_of(content, failed)
        return call.build_response(blocks, report=_report(rows, failed), text=text, ret=content)

    async def _remember(self, call: ReactCall[WebSearchParams], hits: list[Hit]) -> list[SourceRow]:
        """The results as sources. A page that was fetched before keeps its own text."""
        if not hits:
            return []
        pages = [NewPage(str(hit.url), hit.title, None, None, call.turn_id) for hit in hits]
        rows = await self._sources.add_pages(call.scope, pages)
        bare = [
            NewPage(str(hit.url), hit.title, hit.text, None, call.turn_id)
            for hit, row in zip(hits, rows, strict=True)
            if row.text is None and hit.text
        ]
        if bare:
            await self._sources.add_pages(call.scope, bare)
        return rows


def _merge_hits(answers: list[list[Hit]]) -> list[Hit]:
    """The best of each query first, then the second of each; every address once."""
    merged: dict[str, Hit] = {}
    for rank in range(max(map(len, answers), default=0)):
        for hits in answers:
            if rank < len(hits):
                merged.setdefault(str(hits[rank].url), hits[rank])
    return list(merged.values())


def _fitting(hits: list[Hit]) -> list[Hit]:
    """As many of the first results as the content block has room for."""
    used = 2
    for count, hit in enumerate(hits):
        used += json_bytes(_row(hit, 10**9)) + 2 + min(_TEXT_BYTES_MIN, json_bytes(hit.text))
        if used > TEXT_BYTES_MAX:
            return hits[:count]
    return hits


def _row(hit: Hit, sid: int) -> dict[str, Any]:
    row = {"sid": sid, "title": hit.title[:_SHOWN_TITLE_CHARS], "url": str(hit.url)}
    return {**row, "text": ""} if hit.text else row


def _content(hits: list[Hit], rows: list[SourceRow]) -> list[dict[str, Any]]:
    content = [_row(hit, row.sid) for hit, row in zip(hits, rows, strict=True)]
    with_text = [(entry, hit.text) for entry, hit in zip(content, hits, strict=True) if hit.text]
    shares = truncate_evenly([text for _, text in with_text], max(0, TEXT_BYTES_MAX - json_bytes(content)))
    for (entry, _), text in zip(with_text, shares, strict=True):
        entry["text"] = text
    return content


def _text_of(content: list[dict[str, Any]], failed: list[WebFailedError]) -> str:
    """The results with their texts, for a model."""
    found = [f"[[S:{row['sid']}]] {row['title']} {row['url']}\n{row.get('text', '')}".rstrip() for row in content]
    missed = [f"- {exc.message}" for exc in dict.fromkeys(failed)]
    shown = ["\n".join([f"Failed queries: {len(failed)}", *missed])] if failed else []
    return "\n\n".join([f"Found: {len(found)} pages; web_tools.web_fetch reads one.", *found, *shown])


def _report(rows: list[SourceRow], failed: list[WebFailedError]) -> str:
    found = [f"- [[S:{row.sid}]] {row.title} {row.url}" for row in rows] or ["- nothing"]
    missed = [f"- {exc.message}" for exc in dict.fromkeys(failed)]
    return "\n".join(["Found:", *found, *([f"Failed queries: {len(failed)}", *missed] if failed else [])])
