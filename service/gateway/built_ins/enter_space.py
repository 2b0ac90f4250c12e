"""``enter_space``: sets the active space of a run, where its visible calls are shown."""

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import RunOutcome
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.spaces.port import SpaceEntry
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution

NAME = "enter_space"
HISTORY_MAX = 100
_HISTORY = 20
_SCHEMA = {
    "type": "object",
    "properties": {
        "space_id": {"type": "string", "minLength": 1, "maxLength": 128, "description": "The space."},
        "limit": {
            "type": "integer",
            "minimum": 0,
            "maximum": HISTORY_MAX,
            "default": _HISTORY,
            "description": "How many of its newest messages to return.",
        },
    },
    "required": ["space_id"],
    "additionalProperties": False,
}
_DESCRIPTION = (
    "Make a space the active one: visible tool calls are shown there from now on. Returns its members and its "
    "newest messages."
)


class EnterSpace(ToolExecution):
    """Runs the calls of ``enter_space``.

    Args:
        entry: sets the active space.
        files: stores a history that is too large for a block.
    """

    def __init__(self, entry: SpaceEntry, files: ResultFiles) -> None:
        self._entry = entry
        self._files = files

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        space_id, limit = call.input["space_id"], call.input.get("limit", _HISTORY)
        entered = await self._entry.enter(call.principal, call.run.run_id, space_id, int(limit))
        if entered is None:
            return call.fail(
                GatewayCode.NO_SUCH_SPACE,
                f"space_id: there is no open space '{space_id}' that this agent is a member of",
            )
        ret = {
            "space_id": entered.space_id,
            "name": entered.name,
            "members": list(entered.members),
            "history": list(entered.history),
            "has_more": entered.has_more,
        }
        report = f"entered the space '{entered.name}' ({entered.space_id})"
        return await self._files.succeed(call, ret, report=report)


def build_enter_space(entry: SpaceEntry, files: ResultFiles) -> BuiltIn:
    """Build the tool; see `EnterSpace`."""
    return BuiltIn(NAME, _DESCRIPTION, _SCHEMA, EnterSpace(entry, files))
