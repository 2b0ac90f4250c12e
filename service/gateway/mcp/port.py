"""The port of clients of MCP servers, and what passes through it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from proofbox.service.gateway.tool_call import Effected

Action = Literal["accept", "decline", "cancel"]
OnEffect = Callable[[Effected], None]
"""Gets each request that left the service."""


class McpFailedError(Exception):
    """An MCP server gave no result.

    Args:
        code: ``mcp_unavailable``, ``mcp_tool_error`` or ``response_too_large``.
        message: one sentence, not redacted yet.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class ReachedServer:
    """An MCP server as it is asked now, with its templates filled in.

    Attributes:
        url: its endpoint.
        transport: streamable HTTP, or the older server-sent events.
        headers: headers of each request.
        timeout_s: how long one operation may take, its connection included.
        project: ``tenant/project``, among which lists are shared out.
    """

    url: str
    transport: Literal["http", "sse"]
    headers: Sequence[tuple[str, str]] = field(repr=False)
    timeout_s: float
    project: str = ""


@dataclass(frozen=True, slots=True)
class ServerTool:
    """A tool as its server lists it: hostile texts and schemas.

    Attributes:
        name: its name there.
        description: what it does, in the words of the server.
        input_schema: of its input, unchecked.
        output_schema: of its structured result, unchecked.
        annotations: hints, not to be relied on.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools of a server.

    Attributes:
        tools: in the server's order.
        ttl_s: how long the server allows the list to be stored; None: it sets no time.
        size_bytes: of the responses that had it.
    """

    tools: Sequence[ServerTool]
    ttl_s: float | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class InputAnswers:
    """The answers to what a server asked for, with which its tool is called again.

    Attributes:
        actions: by the server's key: what the person did.
        contents: by the server's key: the form as it was filled in.
        state: what the server gave to be returned as it is.
    """

    actions: Mapping[str, Action]
    contents: Mapping[str, dict[str, Any]]
    state: str | None


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A call of a server's tool.

    Attributes:
        name: its name there.
        arguments: the input, which fits its schema.
        answers: what the server asked for before; None at first.
        is_listed_first: whether the tool has parameters that become headers: then the list is read before the call.
    """

    name: str
    arguments: Mapping[str, Any]
    answers: InputAnswers | None = None
    is_listed_first: bool = False


@dataclass(frozen=True, slots=True)
class EncodedFile:
    """A picture, a sound or a file within a result.

    Attributes:
        content: in base64, as the server sent it.
        mime: the media type, as the server names it.
    """

    content: str
    mime: str


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The result of a call, unchecked and not redacted.

    Attributes:
        is_error: whether the tool failed.
        has_structured: whether there is a structured result, which may be null.
        structured: it.
        texts: the texts, in order.
        files: pictures, sounds and files.
        links: resources that the server names: ``uri``, ``name``, ``description``, ``mime``.
    """

    is_error: bool
    has_structured: bool
    structured: Any
    texts: Sequence[str]
    files: Sequence[EncodedFile]
    links: Sequence[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class AskedForm:
    """A form that a server wants a person to fill in.

    Attributes:
        message: the question.
        schema: JSON Schema of the content, unchecked.
    """

    message: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AskedInput:
    """What a server asks for in place of a result.

    Attributes:
        forms: by the server's key.
        others: keys of what is never shown to anybody, such as addresses to open; they are declined.
        state: what has to be returned with the answers.
    """

    forms: Mapping[str, AskedForm]
    others: Sequence[str]
    state: str | None


class McpClient(Protocol):
    """Asks MCP servers: one connection per operation. All methods raise McpFailedError if there is no result."""

    async def list_tools(self, server: ReachedServer) -> ToolListing:
        """List the tools of a server."""

    async def call_tool(
        self, server: ReachedServer, request: ToolRequest, on_effect: OnEffect
    ) -> ServerAnswer | AskedInput:
        """Call a tool; forms that a server of the older handshake asks for are declined."""
