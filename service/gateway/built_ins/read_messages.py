"""``read_messages``: the messages of a space, page by page, from the newest to the oldest."""

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import RunOutcome
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.spaces.outbox import MessageWindow, Outbox
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution

NAME = "read_messages"
LIMIT_MAX = 100
_LIMIT = 50
_SEQ_MAX = 2**53
_SCHEMA = {
    "type": "object",
    "properties": {
        "space_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "description": "The space; without it, the active one.",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": LIMIT_MAX,
            "default": _LIMIT,
            "description": "How many messages to return.",
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "maximum": _SEQ_MAX,
            "default": 0,
            "description": "How many of the newest messages to leave out.",
        },
        "before_seq": {
            "type": "integer",
            "minimum": 1,
            "maximum": _SEQ_MAX,
            "description": "Only messages with a smaller seq: next_before_seq of the page before.",
        },
    },
    "additionalProperties": False,
}
_DESCRIPTION = (
    "Read messages of the active space, or of another one that this agent is a member of; the oldest first. "
    "It stays where it is: enter_space moves it."
)


class ReadMessagesTool(ToolExecution):
    """Runs the calls of ``read_messages``.

    Args:
        outbox: reads messages.
        files: stores a result that is too large for a block.
    """

    def __init__(self, outbox: Outbox, files: ResultFiles) -> None:
        self._outbox = outbox
        self._files = files

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        given = call.input
        space_id = given.get("space_id") or call.run.active_space_id
        if space_id is None:
            return call.fail(
                GatewayCode.NO_ACTIVE_SPACE, "the run has no active space; give space_id, or call enter_space first"
            )
        before = given.get("before_seq")
        window = MessageWindow(
            int(given.get("limit", _LIMIT)), int(given.get("offset", 0)), None if before is None else int(before)
        )
        read = await self._outbox.read(call.principal, call.run.run_id, space_id, window)
        if read is None:
            return call.fail(
                GatewayCode.NO_SUCH_SPACE,
                f"space_id: there is no space '{space_id}' that this agent is a member of",
            )
        ret = {
            "space_id": read.space_id,
            "messages": list(read.messages),
            "total": read.total,
            "next_before_seq": read.next_before_seq,
        }
        report = f"{len(read.messages)} of {read.total} messages of the space {read.space_id}"
        return await self._files.succeed(call, ret, report=report)


def build_read_messages(outbox: Outbox, files: ResultFiles) -> BuiltIn:
    """Build the tool; see `ReadMessagesTool`."""
    return BuiltIn(NAME, _DESCRIPTION, _SCHEMA, ReadMessagesTool(outbox, files))
