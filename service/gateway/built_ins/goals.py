"""``set_goals`` and ``delete_goals``: what the agent wants to reach."""

from proofbox.contracts.gateway.records import TEXT_CHARACTERS_MAX
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
from proofbox.service.gateway.records.port import GoalStore, NewGoal
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall

_GOAL: JsonObject = {
    "type": "object",
    "properties": {
        "id": {**IDS, "description": "Of the goal to replace; leave it out for a new one."},
        "description": {
            "type": "string",
            "minLength": 1,
            "maxLength": TEXT_CHARACTERS_MAX,
            "description": "What to reach.",
        },
        "priority": {
            "type": "integer",
            "minimum": -1_000,
            "maximum": 1_000,
            "default": 0,
            "description": "The higher, the more important.",
        },
        "is_long_term": {
            "type": "boolean",
            "default": False,
            "description": "Whether it outlasts the task at hand.",
        },
        "status": {
            "type": "string",
            "enum": ["active", "completed", "abandoned"],
            "default": "active",
            "description": "How it stands.",
        },
    },
    "required": ["description"],
    "additionalProperties": False,
}
_SCHEMA = items_schema("goals", _GOAL)
_DESCRIPTION = (
    "Create goals, or replace those whose id is given. They stay for later runs. Either all are written or none. "
    "Returns all goals."
)


def build_goal_tools(store: GoalStore, files: ResultFiles) -> list[BuiltIn]:
    """Build ``set_goals`` and ``delete_goals``.

    Args:
        store: the goals of agents.
        files: stores results that are too large for a block.
    """

    async def set_goals(call: GatewayCall) -> Outcome:
        items = call.input["goals"]
        require_unique(items, "goals", "id")
        new = [
            NewGoal(
                id=item.get("id"),
                description=item["description"],
                priority=int(item.get("priority", 0)),
                is_long_term=item.get("is_long_term", False),
                status=item.get("status", "active"),
            )
            for item in items
        ]
        goals = await store.set(call.principal, call.run.agent_id, new)
        shown = [goal.model_dump(mode="json") for goal in goals]
        return Outcome({"goals": shown}, f"set {len(new)} goals; there are {len(shown)}")

    deletion = deletion_schema("ids", "the goals")
    return [
        BuiltIn("set_goals", _DESCRIPTION, _SCHEMA, NotedItemsTool(set_goals, files)),
        BuiltIn(
            "delete_goals",
            "Delete goals by id, or all of them. Either all that are named are deleted or none.",
            deletion,
            NotedItemsTool(delete_items(store, "ids"), files),
        ),
    ]
