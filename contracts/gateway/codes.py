"""The stable codes of configured tools, built-in tools and runs."""

from enum import StrEnum


class GatewayCode(StrEnum):
    """Why a call of an agent's tool has no result: answers with HTTP 200 and ``ok: false``."""

    INVALID_INPUT = "invalid_input"
    NO_ACTIVE_SPACE = "no_active_space"
    NO_SUCH_SPACE = "no_such_space"
    NOT_REPLYABLE = "not_replyable"
    NOT_AVAILABLE = "not_available"
    UNKNOWN_ITEM = "unknown_item"
    TOO_MANY_ITEMS = "too_many_items"
    TOO_MANY_WAITS = "too_many_waits"
    INVALID_SCHEDULE = "invalid_schedule"
    RUN_ENDED = "run_ended"
    HTTP_STATUS = "http_status"
    RESPONSE_TOO_LARGE = "response_too_large"
    REDIRECT_REFUSED = "redirect_refused"
    EXTERNAL_FAILED = "external_failed"
    WAIT_EXPIRED = "wait_expired"
    USER_ERROR = "user_error"
    USER_CANCELLED = "user_cancelled"
    DENIED = "denied"
    COMPUTE_FAILED = "compute_failed"
    ENDPOINT_NOT_CONFIGURED = "endpoint_not_configured"
    IMAGE_FAILED = "image_failed"
    SUB_AGENT_FAILED = "sub_agent_failed"
    SUB_AGENT_LIMIT = "sub_agent_limit"
    MCP_UNAVAILABLE = "mcp_unavailable"
    MCP_TOOL_ERROR = "mcp_tool_error"
    TOOL_INTERRUPTED = "tool_interrupted"
    UNKNOWN_ENV = "unknown_env"
    # of the records of calls in spaces only
    ABANDONED = "abandoned"
    LEFT_SPACE = "left_space"


class WarningCode(StrEnum):
    """What a caller should know although the request did what it asked for."""

    NO_ACTIVE_SPACE = "no_active_space"
    LEFT_SPACE = "left_space"
    MENTION_DEPTH = "mention_depth"
    NAME_TAKEN = "name_taken"
    MCP_UNAVAILABLE = "mcp_unavailable"
    MCP_TOOL_MISSING = "mcp_tool_missing"
    MCP_SCHEMA_REFUSED = "mcp_schema_refused"
    MCP_TOOL_CHANGED = "mcp_tool_changed"
    PLAIN_SECRET = "plain_secret"  # noqa: S105 - a code
    BLANK_DESCRIPTION = "blank_description"


class ConfigurationCode(StrEnum):
    """The ``code`` of an entry of ``errors`` of the problem ``invalid_tool``, beside those of the schema."""

    INVALID_VALUE = "invalid_value"
    INVALID_SCHEMA = "invalid_schema"
    INVALID_TEMPLATE = "invalid_template"
    UNKNOWN_ENV = "unknown_env"
    NAME_TAKEN = "name_taken"
    TOO_LARGE = "too_large"
