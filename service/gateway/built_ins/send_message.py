"""``send_message``: a text to the active space; each agent that it mentions gets a new run."""

from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.built_ins.sending import TEXT_SCHEMA, WAIT_SCHEMAS, SendingTool
from proofbox.service.gateway.spaces.outbox import Outbox
from proofbox.service.gateway.waits.policy import WaitPolicy

NAME = "send_message"
_SCHEMA = {
    "type": "object",
    "properties": {"text": TEXT_SCHEMA, **WAIT_SCHEMAS},
    "required": ["text"],
    "additionalProperties": False,
}
_DESCRIPTION = (
    "Send a message to the active space. Every agent that it mentions starts a new run; to answer a message, use "
    "send_reply."
)


def build_send_message(outbox: Outbox, policy: WaitPolicy) -> BuiltIn:
    """Build the tool; see `SendingTool`."""
    return BuiltIn(NAME, _DESCRIPTION, _SCHEMA, SendingTool(outbox, policy))
