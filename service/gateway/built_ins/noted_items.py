"""What is common to the built-in tools for goals, memories, plans and runs of the agent."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import RunOutcome
from proofbox.service.gateway.records.port import ItemsRefusedError, RecordStore
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution

IDS: JsonObject = {"type": "string", "minLength": 1, "maxLength": 200}
"""The schema of an id or key that a model gives."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call did.

    Attributes:
        ret: the result, as JSON.
        report: one line for the model.
    """

    ret: JsonObject
    report: str


class NotedItemsTool(ToolExecution):
    """Runs the calls of a tool that reads or changes what belongs to the agent.

    Args:
        work: does it; it raises ItemsRefusedError for what the model did wrong.
        files: stores a result that is too large for a block.
    """

    def __init__(self, work: Callable[[GatewayCall], Awaitable[Outcome]], files: ResultFiles) -> None:
        self._work = work
        self._files = files

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        try:
            outcome = await self._work(call)
        except ItemsRefusedError as exc:
            if exc.code == GatewayCode.INVALID_INPUT:
                field, _, message = exc.message.partition(": ")
                return call.refuse_input([{"field": field, "message": message}])
            return call.fail(exc.code, exc.message)
        return await self._files.succeed(call, outcome.ret, report=outcome.report)


def invalid_input(field: str, message: str) -> ItemsRefusedError:
    """The error of a parameter that does not fit, beyond the schema."""
    return ItemsRefusedError(GatewayCode.INVALID_INPUT, f"input.{field}: {message}")


def require_unique(items: Sequence[JsonObject], field: str, name: str) -> None:
    """Require that no two items have the same id or key.

    Raises:
        ItemsRefusedError: two have.
    """
    seen: set[str] = set()
    for place, item in enumerate(items):
        value = item.get(name)
        if value in seen:
            raise invalid_input(f"{field}[{place}].{name}", f"'{value}' is given twice; give each {name} once")
        if value is not None:
            seen.add(value)


def items_schema(field: str, item: JsonObject) -> JsonObject:
    """The schema of the parameters of a tool that sets items, listed in ``field``."""
    items = {"type": "array", "items": item, "minItems": 1, "description": f"The {field}."}
    return {"type": "object", "properties": {field: items}, "required": [field], "additionalProperties": False}


def deletion_schema(names: str, what: str) -> JsonObject:
    """The schema of the parameters of a tool that deletes."""
    return {
        "type": "object",
        "properties": {
            names: {
                "type": "array",
                "items": IDS,
                "minItems": 1,
                "description": f"The {names} of {what} to delete.",
            },
            "all": {"type": "boolean", "description": f"true, in place of {names}: delete all of them."},
        },
        "additionalProperties": False,
    }


def delete_items(store: RecordStore[Any, Any], names: str) -> Callable[[GatewayCall], Awaitable[Outcome]]:
    """Build what runs the calls of a tool that deletes.

    Args:
        store: the records.
        names: the parameter, ``ids`` or ``keys``.
    """

    async def work(call: GatewayCall) -> Outcome:
        wanted = call.input.get(names)
        if (wanted is None) == (not call.input.get("all", False)):
            raise invalid_input(names, f"give either {names} or all: true")
        removal = await store.delete(call.principal, call.run.agent_id, wanted)
        ret = {"deleted": removal.deleted, "left": removal.left}
        return Outcome(ret, f"deleted {removal.deleted}, {removal.left} left")

    return work
