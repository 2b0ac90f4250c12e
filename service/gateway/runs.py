"""Runs of agents: made, claimed, kept alive, released and ended by loops outside."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from proofbox.contracts.gateway.runs import RunClaim, RunContext, RunCreation, RunFinish
from proofbox.contracts.tool_call_response import CallStatus
from proofbox.service.concurrency import Changes
from proofbox.service.errors import ServiceError
from proofbox.service.gateway.mcp.claim_pins import ClaimPins
from proofbox.service.gateway.mcp.run_pins import RunPins
from proofbox.service.gateway.runs_port import (
    QUEUE_TOPIC,
    STOPPED_TOPIC,
    AgentMovedError,
    NewRun,
    RunEnd,
    RunFilter,
    RunLimits,
    RunStatus,
    RunStore,
    StoredRun,
    StoredRunEvent,
    new_run_id,
    run_topic,
)
from proofbox.service.gateway.spaces.port import Actor, RequestKey
from proofbox.service.gateway_errors import McpUnavailableError
from proofbox.service.identity import Principal

_CREATIONS_MAX = 3  # an agent may be written while its servers are asked
_SWEEP_S = 2.0
_POLL_S = 5.0  # a look although nothing was announced: an agent may run one more after another has ended
_EVENTS_AT_ONCE = 200
_log = logging.getLogger("proofbox.runs")


class CallCanceller(Protocol):
    """Cancels calls; `Calls` does."""

    async def cancel(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """See `Calls.cancel`."""


@dataclass(frozen=True, slots=True)
class RunParts:
    """What runs need.

    Attributes:
        store: their records.
        calls: cancels what an ended run left.
        changes: wakes those who wait for a run or its events.
        limits: the operator's limits.
        pins: makes what a run gets of MCP servers; None: runs get no tools of them.
    """

    store: RunStore
    calls: CallCanceller
    changes: Changes
    limits: RunLimits
    pins: RunPins | None = None


class Runs:
    """The runs of agents."""

    def __init__(self, parts: RunParts) -> None:
        self._store = parts.store
        self._calls = parts.calls
        self._changes = parts.changes
        self._limits = parts.limits
        self._pins = parts.pins
        self._stopping = asyncio.Event()
        self._sweeps: asyncio.Task[None] | None = None

    async def create(
        self, actor: Actor, creation: RunCreation, key: RequestKey | None = None
    ) -> tuple[StoredRun, bool]:
        """Makes a run; its creator holds its first lease unless it is queued.

        Its space must be open to the actor: to a member of it, or to one who may act as anybody.

        Returns:
            The run, and whether it was made by an earlier request with the same key.

        Raises:
            UnknownAgentError, UnknownSpaceError: there is no such agent or open space.
            QueueFullError: too many runs of the agent are queued.
            IdReusedError: the key was used for another request.
            McpUnavailableError: an MCP server that the agent requires does not answer.
        """
        run_id = new_run_id()
        trigger = creation.trigger.model_dump(mode="json", exclude_none=True)
        new = NewRun(
            run_id=run_id,
            agent_id=creation.agent_id,
            conversation_id=creation.conversation_id or f"run:{run_id}",
            trigger=trigger,
            space_id=creation.space_id,
            actor=actor,
            metadata=creation.metadata,
            queued=creation.queued,
            lease_s=self._limits.lease_s,
        )
        for _ in range(_CREATIONS_MAX):
            try:
                if not creation.queued and self._pins is not None:
                    new = replace(new, pinned=await self._pins.pin(actor.principal, creation.agent_id))
            except McpUnavailableError:
                if key is None or (made := await self._store.find_created(actor.principal, key)) is None:
                    raise
                return made, True
            with suppress(AgentMovedError):
                return await self._store.create(actor.principal, new, key)
        raise McpUnavailableError(f"agent '{creation.agent_id}' is being written; make the run again")

    async def claim(self, principal: Principal, claim: RunClaim) -> StoredRun | None:
        """Gives the oldest queued run to its caller; waits for one as long as is asked; None if there is none."""
        ends = time.monotonic() + claim.wait_s
        lease_s = claim.lease_s or self._limits.lease_s
        if self._pins is None:
            with self._changes.listen(QUEUE_TOPIC) as listener:
                while True:
                    run = await self._store.claim(principal, claim.agent_ids, lease_s)
                    left_s = ends - time.monotonic()
                    if run is not None or left_s <= 0 or self._stopping.is_set():
                        return run
                    await listener.wait(min(left_s, _POLL_S))
        with self._changes.listen(QUEUE_TOPIC) as listener:
            async with ClaimPins(self._pins, principal) as pins:
                while True:
                    run = await self._claim(principal, claim.agent_ids, lease_s, pins)
                    left_s = pins.left_s(ends)
                    if run is not None or left_s <= 0 or self._stopping.is_set():
                        return run
                    await pins.wait(listener, min(left_s, _POLL_S))
                    if pins.left_s(ends) <= 0:  # nobody may wait for the run any more
                        return None

    async def _claim(
        self, principal: Principal, agent_ids: Sequence[str] | None, lease_s: float, pins: ClaimPins
    ) -> StoredRun | None:
        """Claims the oldest run that has its tools or whose tools are listed; the others stay queued."""
        passed: set[tuple[str, int]] = set()
        pins.forget_failed()
        while kinds := await self._store.queued(principal, agent_ids, passed):
            wanted = list(dict.fromkeys(kind.key for kind in kinds if not kind.has_tools))
            ready = await pins.begin(wanted)
            run = await self._store.claim(principal, agent_ids, lease_s, ready)
            if run is not None or len(ready) == len(wanted):
                return run
            passed |= set(wanted) - set(ready)
        return None

    async def heartbeat(self, principal: Principal, run_id: str, lease: int, lease_s: float | None) -> StoredRun:
        """Extends a lease. Raises as `RunStore.renew`."""
        return await self._store.renew(principal, run_id, lease, lease_s or self._limits.lease_s)

    async def release(self, principal: Principal, run_id: str, lease: int) -> StoredRun:
        """Gives a run back. Raises as `RunStore.renew`."""
        return await self._store.release(principal, run_id, lease)

    async def finish(self, principal: Principal, run_id: str, lease: int, finish: RunFinish) -> StoredRun:
        """Ends a run, as its holder reports it. Raises as `RunStore.finish`."""
        error = None if finish.error is None else finish.error.model_dump(mode="json")
        end = RunEnd(RunStatus(finish.status), finish.summary, error)
        run = await self._store.finish(principal, run_id, lease, end, cancel_waits=finish.cancel_waits)
        await self._cancel_left(run.run_id)
        return run

    async def cancel(self, principal: Principal, run_id: str) -> StoredRun:
        """Ends a run with its waits and calls; one that has ended stays as it is.

        Raises:
            UnknownRunError: there is no such run.
        """
        run = await self._store.cancel(principal, run_id)
        await self._cancel_left(run.run_id)
        return run

    async def find(self, principal: Principal, run_id: str) -> StoredRun:
        """A run. Raises UnknownRunError."""
        return await self._store.find(principal, run_id)

    async def context(self, principal: Principal, run_id: str, *, with_spaces: bool) -> RunContext:
        """What a loop needs to know of a run; without its spaces if the caller may not read them.

        Raises:
            UnknownRunError: there is no such run, or another principal has claimed it.
        """
        context = await self._store.context(principal, run_id)
        if with_spaces:
            return context
        return context.model_copy(update={"active_space": None, "spaces": [], "history": []})

    async def list(self, principal: Principal, wanted: RunFilter) -> list[StoredRun]:
        """Runs, the newest first. Raises UnknownRunError if ``before`` is the id of no run."""
        return await self._store.list(principal, wanted)

    async def events(self, principal: Principal, run_id: str, after: int) -> AsyncIterator[StoredRunEvent]:
        """The events of a run with an id above ``after``, as they come; ends after the last one.

        Raises:
            UnknownRunError: there is no such run.
        """
        await self._store.find(principal, run_id)
        return self._follow(principal, run_id, after)

    async def _follow(self, principal: Principal, run_id: str, after: int) -> AsyncIterator[StoredRunEvent]:
        with self._changes.listen(run_topic(run_id)) as listener:
            while not self._stopping.is_set():
                # Before its events: none comes after the end but those of calls that end later.
                is_ended = (await self._store.find(principal, run_id)).status.is_ended
                events = await self._store.events(principal, run_id, after, _EVENTS_AT_ONCE)
                for event in events:
                    yield event
                    after = event.id
                if not events and is_ended:
                    return
                if not events:
                    await listener.wait(_POLL_S)

    def start(self) -> None:
        """Begins to take back runs whose lease has passed, and to end those whose time is over."""
        self._sweeps = asyncio.create_task(self._sweep_for_ever())

    async def stop_sweeps(self) -> None:
        """Ends that; those who wait for runs wait on."""
        if self._sweeps is not None:
            self._sweeps.cancel()
            await asyncio.gather(self._sweeps, return_exceptions=True)
            self._sweeps = None

    async def stop(self) -> None:
        """Ends that, and lets those go who wait."""
        self._stopping.set()
        self._changes.notify_all()
        if self._sweeps is not None:
            await self._sweeps

    async def sweep(self) -> None:
        """Takes back the runs whose lease has passed, ends those whose time is over, and cancels what they left."""
        await self._store.sweep()
        await self._cancel_left()

    async def _sweep_for_ever(self) -> None:
        with self._changes.listen(STOPPED_TOPIC) as stopped:
            while not self._stopping.is_set():
                try:
                    await self.sweep()
                except Exception:  # noqa: BLE001 - an unforeseen one too: the passes outlive it
                    _log.exception("runs could not be looked through; the next pass tries again")
                await stopped.wait(_SWEEP_S)

    async def _cancel_left(self, run_id: str | None = None) -> None:
        """Cancels the calls that ended runs (or one) left; what cannot be cancelled is left to the next pass."""
        for left in await self._store.calls_of_ended(run_id):
            try:
                await self._calls.cancel(left.principal, left.tool_call_id, left.conversation_id)
            except ServiceError as exc:
                _log.warning("call %s of an ended run is not cancelled yet: %s", left.tool_call_id, exc)
            except Exception:  # noqa: BLE001 - an unforeseen one too: the other calls are cancelled
                _log.exception("call %s of an ended run is not cancelled yet", left.tool_call_id)
