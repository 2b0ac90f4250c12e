"""The arguments of calls while a model writes them, for the spaces that show these calls.

The texts are in memory only: a record in the store has the start of each, and its end. Followers of a space read
them from here, so a client that connects again continues at its length.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from proofbox.contracts.gateway.messages import VALUE_BYTES_MAX, ToolInputDelta
from proofbox.contracts.gateway.names import BUILT_IN_PREFIX
from proofbox.service.calls.validation import invalid_value
from proofbox.service.concurrency import Changes
from proofbox.service.errors import OurError, RateLimitedError
from proofbox.service.gateway.posting import RecordedCall, RecordError, ShownTool
from proofbox.service.gateway.spaces.input_stream import InputStream, StartedStream
from proofbox.service.gateway.spaces.records import Json
from proofbox.service.gateway_errors import StreamConflictError, StreamGapError
from proofbox.service.identity import Principal

POSTS_PER_S_MAX = 200
"""Parts of arguments that a run may send in a second."""
STREAMS_MAX = 32
"""Calls of a run whose arguments may be written at the same time."""
RUN_BYTES_MAX = 4 * 1024 * 1024
"""Bytes of arguments that are kept of a run, with those of calls that were just made."""
SILENT_S_MAX = 60.0
"""After how many seconds without a part a call that was not made is abandoned."""
_CHECKED_EVERY_S = 1.0
_TEXT_TOOLS = frozenset({f"{BUILT_IN_PREFIX}send_message", f"{BUILT_IN_PREFIX}send_reply"})
"""The tools whose parameter ``text`` a space shows as it is written."""
MOVING_TOOL = f"{BUILT_IN_PREFIX}enter_space"
"""The tool that changes the active space of a run: meanwhile nobody knows where a text of the run belongs."""
ABANDONED = RecordError("abandoned", "the call was not made within 60 s after the last part of its arguments")
_log = logging.getLogger("proofbox.gateway")


class StreamStore(Protocol):
    """The records of calls, as far as their streamed arguments need them."""

    async def start_stream(self, call: RecordedCall) -> StartedStream | None:
        """Post the record of a call whose arguments are being written; None if no space shows it."""

    async def find_text_space(self, run_id: str) -> int | None:
        """Return the row of the space to which a run would send a text; None if there is none."""

    async def find_made(self, run_id: str, tool_call_ids: Collection[str]) -> Mapping[str, bool]:
        """Return which of some calls of a run were made, and of each whether it has ended."""

    async def end_stream(self, run_id: str, tool_call_id: str, error: RecordError) -> None:
        """End a record whose arguments are still being written; one in another state stays as it is."""


class RunTools(Protocol):
    """The tools of a run, as they are pinned to it."""

    async def find_shown(self, principal: Principal, run_id: str, lease: int, name: str) -> ShownTool:
        """Return how a tool of a run is shown.

        Args:
            principal: the caller; runs of other principals are unknown.
            run_id: the run.
            lease: the number of the caller's lease.
            name: the tool's name for the model, or its ``tool_id``.

        Raises:
            UnknownRunError, LeaseLostError, RunNotRunningError, RunEndedError: it takes no calls of the caller.
            UnknownToolError: the run has no such tool.
        """


class ToolInputs:
    """All arguments that are being written.

    Args:
        store: the records of calls.
        tools: the tools of runs.
        changes: wakes the followers of spaces.
        silent_s_max: see `SILENT_S_MAX`.
        now: the monotonic clock.
    """

    def __init__(
        self,
        store: StreamStore,
        tools: RunTools,
        changes: Changes,
        *,
        silent_s_max: float = SILENT_S_MAX,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._tools = tools
        self._changes = changes
        self._silent_s_max = silent_s_max
        self._now = now
        self._streams: dict[tuple[str, str], InputStream] = {}
        self._texts: dict[int, list[InputStream]] = {}
        self._moving: Counter[str] = Counter()
        self._rates: dict[str, tuple[int, int]] = {}
        self._stored_bytes: Counter[str] = Counter()
        self._sweeping: asyncio.Task[None] | None = None

    async def add(
        self, principal: Principal, run_id: str, tool_call_id: str, lease: int, part: ToolInputDelta
    ) -> int:
        """Add a part of the arguments of a call that a model is writing.

        A part that repeats known text is ignored as far as it does. Nothing is kept of a call that no space shows,
        and of a text that is written while its run changes its active space: it may belong to the next one.

        Args:
            principal: the caller.
            run_id: the run.
            tool_call_id: the id that the call will have.
            lease: the number of the caller's lease.
            part: the part.

        Returns:
            The length of the text now, in characters (Unicode code points).

        Raises:
            UnknownRunError, LeaseLostError, RunNotRunningError, RunEndedError, UnknownToolError: see `RunTools`.
            StreamGapError: text before the part is missing.
            StreamConflictError: the part repeats known text with other characters.
            InvalidRequestError: the text has over 256 KiB.
            RateLimitedError: over 200 parts in a second, 32 calls at the same time, or 4 MiB of the run.
        """
        key, caller = (run_id, tool_call_id), (principal, lease)
        stream, tool = self._streams.get(key), None
        if stream is None or stream.checked_for != caller or self._now() - stream.checked_s >= _CHECKED_EVERY_S:
            tool = await self._tools.find_shown(principal, run_id, lease, part.tool)
            stream = self._streams.get(key)
        self._count(run_id)
        if stream is None:
            if len(self._written(run_id)) >= STREAMS_MAX:
                await self._learn_made(run_id)
            if (stream := self._streams.get(key)) is None:
                self._require_few(run_id)
                stream = self._streams[key] = InputStream(run_id, tool_call_id, last_s=self._now())
        async with stream.lock:
            try:
                if tool is not None:
                    await self._open(stream, tool, part)
                    stream.checked_for, stream.checked_s = caller, self._now()
                return self._append(stream, part)
            finally:
                if not stream.is_open and self._streams.get(key) is stream:
                    del self._streams[key]

    async def _open(self, stream: InputStream, tool: ShownTool, part: ToolInputDelta) -> None:
        if stream.is_open:
            if stream.text_space not in (None, await self._find_text_space(stream.run_id)):
                self._hide_text(stream)
            return
        _require_start(part.offset)
        call = RecordedCall(stream.run_id, stream.tool_call_id, tool, {})
        if tool.is_shown_from_start:
            stream.started = await self._store.start_stream(call)
        elif tool.tool_id in _TEXT_TOOLS:
            stream.text_space = await self._find_text_space(stream.run_id)
        elif tool.tool_id == MOVING_TOOL:
            stream.moves_run = True
            self._hide_texts(stream.run_id)
        if stream.text_space is not None:
            self._texts.setdefault(stream.text_space, []).append(stream)
        stream.is_open, stream.shows_input = True, tool.shows_input

    async def _find_text_space(self, run_id: str) -> int | None:
        """Return the row of the space that shows the texts of a run; None if there is none, or it may change."""
        if self._may_move(run_id):
            await self._learn_made(run_id)
        space = None if self._may_move(run_id) else await self._store.find_text_space(run_id)
        return None if self._may_move(run_id) else space

    def _may_move(self, run_id: str) -> bool:
        own = (stream for stream in self._streams.values() if stream.run_id == run_id and stream.final is None)
        return run_id in self._moving or any(stream.moves_run for stream in own)

    def _written(self, run_id: str) -> list[InputStream]:
        """The arguments of a run whose calls were not made, as far as this process knows."""
        return [stream for stream in self._streams.values() if stream.run_id == run_id and not stream.is_made]

    async def _learn_made(self, run_id: str) -> None:
        """Find the calls of a run that were made, and those that have ended: other processes may run them."""
        own = [stream for stream in self._streams.values() if stream.run_id == run_id and stream.final is None]
        made = await self._store.find_made(run_id, [stream.tool_call_id for stream in own])
        for stream in own:
            if stream.tool_call_id in made:
                stream.is_made = True
                stream.moves_run = stream.moves_run and not made[stream.tool_call_id]

    def _append(self, stream: InputStream, part: ToolInputDelta) -> int:
        stream.last_s = self._now()
        if stream.space is None or stream.is_made or not stream.shows_input:
            return part.offset + len(part.delta)
        new = _new_text(stream, part)
        size = len(new.encode())
        if self._stored_bytes[stream.run_id] + size > RUN_BYTES_MAX:
            raise RateLimitedError(
                f"delta: {RUN_BYTES_MAX:,} bytes of arguments are kept of a run, as many as may be; "
                "make the calls, or send the rest later",
                retry_after_s=self._silent_s_max,
            )
        stream.text += new
        stream.size_bytes += size
        self._stored_bytes[stream.run_id] += size
        self._changes.notify([space_topic(stream.space)])
        return len(stream.text)

    def finish(self, run_id: str, tool_call_id: str, params: Json) -> None:
        """The call was made: its parameters win over the text. To be called after `start_record` is stored."""
        stream = self._streams.get((run_id, tool_call_id))
        if stream is None:
            return
        stream.final, stream.is_made = params, True
        self._forget_text(stream)
        if stream.started is not None:
            self._changes.notify([space_topic(stream.started.space)])

    def end_texts(self, space: int, message_ids: Collection[str]) -> None:
        """Show texts of a space (its row) no more whose messages are sent, by this process or another one."""
        for stream in list(self.texts_of_space(space)):
            if stream.text_id in message_ids:
                self._hide_text(stream)

    def begin_move(self, run_id: str) -> None:
        """A run changes its active space: its texts that are being written are not shown any more."""
        self._moving[run_id] += 1
        self._hide_texts(run_id)

    def end_move(self, run_id: str) -> None:
        """That is over; its next texts are shown in the space that it has then."""
        self._moving[run_id] -= 1
        if self._moving[run_id] <= 0:
            del self._moving[run_id]

    def of_space(self, space: int) -> Iterator[InputStream]:
        """Return the arguments that are being written in a space (its row)."""
        return (
            stream
            for stream in list(self._streams.values())
            if stream.started is not None and stream.started.space == space
        )

    def texts_of_space(self, space: int) -> Sequence[InputStream]:
        """Return the texts of messages that are being written in a space (its row)."""
        return self._texts.get(space, ())

    def find(self, run_id: str, tool_call_id: str) -> InputStream | None:
        """Return the arguments of a call; None if none are being written."""
        return self._streams.get((run_id, tool_call_id))

    def start(self) -> None:
        """Start to abandon calls that were not made in time."""
        self._sweeping = asyncio.create_task(self._sweep_regularly())

    async def stop(self) -> None:
        """Stop; the next process of the service abandons what is still being written."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        self._sweeping = None

    async def sweep(self) -> None:
        """Abandon the calls that were not made in time, and forget those that were."""
        now = self._now()
        self._rates = {run: rate for run, rate in self._rates.items() if rate[0] >= int(now)}
        for key, stream in list(self._streams.items()):
            if now - stream.last_s < self._silent_s_max:
                continue
            if not stream.is_made and stream.started is not None:
                await self._store.end_stream(stream.run_id, stream.tool_call_id, ABANDONED)
            if self._streams.pop(key, None) is not None:
                self._forget_bytes(stream)
                self._forget_text(stream)

    async def _sweep_regularly(self) -> None:
        while True:
            await asyncio.sleep(_CHECKED_EVERY_S)
            try:
                await self.sweep()
            except OurError:
                _log.warning("abandoned calls could not be ended", exc_info=True)

    def _hide_texts(self, run_id: str) -> None:
        for stream in list(self._streams.values()):
            if stream.run_id == run_id:
                self._hide_text(stream)

    def _hide_text(self, stream: InputStream) -> None:
        self._forget_text(stream)
        stream.text_space = None

    def _forget_text(self, stream: InputStream) -> None:
        if stream.text_space is None or stream.text_space not in self._texts:
            return
        left = [other for other in self._texts.pop(stream.text_space) if other is not stream]
        if left:
            self._texts[stream.text_space] = left

    def _forget_bytes(self, stream: InputStream) -> None:
        self._stored_bytes[stream.run_id] -= stream.size_bytes
        if self._stored_bytes[stream.run_id] <= 0:
            del self._stored_bytes[stream.run_id]

    def _require_few(self, run_id: str) -> None:
        if len(self._written(run_id)) >= STREAMS_MAX:
            raise RateLimitedError(
                f"tool_call_id: the arguments of {STREAMS_MAX} calls of a run are being written, as many as may; "
                "make these calls first",
                retry_after_s=1,
            )

    def _count(self, run_id: str) -> None:
        second = int(self._now())
        at, count = self._rates.get(run_id, (second, 0))
        count = count + 1 if at == second else 1
        self._rates[run_id] = (second, count)
        if count > POSTS_PER_S_MAX:
            raise RateLimitedError(
                f"run_id: a run may send {POSTS_PER_S_MAX} parts of arguments in a second; send longer parts",
                retry_after_s=1,
            )


def space_topic(space: int) -> str:
    """Return the topic of changes of a space (its row)."""
    return f"space:{space}"


def _require_start(offset: int) -> None:
    if offset:
        raise StreamGapError("offset: nothing of these arguments has arrived (length 0); send them from offset 0")


def _new_text(stream: InputStream, part: ToolInputDelta) -> str:
    length = len(stream.text)
    if part.offset > length:
        raise StreamGapError(
            f"offset: {part.offset} is beyond what has arrived (length {length}); go on from {length}"
        )
    known = stream.text[part.offset : part.offset + len(part.delta)]
    if not part.delta.startswith(known):
        raise StreamConflictError(
            f"delta: at offset {part.offset} other text has arrived before (length {length}); a part never changes"
        )
    new = part.delta[len(known) :]
    size = stream.size_bytes + len(new.encode())
    if size > VALUE_BYTES_MAX:
        raise invalid_value("delta", f"the arguments have {size:,} bytes (limit {VALUE_BYTES_MAX:,}); send less")
    return new
