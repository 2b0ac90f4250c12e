"""``set_plans``, ``delete_plans`` and ``get_plans``: runs of the agent at later times."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.records import NAME_CHARACTERS_MAX, PLANS_MAX, TEXT_CHARACTERS_MAX, PlanStatus
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.noted_items import (
    IDS,
    NotedItemsTool,
    Outcome,
    delete_items,
    deletion_schema,
    items_schema,
    require_unique,
)
from proofbox.service.gateway.records.port import ItemsRefusedError, NewPlan, PlanStore
from proofbox.service.gateway.records.schedules import (
    AHEAD_S_MAX,
    ScheduleRefusedError,
    add_seconds,
    find_time_zone,
    next_time,
    parse_time,
    utc_text,
)
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall

_SCHEDULES = ("run_at", "after_s", "cron")
_PAST: tuple[PlanStatus, ...] = ("completed", "cancelled", "missed")
_LISTED = 50
_PLAN: JsonObject = {
    "type": "object",
    "properties": {
        "id": {**IDS, "description": "Of the plan to replace; leave it out for a new one."},
        "name": {"type": "string", "minLength": 1, "maxLength": NAME_CHARACTERS_MAX, "description": "Its name."},
        "instruction": {
            "type": "string",
            "minLength": 1,
            "maxLength": TEXT_CHARACTERS_MAX,
            "description": "What its run is to do.",
        },
        "run_at": {
            "type": "string",
            "description": "Run once, at this date and time: 2030-12-31T23:59:00Z, or with an offset.",
        },
        "after_s": {"type": "number", "maximum": AHEAD_S_MAX, "description": "Run once, after so many seconds."},
        "cron": {
            "type": "string",
            "description": "Run again and again: minute, hour, day, month, weekday, such as '30 8 * * MON-FRI'.",
        },
        "time_zone": {
            "type": "string",
            "default": "UTC",
            "description": "Of cron, and of run_at without an offset: such as Europe/Berlin.",
        },
        "status": {
            "type": "string",
            "enum": ["pending", "cancelled"],
            "default": "pending",
            "description": "cancelled: it is kept and does not run.",
        },
    },
    "required": ["name", "instruction"],
    "additionalProperties": False,
}
_SCHEMA = items_schema("plans", _PLAN)
_DESCRIPTION = (
    "Plan later runs of yourself, or replace the plans whose id is given. Each has exactly one of run_at, after_s "
    "and cron. Either all are written or none. Returns all plans with their next_run."
)
_READ_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "status": {
            "type": "string",
            "enum": ["pending", *_PAST],
            "description": "Plans of this status; left out: those that are completed, cancelled or missed.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": PLANS_MAX,
            "default": _LISTED,
            "description": "How many, the ones that were set last.",
        },
    },
    "additionalProperties": False,
}
_READ_DESCRIPTION = "Read plans with the time of their last run, the runs that they made, and a missed time."


def build_plan_tools(store: PlanStore, files: ResultFiles) -> list[BuiltIn]:
    """Build ``set_plans``, ``delete_plans`` and ``get_plans``.

    Args:
        store: the plans of agents.
        files: stores results that are too large for a block.
    """

    async def set_plans(call: GatewayCall) -> Outcome:
        items = call.input["plans"]
        require_unique(items, "plans", "id")
        if len(items) > PLANS_MAX:
            raise ItemsRefusedError(
                GatewayCode.TOO_MANY_ITEMS,
                f"plans: too many (limit {PLANS_MAX}, got {len(items):,}); give fewer. Nothing was changed",
            )
        # In a thread: a schedule that rarely has a time takes a tenth of a second.
        new = await asyncio.to_thread(_new_plans, items, datetime.now(UTC))
        plans = await store.set(call.principal, call.run.agent_id, new)
        shown = [plan.model_dump(mode="json") for plan in plans]
        return Outcome({"plans": shown}, f"set {len(new)} plans; there are {len(shown)}")

    async def get_plans(call: GatewayCall) -> Outcome:
        wanted = call.input.get("status")
        statuses = _PAST if wanted is None else (wanted,)
        limit = int(call.input.get("limit", _LISTED))
        plans = await store.newest(call.principal, call.run.agent_id, statuses, limit)
        return Outcome({"plans": [plan.model_dump(mode="json") for plan in plans]}, f"{len(plans)} plans")

    return [
        BuiltIn("set_plans", _DESCRIPTION, _SCHEMA, NotedItemsTool(set_plans, files)),
        BuiltIn(
            "delete_plans",
            "Delete plans by id, or all of them; their runs stay. Either all that are named are deleted or none.",
            deletion_schema("ids", "the plans"),
            NotedItemsTool(delete_items(store, "ids"), files),
        ),
        BuiltIn("get_plans", _READ_DESCRIPTION, _READ_SCHEMA, NotedItemsTool(get_plans, files)),
    ]


def _new_plans(items: Sequence[JsonObject], now: datetime) -> list[NewPlan]:
    new = []
    for place, item in enumerate(items):
        try:
            new.append(_scheduled(item, now))
        except ScheduleRefusedError as exc:
            message = f"plans[{place}].{exc.field}: {exc.message}. Nothing was changed"
            raise ItemsRefusedError(GatewayCode.INVALID_SCHEDULE, message) from exc
    return new


def _scheduled(item: JsonObject, now: datetime) -> NewPlan:
    """The plan of an item.

    Raises:
        ScheduleRefusedError: it has no schedule, more than one, or a wrong one.
    """
    given = [name for name in _SCHEDULES if name in item]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise ScheduleRefusedError("cron", f"give exactly one of run_at, after_s and cron (got {got})")
    zone = item.get("time_zone", "UTC")
    find_time_zone(zone)
    run_at, cron = None, item.get("cron")
    if cron is not None:
        moment = next_time(cron, zone, now)
        if moment is None:
            raise ScheduleRefusedError("cron", f"'{cron}' has no time within 50 years; give another one")
    elif "run_at" in item:
        moment = parse_time(item["run_at"], zone, now)
    else:
        moment = add_seconds(item["after_s"], now)
    if cron is None:
        run_at = utc_text(moment)
    return NewPlan(
        id=item.get("id"),
        name=item["name"],
        instruction=item["instruction"],
        run_at=run_at,
        cron=cron,
        time_zone=None if cron is None else zone,
        next_run=utc_text(moment) if item.get("status", "pending") == "pending" else None,
    )
