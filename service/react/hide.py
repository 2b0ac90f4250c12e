"""``react.hide``: a group of blocks near the end of the timeline gives way to one line; nothing stored changes."""

import asyncio
from dataclasses import dataclass

from proofbox.contracts.codes import ToolCode
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.react_tools import HideParams
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.path_forms import possible_paths
from proofbox.service.calls.direct_tool import ReactCall, ToolRefusedError
from proofbox.service.timeline.block_writer import now_text
from proofbox.service.timeline.cache_points import CachePolicy, cache_points
from proofbox.service.timeline.model_text import read_text
from proofbox.service.timeline.port import PlacedBlock, TimelineStore
from proofbox.service.timeline.token_counter import TokenCounter, count_tokens
from proofbox.service.timeline.view import TimelineView, timeline_for
from proofbox.service.timeline.visibility import compute_visibility

_BLOCKS_MAX = 1_000  # read of one path; what is hidden lies near the end


@dataclass(frozen=True, slots=True)
class _Group:
    """What can be hidden of a path: its visible blocks after the pre-tail cache point, in order."""

    blocks: list[PlacedBlock]

    @property
    def since(self) -> int:
        return self.blocks[0].position


class HideTool:
    """Answers ``react.hide``.

    Args:
        store: the stored timelines.
        tokens: counts the text after what is hidden.
        policy: what may still be changed.
    """

    def __init__(self, store: TimelineStore, tokens: TokenCounter, policy: CachePolicy) -> None:
        self._store = store
        self._tokens = tokens
        self._policy = policy

    async def run(self, call: ReactCall[HideParams]) -> ToolCallResponse:
        """Hides the visible blocks of a path that lie after the pre-tail cache point.

        Raises:
            ToolRefusedError: the path is not valid, has no visible block, or lies too far back; nothing is hidden.
            StoreFailedError: the store failed.
        """
        replacement = " ".join(call.params.replacement.split())
        if not replacement:
            raise ToolRefusedError(ToolCode.HIDE_FAILED, "replacement: it is blank; say what was there")
        memory = timeline_for(self._store, call.scope, call.request)
        path = await _shown_path(memory, parse_hidden_paths(call.params.path, call.turn_id))
        group = await self._group(memory, path)
        payload = {
            "tool_id": call.request.tool_id,
            "tool_call_id": call.request.tool_call_id,
            "path": path,
            "replacement": replacement,
            "hidden_blocks": len(group.blocks),
            "ts": now_text(),
        }
        meta = {"hides": path, "hides_from": group.since, "replacement_text": replacement}
        return call.build_response(
            [*call.opening_blocks(), call.write.result_json(payload, meta)],
            report=f"Hidden: {path} ({len(group.blocks)} blocks). react.read brings it back.",
            ret=payload,
        )

    async def _group(self, memory: TimelineView, path: str) -> _Group:
        last = await memory.last()
        visibility = await compute_visibility(memory, last)
        found = await memory.of_path(path, _BLOCKS_MAX, binaries=False)
        visible = [placed for placed in found if placed.position <= last and visibility.shows(placed)]
        if not visible:
            why = (
                "it is hidden or summed up already" if found else "no block has it; give a path that the view shows"
            )
            raise ToolRefusedError(ToolCode.HIDE_FAILED, f"path: nothing of '{path}' is in view: {why}", path=path)
        points = await cache_points(memory, self._policy, last)
        newest = visibility.place(visible[-1])
        if newest <= points.pre_tail:
            raise ToolRefusedError(
                ToolCode.HIDE_BEFORE_CACHE,
                f"path: '{path}' lies before the cached part of the timeline ends; only the last "
                f"{self._policy.offset_rounds} rounds can be hidden, leave it as it is",
                path=path,
            )
        await self._refuse_old(memory, path, newest)
        return _Group([placed for placed in visible if visibility.place(placed) > points.pre_tail])

    async def _refuse_old(self, memory: TimelineView, path: str, position: int) -> None:
        read = await read_text(memory, position)
        count = await asyncio.to_thread(count_tokens, self._tokens, read.text)
        if count > self._policy.editable_tail_tokens:
            raise ToolRefusedError(
                ToolCode.HIDE_TOO_OLD,
                f"path: {count} tokens stand after '{path}', at most {self._policy.editable_tail_tokens} may; "
                "leave it as it is",
                path=path,
                tokens_after=count,
                editable_tail_tokens=self._policy.editable_tail_tokens,
            )


async def _shown_path(memory: TimelineView, paths: list[str]) -> str:
    """The first of some paths that blocks have; the first of all if none has any."""
    for path in paths:
        if await memory.of_path(path, 1, binaries=False):
            return path
    return paths[0]


def parse_hidden_paths(text: str, turn_id: str) -> list[str]:
    """The canonical logical paths that a path may mean: any logical path, or a file by its physical or bare path.

    Raises:
        ToolRefusedError: it is not a path.
    """
    try:
        paths = possible_paths(text, turn_id)
    except UnsafePathError as exc:
        raise ToolRefusedError(ToolCode.HIDE_FAILED, f"path: {exc}", path=text[:200]) from exc
    return [path.logical if isinstance(path, FilePath) else str(path) for path in paths]
