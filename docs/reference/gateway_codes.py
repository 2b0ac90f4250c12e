"""One sentence per code of agents, their tools and their configurations."""

from proofbox.contracts.gateway.codes import ConfigurationCode, GatewayCode, WarningCode

GATEWAY = {
    GatewayCode.INVALID_INPUT: "The input does not fit `inputSchema` or a template; the notice lists all `errors`.",
    GatewayCode.NO_ACTIVE_SPACE: "Nobody could answer: the run has no active space that its agent is a member of.",
    GatewayCode.NO_SUCH_SPACE: "There is no space of that id, or the agent is not a member of it.",
    GatewayCode.NOT_REPLYABLE: "The message is the record of a tool call.",
    GatewayCode.NOT_AVAILABLE: "The tool cannot be run where it was called.",
    GatewayCode.UNKNOWN_ITEM: "An id or key of the list is unknown.",
    GatewayCode.TOO_MANY_ITEMS: "The agent has too many goals, memories or plans.",
    GatewayCode.TOO_MANY_WAITS: "Too many calls of the run wait.",
    GatewayCode.INVALID_SCHEDULE: "A plan has not exactly one schedule, or one that cannot be read or has passed.",
    GatewayCode.RUN_ENDED: "The run has ended.",
    GatewayCode.HTTP_STATUS: "The status is not 2xx: `status`, and the first 2 KiB of the body.",
    GatewayCode.RESPONSE_TOO_LARGE: "The response is larger than the operator allows, packed or unpacked.",
    GatewayCode.REDIRECT_REFUSED: "Only GET is redirected, within its origin and at most three times.",
    GatewayCode.EXTERNAL_FAILED: "The service did not answer with 2xx and JSON.",
    GatewayCode.WAIT_EXPIRED: "Nobody answered in time.",
    GatewayCode.USER_ERROR: "The person or service answered with an error.",
    GatewayCode.USER_CANCELLED: "The person or service cancelled.",
    GatewayCode.DENIED: "A person denied the call; nothing ran.",
    GatewayCode.COMPUTE_FAILED: "The expression has no result; the message has the last line of the error.",
    GatewayCode.ENDPOINT_NOT_CONFIGURED: "The operator has no such endpoint or model, or not for this.",
    GatewayCode.IMAGE_FAILED: "The endpoint made no picture, or one that does not open.",
    GatewayCode.SUB_AGENT_FAILED: "The sub-agent's model gave no usable answer.",
    GatewayCode.SUB_AGENT_LIMIT: "The sub-agent reached a limit before it had an answer.",
    GatewayCode.MCP_UNAVAILABLE: "The MCP server does not answer.",
    GatewayCode.MCP_TOOL_ERROR: "The MCP server's tool failed.",
    GatewayCode.TOOL_INTERRUPTED: "The service ended during the call. It may have had effects and is not repeated.",
    GatewayCode.UNKNOWN_ENV: "`${env.X}` has no value for this project and host.",
    GatewayCode.ABANDONED: "Of a record: the arguments stopped before the call was made.",
    GatewayCode.LEFT_SPACE: "Of a record: the agent left the space, or it was archived, during the call.",
}
WARNING = {
    WarningCode.NO_ACTIVE_SPACE: "The call was not posted: the run has no active space of its agent.",
    WarningCode.LEFT_SPACE: "The output was not posted: the agent left the space, or it was archived.",
    WarningCode.MENTION_DEPTH: "A mention made no run: too many mentions by agents led to it.",
    WarningCode.NAME_TAKEN: "A tool of an MCP server has the name of another and was left out.",
    WarningCode.MCP_UNAVAILABLE: "An MCP server does not answer; its tools are left out.",
    WarningCode.MCP_TOOL_MISSING: "An MCP server does not have a tool of `allowedTools`.",
    WarningCode.MCP_SCHEMA_REFUSED: "The schema of an MCP server's tool is refused; the tool is left out.",
    WarningCode.MCP_TOOL_CHANGED: "An MCP server's tool differs from its pin and is left out.",
    WarningCode.PLAIN_SECRET: "A header has a literal credential; use `${env.X}`.",
    WarningCode.BLANK_DESCRIPTION: "A tool has no description for the model.",
}
CONFIGURATION = {
    ConfigurationCode.INVALID_VALUE: "The value is not allowed here; the message names what is.",
    ConfigurationCode.INVALID_SCHEMA: "Not a JSON Schema, or one that refers elsewhere, is too large, or has a "
    "pattern that is not linear-time.",
    ConfigurationCode.INVALID_TEMPLATE: "A placeholder cannot be read or resolved, or is not allowed there.",
    ConfigurationCode.UNKNOWN_ENV: "`${env.X}` has no value for this project and host.",
    ConfigurationCode.NAME_TAKEN: "Two tools have one name, or a built-in tool has it.",
    ConfigurationCode.TOO_LARGE: "The value is larger than allowed.",
}
