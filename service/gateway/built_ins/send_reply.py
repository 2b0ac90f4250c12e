"""``send_reply``: a text that answers a message, and the run that waits on exactly that message."""

from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.sending import TEXT_SCHEMA, WAIT_SCHEMAS, SendingTool
from proofbox.service.gateway.spaces.outbox import Outbox
from proofbox.service.gateway.waits.policy import WaitPolicy

NAME = "send_reply"
_SCHEMA = {
    "type": "object",
    "properties": {
        "text": TEXT_SCHEMA,
        "reply_to": {
            "type": "string",
            "minLength": 1,
            "maxLength": 128,
            "description": "The message_id of the text that this answers; never that of a tool call.",
        },
        **WAIT_SCHEMAS,
    },
    "required": ["text", "reply_to"],
    "additionalProperties": False,
}
_DESCRIPTION = (
    "Reply to a message of the active space. If a run waits for a reply to exactly that message, it goes on with "
    "this one; every other agent that the text mentions starts a new run."
)


def build_send_reply(outbox: Outbox, policy: WaitPolicy) -> BuiltIn:
    """Build the tool; see `SendingTool`."""
    return BuiltIn(NAME, _DESCRIPTION, _SCHEMA, SendingTool(outbox, policy))
