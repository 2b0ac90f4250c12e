"""The bodies of requests. Unknown fields are ignored: LibreChat sends some for servers of other kinds."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, RootModel

FILES_MAX = 1_000
TOOLS_MAX = 100
PARAMETERS_MAX = 1_000
"""The parameters of one tool, and the names in the ``required`` of its schema."""
RESULTS_MAX = 200
TIMEOUT_MS_MAX = 300_000


class Body(BaseModel):
    """A request body; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", use_attribute_docstrings=True, allow_inf_nan=False)


class FileReference(Body):
    """A file of a session that a run gets as input."""

    id: str
    """Its id."""
    name: str
    """Where it lies below ``/mnt/data``."""
    storage_session_id: str | None = None
    """Its session."""
    session_id: str | None = None
    """Its session, as older clients name it."""
    kind: str | None = None
    """Kind of its owner."""
    resource_id: str | None = None
    """Id of its owner."""
    entity_id: str | None = None
    """Agent that owns it, as older clients name it."""
    version: int | str | None = None
    """Version of the skill that owns it."""


class ExecRequest(Body):
    """``POST /exec``."""

    lang: str
    """Language of the program."""
    code: str
    """The program."""
    args: list[str] | None = None
    """Its arguments."""
    files: Annotated[list[FileReference], Field(max_length=FILES_MAX)] | None = None
    """Its input files."""


class ProgrammaticTool(Body):
    """A tool that a program may call."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    """Its name."""
    parameters: dict[str, Any] | None = None
    """JSON Schema of its parameters."""


class ToolResult(Body):
    """The result of a tool that a program has called."""

    call_id: Annotated[str, Field(max_length=64)]
    """The id of the call."""
    result: Any = None
    """The result."""
    is_error: bool | None = None
    """Whether the tool failed."""
    error_message: str | None = None
    """Why it failed."""


class ProgrammaticRequest(Body):
    """``POST /exec/programmatic``: a program with tools, or the results that it waits for."""

    code: str | None = None
    """The program."""
    tools: list[ProgrammaticTool] | None = None
    """The tools."""
    language: str | None = None
    """Language of the program, ``python`` or ``bash``."""
    lang: str | None = None
    """The same, as some clients name it."""
    files: Annotated[list[FileReference], Field(max_length=FILES_MAX)] | None = None
    """Its input files."""
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Wall clock of each run of the program, in milliseconds."""
    continuation_token: str | None = None
    """Names the program whose results these are."""
    tool_results: Annotated[list[ToolResult], Field(max_length=RESULTS_MAX)] | None = None
    """Results of the tools that it called."""


class PendingCall(Body):
    """A call in the file that a program with tools leaves."""

    name: str
    """The tool."""
    input: dict[str, Any]
    """Its arguments."""


class PendingCalls(RootModel[Annotated[list[PendingCall], Field(min_length=1, fail_fast=True)]]):
    """The calls that a program waits for."""


class CancelRequest(Body):
    """``POST /exec/programmatic/cancel``."""

    request_id: str | None = None
    """The id of the request, which its header had."""
