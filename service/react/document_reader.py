"""Reads the text of documents (DOCX, XLSX, PPTX, PDF) in a sandbox: they are only ever opened there."""

import asyncio
import json
from collections import OrderedDict
from typing import Any

from proofbox.contracts.media_types import MIME_BY_EXTENSION
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.found_file import Fetched
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.errors import OurError
from proofbox.service.identity import ConversationKey
from proofbox.service.jobs.inputs import JobInputs
from proofbox.service.jobs.runner import JobContext, JobRunner, PhaseTimer
from proofbox.service.sandbox.port import InputFile
from proofbox.service.web.page_reader import ANSWER_NAME, ReadingPolicy, answer_rows, reader_program
from proofbox.service.web.port import clean_text

TEXT_CHARS_MAX = 1_000_000
"""How much of a document's text is read, in characters."""
DOCUMENT_BYTES_MAX = 100 * 1024 * 1024
"""The largest document that is read."""
_CACHE_CHARS_MAX = 4_000_000  # of texts that are read on in the next calls
_REASON_CHARS_MAX = 200
DOCUMENT_KINDS = {MIME_BY_EXTENSION[kind]: kind for kind in ("docx", "xlsx", "pptx", "pdf")}
"""The kinds of documents, by media type."""


class DocumentUnreadableError(Exception):
    """A document whose text cannot be extracted; the message is for the model."""


class DocumentReader:
    """Runs the program that extracts the text of a document; the last texts stay at hand, by the file's hash.

    Args:
        jobs: runs programs in sandboxes.
        policy: the wall clock of a call and of one document.
    """

    def __init__(self, jobs: JobRunner, policy: ReadingPolicy) -> None:
        self._jobs = jobs
        self._policy = policy
        self._texts: OrderedDict[tuple[str, str, str], str] = OrderedDict()

    def known_text(self, scope: ConversationKey, sha256: str) -> str | None:
        """The text of a document that was read before; None if it is not at hand."""
        key = _key(scope, sha256)
        if key in self._texts:
            self._texts.move_to_end(key)
        return self._texts.get(key)

    async def read(
        self,
        call: ReactCall[Any],
        file: Fetched,
        kind: str,
        timer: PhaseTimer,
    ) -> str:
        """The text of a document as Markdown, its pages, slides and sheets under headings of their own.

        Raises:
            DocumentUnreadableError: it is damaged, protected, too large, or there is no sandbox now.
        """
        if file.size_bytes > DOCUMENT_BYTES_MAX:
            raise DocumentUnreadableError(
                f"it has {file.size_bytes} bytes, the text of {DOCUMENT_BYTES_MAX} at most is extracted"
            )
        try:
            row = await self._run(call, file, kind, timer)
        except OurError as exc:
            raise DocumentUnreadableError("there is no free sandbox to read it in; read it again later") from exc
        text = row.get("text")
        if not isinstance(text, str):
            reason = row.get("error")
            reason = reason if isinstance(reason, str) else "the reader gave no answer"
            raise DocumentUnreadableError(clean_text(reason)[:_REASON_CHARS_MAX])
        text = clean_text(text)[:TEXT_CHARS_MAX]
        if row.get("truncated") is True:
            text += f"\n\n(the text is cut here, after {len(text)} characters)"
        self._cache(_key(call.scope, file.sha256), text)
        return text

    async def _run(self, call: ReactCall[Any], file: Fetched, kind: str, timer: PhaseTimer) -> dict[str, Any]:
        bounds = self._policy.calls.bounds(call.request.limits, timeout_s=self._policy.wall_s)
        turn_id = call.turn_id
        path = FilePath(turn_id, Namespace.FILES, f"document.{kind}")
        job = {
            "pages": [{"path": path.physical, "kind": kind}],
            "target": FilePath(turn_id, Namespace.FILES, ANSWER_NAME).physical,
            "characters_max": TEXT_CHARS_MAX,
            "seconds_per_page": self._policy.page_s,
        }
        context = JobContext(call.scope, call.request, bounds, call.observer, timer)
        async with self._jobs.slot(context) as slot:
            files = {path.physical: InputFile(path, file.source, file.size_bytes, writable=False)}
            program = reader_program(json.dumps(job).encode(), turn_id, bounds.limits)
            result = await slot.run(program, JobInputs(files))
            if result.failure is not None:
                return {"error": result.failure.message}
            rows = await asyncio.to_thread(answer_rows, result.collected)
        return rows[0] if rows and isinstance(rows[0], dict) else {}

    def _cache(self, key: tuple[str, str, str], text: str) -> None:
        self._texts[key] = text
        while len(self._texts) > 1 and sum(len(cached) for cached in self._texts.values()) > _CACHE_CHARS_MAX:
            self._texts.popitem(last=False)


def _key(scope: ConversationKey, sha256: str) -> tuple[str, str, str]:
    principal = scope.principal
    return principal.tenant, principal.project, sha256
