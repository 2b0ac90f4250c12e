"""The timer of plans: makes the runs of those whose time has come."""

import asyncio
import logging
from datetime import UTC, datetime

from proofbox.service.concurrency import Changes
from proofbox.service.errors import OurError, QueueFullError
from proofbox.service.gateway.due_timer import DueTimer
from proofbox.service.gateway.records.port import PLANS_TOPIC, DuePlan, DuePlanStore
from proofbox.service.gateway.records.schedules import decide_firing, utc_text

log = logging.getLogger("proofbox.gateway")

_SLEEP_S_MAX = 60.0  # the clock may be set while the timer sleeps
_SLEEP_S_MIN = 0.001
_AGAIN_S = 30.0
"""When a plan is tried again whose agent has a full queue."""
_STORE_AGAIN_S = 1.0


class PlanTimer(DueTimer):
    """Fires plans at their times.

    Args:
        plans: the plans of all projects.
        changes: announces changes of plans.
    """

    def __init__(self, plans: DuePlanStore, changes: Changes) -> None:
        super().__init__(changes, PLANS_TOPIC)
        self._plans = plans

    async def fire_due(self, now: datetime) -> int:
        """Fire the plans whose time has come.

        Returns:
            How many stay due, such as those of agents with as many queued runs as may be.

        Raises:
            StoreFailedError: the store failed.
        """
        postponed, after = 0, None
        while batch := await self._plans.due(utc_text(now), after):
            for plan in batch:
                postponed += not await self._fire(plan, now)
            after = batch[-1]
        return postponed

    async def _fire(self, plan: DuePlan, now: datetime) -> bool:
        try:
            # In a thread: a schedule that rarely has a time takes a tenth of a second.
            firing = await asyncio.to_thread(decide_firing, plan, now)
            is_fired = await self._plans.fire(plan, firing)
        except QueueFullError as exc:
            log.warning("plan %s of agent %s stays due: %s", plan.plan_id, plan.agent_id, exc)
            return False
        except OurError:
            raise
        except Exception:  # such as a time zone that is not known any more: other plans fire
            log.exception("plan %s of agent %s could not be fired", plan.plan_id, plan.agent_id)
            return False
        if is_fired and firing.run_id is None:
            log.warning(
                "plan %s of agent %s is missed: its time was %s, %g s ago",
                plan.plan_id,
                plan.agent_id,
                firing.at,
                firing.late_s,
            )
        return True

    async def _pass(self) -> float:
        now = datetime.now(UTC)
        try:
            postponed = await self.fire_due(now)
            # After the same moment: so no plan is between the two.
            upcoming = await self._plans.next_time(utc_text(now))
            left_s = _SLEEP_S_MAX
            if upcoming is not None:
                left_s = (datetime.fromisoformat(upcoming) - datetime.now(UTC)).total_seconds()
        except OurError as exc:
            log.warning("plans cannot be fired yet: %s", exc)
            return _STORE_AGAIN_S
        except Exception:
            log.exception("plans could not be fired")
            return _AGAIN_S
        return min(max(left_s, _SLEEP_S_MIN), _AGAIN_S if postponed else _SLEEP_S_MAX)
