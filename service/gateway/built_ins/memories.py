"""``set_memories`` and ``delete_memories``: what the agent remembers in later runs."""

from proofbox.contracts.gateway.records import MEMORY_BYTES_MAX, NAME_CHARACTERS_MAX
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.noted_items import (
    IDS,
    NotedItemsTool,
    Outcome,
    delete_items,
    deletion_schema,
    invalid_input,
    items_schema,
    require_unique,
)
from proofbox.service.gateway.records.port import MemoryStore, NewMemory
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall

_MEMORY: JsonObject = {
    "type": "object",
    "properties": {
        "key": {**IDS, "description": "Its name; a memory of the same key is replaced."},
        "value": {
            "type": "string",
            "maxLength": MEMORY_BYTES_MAX,
            "description": f"What to remember, at most {MEMORY_BYTES_MAX:,} bytes.",
        },
        "topic": {
            "type": "string",
            "minLength": 1,
            "maxLength": NAME_CHARACTERS_MAX,
            "description": "What it belongs to.",
        },
    },
    "required": ["key", "value"],
    "additionalProperties": False,
}
_SCHEMA = items_schema("memories", _MEMORY)
_DESCRIPTION = (
    "Remember facts for later runs, each under a key; a key that exists is replaced. Either all are written or "
    "none. Returns all memories."
)


def build_memory_tools(store: MemoryStore, files: ResultFiles) -> list[BuiltIn]:
    """Build ``set_memories`` and ``delete_memories``.

    Args:
        store: the memories of agents.
        files: stores results that are too large for a block.
    """

    async def set_memories(call: GatewayCall) -> Outcome:
        items = call.input["memories"]
        require_unique(items, "memories", "key")
        for place, item in enumerate(items):
            size = len(item["value"].encode(errors="replace"))
            if size > MEMORY_BYTES_MAX:
                raise invalid_input(
                    f"memories[{place}].value",
                    f"too long (limit {MEMORY_BYTES_MAX:,} bytes, got {size:,}); shorten it, or write a file",
                )
        new = [NewMemory(item["key"], item["value"], item.get("topic")) for item in items]
        memories = await store.set(call.principal, call.run.agent_id, new)
        shown = [memory.model_dump(mode="json") for memory in memories]
        return Outcome({"memories": shown}, f"set {len(new)} memories; there are {len(shown)}")

    deletion = deletion_schema("keys", "the memories")
    return [
        BuiltIn("set_memories", _DESCRIPTION, _SCHEMA, NotedItemsTool(set_memories, files)),
        BuiltIn(
            "delete_memories",
            "Delete memories by key, or all of them. Either all that are named are deleted or none.",
            deletion,
            NotedItemsTool(delete_items(store, "keys"), files),
        ),
    ]
