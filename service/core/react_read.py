"""The story of ``react.read``: what a path names is brought back into view, unless the model sees it already."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from contracts.blocks import Block
from contracts.codes import NoticeCode, ToolCode
from contracts.react_tools import ReadParams
from contracts.tool_calls import ToolCallResponse
from service.core.blocks import Notice
from service.core.discovery import BLOCKS_MAX
from service.core.loading import NO_SUCH_SOURCES, CannotLoadError, Loaded, Loading, mark_of
from service.core.memory import Memory
from service.core.react_calls import ReactCall
from service.core.skills import Skills
from service.core.staging import staging
from service.core.store_ports import SourcePool, spelled
from service.core.tokens import TokenCounter
from service.core.turn_files import TurnFiles
from service.core.visibility import Visibility, visibility_of

_REASON_CHARS_MAX = 300


@dataclass(slots=True)
class _Outcome:
    """What became of the paths of a call."""

    loaded: list[Loaded] = field(default_factory=list)
    in_view: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    missing_skills: list[str] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)

    def status(self, paths: list[str], total_tokens: int) -> dict[str, Any]:
        """The status block's JSON."""
        partly = {loaded.path: loaded.partly for loaded in self.loaded if loaded.partly is not None}
        return {
            "paths": paths,
            "missing": self.missing,
            "missing_skills": self.missing_skills,
            "exists_in_visible_context": self.in_view,
            "total_tokens": total_tokens,
            **({"reasons": self.reasons} if self.reasons else {}),
            **({"partly_shown": partly} if partly else {}),
        }


class ReactRead:
    """Answers ``react.read``.

    Args:
        files: where files are found, in the store and in blocks.
        sources: the sources pool.
        skills: the skills.
        tokens: counts tokens.
        inline_bytes_max: how many bytes of PDFs and images one answer carries.
    """

    def __init__(
        self,
        files: TurnFiles,
        sources: SourcePool,
        skills: Skills,
        tokens: TokenCounter,
        *,
        inline_bytes_max: int,
    ) -> None:
        self._files = files
        self._sources = sources
        self._skills = skills
        self._tokens = tokens
        self._inline_bytes_max = inline_bytes_max

    async def tell(self, call: ReactCall[ReadParams]) -> ToolCallResponse:
        """Loads the paths; ``ok`` unless none of them could be.

        Raises:
            StoreFailedError: a store failed.
        """
        files = self._files.of_call(call.scope, call.request.timeline)
        async with staging(self._files.artifacts) as folder:
            loading = Loading(
                call.scope,
                files=files,
                artifacts=self._files.artifacts,
                sources=self._sources,
                skills=self._skills,
                tokens=self._tokens,
                staging=folder,
                inline_bytes_max=self._inline_bytes_max,
            )
            outcome = await _outcome(call.params.paths, loading, files.memory)
        shown = [block for loaded in outcome.loaded for block in _blocks(call, loaded)]
        texts = [block.text for block in shown if block.text is not None]
        total = await asyncio.to_thread(lambda: sum(self._tokens.count(text) for text in texts))
        return _answer(call, outcome, outcome.status(call.params.paths, total), shown)


async def _outcome(paths: list[str], loading: Loading, memory: Memory) -> _Outcome:
    outcome = _Outcome()
    view = await visibility_of(memory)
    seen: set[str] = set()
    for path in dict.fromkeys(paths):
        try:
            found = await loading.load(path)
        except CannotLoadError as exc:
            (outcome.missing_skills if path.startswith("sk:") else outcome.missing).append(path)
            outcome.reasons[path] = str(exc)[:_REASON_CHARS_MAX]
            continue
        for loaded in found:
            outcome.missing += loaded.absent
            outcome.reasons.update(dict.fromkeys(loaded.absent, NO_SUCH_SOURCES))
            if loaded.path in seen:
                continue
            seen.add(loaded.path)
            if await _is_in_view(loaded, memory, view):
                outcome.in_view.append(loaded.path)
            else:
                outcome.loaded.append(loaded)
    return outcome


async def _is_in_view(loaded: Loaded, memory: Memory, view: Visibility) -> bool:
    """Whether a model sees blocks of this path that show the very same."""
    wanted = {piece.mark for piece in loaded.pieces if piece.path is not None}
    if None in wanted:
        return False
    placed = await memory.of_path(loaded.path, BLOCKS_MAX, binaries=False)
    at_path = (item for item in placed if spelled(item.block.path) == loaded.path)
    return wanted <= {mark_of(item) for item in at_path if view.shows(item)}


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
        return call.answered(blocks, report=report, ret=status)
    code = ToolCode.MISSING if outcome.missing else ToolCode.MISSING_SKILLS
    missing = [*outcome.missing, *outcome.missing_skills]
    message = f"nothing could be loaded: {_listed(missing, outcome)}"
    details = {name: status[name] for name in ("missing", "missing_skills", "reasons")}
    notice = Notice(NoticeCode.TOOL_CALL_ERROR, message, {"error": code, **details})
    payload = {**status, "error": {"code": code, "message": message}}
    response = call.refused(code, message)
    return response.model_copy(
        update={"ret": status, "blocks": [*call.opening_blocks([notice]), call.write.result_json(payload)]}
    )


def _report(outcome: _Outcome) -> str:
    parts = [
        ("Loaded", [loaded.path for loaded in outcome.loaded]),
        ("In view already", outcome.in_view),
    ]
    lines = [f"{head}: {', '.join(paths)}" for head, paths in parts if paths]
    missing = [*outcome.missing, *outcome.missing_skills]
    return "\n".join([*lines, *([f"Missing: {_listed(missing, outcome)}"] if missing else [])])


def _listed(paths: list[str], outcome: _Outcome) -> str:
    return "; ".join(f"{path} ({outcome.reasons[path]})" for path in paths)
