"""``react.read``: what a path names is brought back into view, unless the model sees it already."""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from proofbox.contracts.blocks import Block
from proofbox.contracts.codes import NoticeCode, ToolCode
from proofbox.contracts.react_tools import ReadParams
from proofbox.contracts.tool_call_response import ANSWER_BYTES_MAX, ToolCallResponse
from proofbox.service.artifacts.conversation_files import LOST, CallFiles
from proofbox.service.artifacts.found_file import ConversationFile
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.staging import Staging, staging
from proofbox.service.calls.direct_tool import ReactCall
from proofbox.service.jobs.runner import PhaseTimer
from proofbox.service.react.document_reader import DOCUMENT_KINDS, DocumentReader
from proofbox.service.react.read_items import CannotLoadError, Loaded, fingerprint_block
from proofbox.service.react.read_loader import NO_SUCH_SOURCES, DocumentText, ReadLoader
from proofbox.service.timeline.artifact_versions import BLOCKS_MAX
from proofbox.service.timeline.block_writer import Notice
from proofbox.service.timeline.port import canonicalize
from proofbox.service.timeline.token_counter import TokenCounter
from proofbox.service.timeline.view import TimelineView
from proofbox.service.timeline.visibility import Visibility, compute_visibility

_REASON_CHARS_MAX = 300
_HEAD_BYTES = 4_096  # of the answer's text: what stands above the contents
_BESIDE_BYTES = 8


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """What one read shows at most.

    Attributes:
        inline_bytes_max: how many bytes of PDFs and images.
        tokens_max: how many tokens of text; the first path is shown whatever it has.
    """

    inline_bytes_max: int
    tokens_max: int = 20_000


@dataclass(slots=True)
class _Outcome:
    """What became of the paths of a call."""

    found: list[Loaded] = field(default_factory=list)
    loaded: list[Loaded] = field(default_factory=list)
    in_view: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    missing_skills: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    partly: dict[str, str] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    total_tokens: int = 0

    def status(self, paths: list[str], tokens_max: int) -> dict[str, Any]:
        """The status block's JSON."""
        left_out = {
            "left_out": self.left_out,
            "left_out_reason": f"one read shows {tokens_max} tokens; read these in further calls",
        }
        return {
            "paths": paths,
            "missing": self.missing,
            "missing_skills": self.missing_skills,
            "exists_in_visible_context": self.in_view,
            "total_tokens": self.total_tokens,
            **({"reasons": self.reasons} if self.reasons else {}),
            **({"partly_shown": self.partly} if self.partly else {}),
            **(left_out if self.left_out else {}),
        }


class ReadTool:
    """Answers ``react.read``.

    Args:
        paths: resolves the paths.
        tokens: counts tokens.
        bounds: what one answer shows at most.
        documents: extracts the text of documents; None if nothing does.
    """

    def __init__(
        self,
        paths: LogicalPathResolver,
        tokens: TokenCounter,
        bounds: ReadBounds,
        documents: DocumentReader | None = None,
    ) -> None:
        self._paths = paths
        self._tokens = tokens
        self._bounds = bounds
        self._documents = documents

    async def run(self, call: ReactCall[ReadParams]) -> ToolCallResponse:
        """Loads the paths; ``ok`` unless none of them could be.

        Raises:
            StoreFailedError: a store failed.
        """
        paths = self._paths.for_call(call.scope, call.turn_id, call.request.timeline)
        timer = PhaseTimer(call.began)
        async with staging(self._paths.files.artifacts) as folder:
            loading = ReadLoader(
                paths,
                tokens=self._tokens,
                staging=folder,
                inline_bytes_max=self._bounds.inline_bytes_max,
                document_text=self._document_text(call, paths.files, folder, timer),
            )
            outcome = await self._outcome(call.params.paths, loading, paths.files.memory)
        shown = [block for loaded in outcome.loaded for block in _blocks(call, loaded)]
        timer.stop()
        response = _answer(call, outcome, outcome.status(call.params.paths, self._bounds.tokens_max), shown)
        return response.model_copy(update={"timings_ms": timer.timings, "sandbox": call.observer.record.sandbox})

    async def _outcome(self, paths: list[str], loading: ReadLoader, memory: TimelineView) -> _Outcome:
        outcome = _Outcome()
        view = await compute_visibility(memory)
        seen: set[str] = set()
        for path in dict.fromkeys(paths):
            if outcome.left_out:  # the paths after it are not resolved
                outcome.left_out.append(path)
                continue
            try:
                found = await loading.load(path)
            except CannotLoadError as exc:
                (outcome.missing_skills if path.startswith("sk:") else outcome.missing).append(path)
                outcome.reasons[path] = str(exc)[:_REASON_CHARS_MAX]
                continue
            for loaded in found:
                outcome.missing += loaded.absent
                outcome.reasons.update(dict.fromkeys(loaded.absent, NO_SUCH_SOURCES))
                if loaded.path not in seen:
                    seen.add(loaded.path)
                    await self._add(loaded, outcome, is_in_view=await _is_in_view(loaded, memory, view))
        return outcome

    async def _add(self, loaded: Loaded, outcome: _Outcome, *, is_in_view: bool) -> None:
        """Adds what is shown of a path, as far as there is room; what is partly shown is listed in any case."""
        if is_in_view:
            outcome.in_view.append(loaded.path)
            outcome.found.append(loaded)
        else:
            texts = [piece.text for piece in loaded.pieces if piece.text is not None]
            tokens = await asyncio.to_thread(lambda: sum(self._tokens.count(text) for text in texts))
            if outcome.loaded and outcome.total_tokens + tokens > self._bounds.tokens_max:
                outcome.left_out.append(loaded.path)
                return
            outcome.loaded.append(loaded)
            outcome.found.append(loaded)
            outcome.total_tokens += tokens
        if loaded.partly is not None:
            outcome.partly[loaded.path] = loaded.partly

    def _document_text(
        self, call: ReactCall[ReadParams], files: CallFiles, folder: Staging, timer: PhaseTimer
    ) -> DocumentText | None:
        """Extracts the text of documents for one call."""
        documents = self._documents
        if documents is None:
            return None

        async def text_of(file: ConversationFile) -> str:
            known = documents.known_text(call.scope, file.stored.sha256) if file.stored is not None else None
            if known is not None:
                return known
            fetched = await files.fetch(file, folder) if file.fetched is None else file.fetched
            if fetched is None:
                raise CannotLoadError(LOST)
            return await documents.read(call, fetched, DOCUMENT_KINDS[file.mime], timer)

        return text_of


