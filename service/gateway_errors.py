"""What can go wrong with agents, runs, spaces and waits.

CallerError
├── UnknownAgentError
├── UnknownRunError
├── UnknownSpaceError
├── UnknownMessageError
├── UnknownEntityError
├── InvalidToolError
├── VersionMovedError
├── NameTakenError
├── AgentInUseError
├── WrongConversationError
├── LeaseLostError
├── RunNotRunningError
├── RunEndedError
├── RunWaitingError
├── StreamConflictError
├── StreamGapError
├── SpaceArchivedError
├── NotReplyableError
├── NotWaitingError
├── AlreadyAnsweredError
├── WaitExpiredError
├── WaitCancelledError
├── InvalidResultError
└── MayNotAnswerError
OurError
├── McpUnavailableError
└── GatewayNotInstalledError
"""

from proofbox.contracts.codes import ProblemCode
from proofbox.service.errors import CallerError, OurError


class UnknownAgentError(CallerError):
    """The project has no agent of that id, or no such version of it."""

    code = ProblemCode.UNKNOWN_AGENT
    status = 404
    where = "agent_id"


class UnknownRunError(CallerError):
    """The project has no run of that id."""

    code = ProblemCode.UNKNOWN_RUN
    status = 404
    where = "run_id"


class UnknownSpaceError(CallerError):
    """The project has no space of that id, or the caller is not a member of it."""

    code = ProblemCode.UNKNOWN_SPACE
    status = 404
    where = "space_id"


class UnknownMessageError(CallerError):
    """The space has no message of that id, or the message does not list that artifact."""

    code = ProblemCode.UNKNOWN_MESSAGE
    status = 404
    where = "message_id"


class UnknownEntityError(CallerError):
    """The project has no entity of that id."""

    code = ProblemCode.UNKNOWN_ENTITY
    status = 404
    where = "entity_id"


class InvalidToolError(CallerError):
    """The configuration of an agent has mistakes; ``errors`` lists all of them with their fields."""

    code = ProblemCode.INVALID_TOOL
    status = 422
    where = "configuration"


class VersionMovedError(CallerError):
    """The agent has another version than ``If-Match`` names."""

    code = ProblemCode.VERSION_MOVED
    status = 412
    where = "If-Match"


class NameTakenError(CallerError):
    """Another entity of the project has that handle; case is ignored."""

    code = ProblemCode.NAME_TAKEN
    status = 409
    where = "handle"


class AgentInUseError(CallerError):
    """Runs of the agent have not ended; ``cancel_runs=true`` cancels them."""

    code = ProblemCode.AGENT_IN_USE
    status = 409
    where = "agent_id"


class WrongConversationError(CallerError):
    """The call names another conversation than its run has."""

    code = ProblemCode.WRONG_CONVERSATION
    status = 409
    where = "conversation_id"


class LeaseLostError(CallerError):
    """Another holder has claimed the run, or its lease has passed."""

    code = ProblemCode.LEASE_LOST
    status = 409
    where = "Run-Lease"


class RunNotRunningError(CallerError):
    """The run is queued: claim it first."""

    code = ProblemCode.RUN_NOT_RUNNING
    status = 409
    where = "run_id"


class RunEndedError(CallerError):
    """The run has ended."""

    code = ProblemCode.RUN_ENDED
    status = 409
    where = "run_id"


class RunWaitingError(CallerError):
    """The run has open waits; ``cancel_waits`` cancels them."""

    code = ProblemCode.RUN_WAITING
    status = 409
    where = "run_id"


class StreamConflictError(CallerError):
    """A repeated part of the streamed arguments has other bytes than before."""

    code = ProblemCode.STREAM_CONFLICT
    status = 409
    where = "offset"


class StreamGapError(CallerError):
    """A part of the streamed arguments is missing before this one; the message has the length so far."""

    code = ProblemCode.STREAM_GAP
    status = 409
    where = "offset"


class SpaceArchivedError(CallerError):
    """The space is archived: it can be read only."""

    code = ProblemCode.SPACE_ARCHIVED
    status = 409
    where = "space_id"


class NotReplyableError(CallerError):
    """The message is the record of a tool call; only text messages can be replied to."""

    code = ProblemCode.NOT_REPLYABLE
    status = 422
    where = "reply_to"


class NotWaitingError(CallerError):
    """The call or message waits for no answer from here."""

    code = ProblemCode.NOT_WAITING
    status = 409
    where = "wait"


class AlreadyAnsweredError(CallerError):
    """The wait has another answer, or was answered by another entity."""

    code = ProblemCode.ALREADY_ANSWERED
    status = 409
    where = "wait"


class WaitExpiredError(CallerError):
    """The time for an answer has passed."""

    code = ProblemCode.WAIT_EXPIRED
    status = 410
    where = "wait"


class WaitCancelledError(CallerError):
    """The call that waited was cancelled."""

    code = ProblemCode.WAIT_CANCELLED
    status = 409
    where = "wait"


class InvalidResultError(CallerError):
    """The answer does not fit ``resultSchema`` or is too large; ``errors`` lists what is wrong."""

    code = ProblemCode.INVALID_RESULT
    status = 422
    where = "result"


class MayNotAnswerError(CallerError):
    """The entity is not one of those that may answer."""

    code = ProblemCode.MAY_NOT_ANSWER
    status = 403
    where = "entity_id"


class McpUnavailableError(OurError):
    """An MCP server that the agent requires does not answer."""

    code = ProblemCode.MCP_UNAVAILABLE
    where = "mcp"


class GatewayNotInstalledError(OurError):
    """This installation is without the library that checks the inputs of configured tools."""

    code = ProblemCode.GATEWAY_NOT_INSTALLED
    status = 501
    retryable = False
    where = "installation"