async def _is_in_view(loaded: Loaded, memory: TimelineView, view: Visibility) -> bool:
    """Whether a model sees blocks of this path that show the very same."""
    wanted = {piece.mark for piece in loaded.pieces if piece.path is not None}
    if None in wanted:
        return False
    placed = await memory.of_path(loaded.path, BLOCKS_MAX, binaries=False)
    at_path = (item for item in placed if canonicalize(item.block.path) == loaded.path)
    return wanted <= {fingerprint_block(item) for item in at_path if view.shows(item)}


def _blocks(call: ReactCall[ReadParams], loaded: Loaded) -> list[Block]:
    """The blocks that show a path again: never hidden, whatever hid them before."""
    return [
        call.write.result_text(piece.mime, piece.text or "", {"hidden": False})
        if piece.path is None
        else call.write.loaded(
            piece.mime, piece.path, text=piece.text, base64=piece.base64, meta={**piece.meta, "hidden": False}
        )
        for piece in loaded.pieces
    ]


def _answer(
    call: ReactCall[ReadParams], outcome: _Outcome, status: dict[str, Any], shown: list[Block]
) -> ToolCallResponse:
    report = _report(outcome)
    if outcome.loaded or outcome.in_view:
        blocks = [*call.opening_blocks(), call.write.result_json(status), *shown]
        return call.build_response(blocks, report=report, text=_text(call, outcome), ret=status)
    code = ToolCode.MISSING if outcome.missing else ToolCode.MISSING_SKILLS
    missing = [*outcome.missing, *outcome.missing_skills]
    # Each path and its reason stand in the status once; notice and error only state that nothing was loaded.
    short = "nothing could be loaded"
    notice = Notice(NoticeCode.TOOL_CALL_ERROR, short, {"error": code})
    payload = {**status, "error": {"code": code, "message": short}}
    response = call.refuse(code, f"nothing could be loaded: {_list_paths(missing, outcome)}").refused()
    return response.model_copy(
        update={"ret": status, "blocks": [*call.opening_blocks([notice]), call.write.result_json(payload)]}
    )


def _text(call: ReactCall[ReadParams], outcome: _Outcome) -> str:
    """The content of what was read, for a model that sees only this.

    What is in view already is left out for a loop that keeps the timeline and sends it: it renders those blocks.
    """
    in_view = set() if call.request.timeline is None else set(outcome.in_view)
    shown: list[Loaded] = []
    texts: list[str] = []
    no_room: list[str] = []
    room = ANSWER_BYTES_MAX - _HEAD_BYTES
    for loaded in outcome.found:
        if loaded.path in in_view:
            continue
        text = _content_text(loaded)
        room -= len(text.encode(errors="replace")) + len(loaded.path) + _BESIDE_BYTES
        if room < 0 and shown:
            no_room.append(loaded.path)
            continue
        shown.append(loaded)
        texts.append(text)
    reported = replace(
        outcome,
        loaded=shown,
        in_view=[path for path in outcome.in_view if path in in_view],
        left_out=[*no_room, *outcome.left_out],
    )
    if len(texts) > 1:
        texts = [f"[{loaded.path}]\n{text}" for loaded, text in zip(shown, texts, strict=True)]
    return "\n\n".join([_report(reported), *texts])


def _content_text(loaded: Loaded) -> str:
    """What is shown of a path, without its digest; a picture as a word."""
    content = [piece for piece in loaded.pieces if piece.path is not None]
    texts = [piece.text for piece in content if piece.text is not None]
    if texts:
        return "\n".join(texts)
    kinds = ", ".join(dict.fromkeys(piece.mime for piece in content))
    return f"[{kinds}: no text; a program can open it]"


def _report(outcome: _Outcome) -> str:
    parts = [
        ("Loaded", [loaded.path for loaded in outcome.loaded]),
        ("In view already", outcome.in_view),
    ]
    lines = [f"{head}: {', '.join(paths)}" for head, paths in parts if paths]
    lines += [f"Partly shown: {path}: {how}" for path, how in outcome.partly.items()]
    lines += [f"Left out, read in further calls: {', '.join(outcome.left_out)}"] if outcome.left_out else []
    missing = [*outcome.missing, *outcome.missing_skills]
    return "\n".join([*lines, *([f"Missing: {_list_paths(missing, outcome)}"] if missing else [])])


def _list_paths(paths: list[str], outcome: _Outcome) -> str:
    return "; ".join(f"{path} ({outcome.reasons[path]})" for path in paths)
