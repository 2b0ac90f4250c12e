"""The tools that MCP clients see: names, descriptions, schemas, and what each of them does."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, Tool, ToolAnnotations
from pydantic import BaseModel

from proofbox.contracts.image_contents import named_commands, named_libraries
from proofbox.contracts.tools import Language
from proofbox.service.mcp import arguments as given
from proofbox.service.mcp.arguments import Arguments, input_schema
from proofbox.service.mcp.exchange import Exchange
from proofbox.service.mcp.options import McpOptions
from proofbox.service.mcp.results import CallData, FilesData, LinkData, output_schema
from proofbox.service.sandbox.image_inventory import Inventory

Run = Callable[[Exchange, Any], Awaitable[CallToolResult]]
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool.

    Attributes:
        name: its name: letters and underscores, which every host allows.
        title: its name for people.
        arguments: the model of its arguments.
        description: what it does, for the model.
        data: the model of its structured content; None: it is not described.
        run: what it does.
        reads_only: whether it changes nothing.
        reaches_web: whether it reaches beyond the service.
    """

    name: str
    title: str
    arguments: type[Arguments]
    description: str
    data: type[BaseModel] | None
    run: Run
    reads_only: bool = False
    reaches_web: bool = False

    def as_tool(self) -> Tool:
        """The tool as ``tools/list`` has it."""
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=input_schema(self.arguments),
            output_schema=None if self.data is None else output_schema(self.data),
            annotations=ToolAnnotations(
                title=self.title,
                read_only_hint=self.reads_only,
                destructive_hint=False,
                idempotent_hint=self.reads_only,
                open_world_hint=self.reaches_web,
            ),
        )


@dataclass(frozen=True, slots=True)
class ToolActions:
    """What the tools do.

    Attributes:
        run_program: runs a program of a language.
        render: renders a document.
        read_file, list_files, upload_link, download_link: files of a conversation.
        get_result, cancel_call: calls that were started before.
        react: runs the tool without a sandbox of that id.
    """

    run_program: Callable[[Language], Run]
    render: Run
    read_file: Run
    list_files: Run
    upload_link: Run
    download_link: Run
    get_result: Run
    cancel_call: Run
    react: Callable[[str], Run]


def all_tools(actions: ToolActions, options: McpOptions, image: Inventory) -> dict[str, McpTool]:
    """Every tool by its name, in a stable order."""
    tools = [
        *_program_tools(actions, options, image),
        McpTool(
            "render",
            "Render a document",
            given.RenderArguments,
            "Renders Markdown or HTML to a PDF, DOCX, PPTX or PNG file, or tables to XLSX, without network. "
            "Pictures are "
            "named by the path of a file of the conversation.",
            CallData,
            actions.render,
        ),
        *_file_tools(actions, options),
        *_call_tools(actions),
        *_react_tools(actions, options),
    ]
    return {tool.name: tool for tool in tools}


def _program_tools(actions: ToolActions, options: McpOptions, image: Inventory) -> list[McpTool]:
    limits = options.limits
    bounds = (
        f"Limits: {limits.wall_s:g} s, {limits.memory_bytes // _MIB} MiB of memory, "
        f"{limits.artifact_bytes // _MIB} MiB "
        "a file, no network"
    )
    libraries = f" Python {image.python} {named_libraries(image.libraries)}." if image.is_known else ""
    libraries = libraries.replace(" (GET /v1/tools)", "")
    commands = named_commands(image.commands)
    python = McpTool(
        "run_python",
        "Run Python",
        given.PackageArguments if options.has_packages else given.RunArguments,
        "Runs a Python program in a fresh sandbox and returns what it prints and a verdict on each file that it "
        "promises. "
        "Write files to files/<name>; files of earlier calls of the same conversation are there again, "
        "variables are "
        f"not. {bounds}.{libraries}",
        CallData,
        actions.run_program(Language.PYTHON),
    )
    has = f" Commands beside the usual ones: {commands}." if commands else ""
    bash = McpTool(
        "run_bash",
        "Run a shell script",
        given.RunArguments,
        f"Runs a bash script as run_python runs a program, with the same limits.{has}",
        CallData,
        actions.run_program(Language.BASH),
    )
    node = McpTool(
        "run_node",
        "Run JavaScript",
        given.RunArguments,
        "Runs a JavaScript program with Node.js as run_python runs a program, with the same limits.",
        CallData,
        actions.run_program(Language.NODE),
    )
    return [python, bash, *([node] if Language.NODE in image.languages else [])]


def _file_tools(actions: ToolActions, options: McpOptions) -> list[McpTool]:
    return [
        McpTool(
            "read_file",
            "Read a file",
            given.ReadFileArguments,
            "Shows a file of the conversation: a text, the text of a DOCX, XLSX, PPTX or PDF, or a picture.",
            CallData,
            actions.read_file,
            reads_only=True,
        ),
        McpTool(
            "list_files",
            "List files",
            given.ListFilesArguments,
            f"Lists the files of a conversation, the oldest first. They are stored {options.retention}.",
            FilesData,
            actions.list_files,
            reads_only=True,
        ),
        McpTool(
            "get_upload_link",
            "Get an upload link",
            given.UploadArguments,
            "Returns a URL to which the user or a program sends a file by PUT, without a key; programs of the "
            "conversation "
            f"then open it by its name. It works {options.link_s} s. Use it for files that are too large for "
            f"files.",
            LinkData,
            actions.upload_link,
        ),
        McpTool(
            "get_download_link",
            "Get a download link",
            given.FileArguments,
            f"Returns a URL of a file for the user; it works {options.link_s} s for everyone who has it. Never "
            f"make up a link "
            "to a file: only this tool has them.",
            LinkData,
            actions.download_link,
            reads_only=True,
        ),
    ]


def _call_tools(actions: ToolActions) -> list[McpTool]:
    return [
        McpTool(
            "get_result",
            "Get a result",
            given.ResultArguments,
            "Returns the result of a call that was still running, by the handle of its first result; waits "
            "wait_s for it.",
            CallData,
            actions.get_result,
            reads_only=True,
        ),
        McpTool(
            "cancel_call",
            "Cancel a call",
            given.CancelArguments,
            "Ends a call that is still running, by its handle.",
            CallData,
            actions.cancel_call,
        ),
    ]


_REACT_TOOLS: tuple[tuple[str, str, type[Arguments], str, str, bool], ...] = (
    (
        "write_file",
        "Write a file",
        given.WriteFileArguments,
        "Writes a text file of the conversation.",
        "react.file",
        False,
    ),
    (
        "patch_file",
        "Patch a file",
        given.PatchFileArguments,
        "Changes a text file by a diff, or replaces its text. Nothing changes if a hunk does not fit.",
        "react.patch",
        False,
    ),
    (
        "search_files",
        "Search files",
        given.SearchFilesArguments,
        "Lists files of the conversation whose path and text match regular expressions.",
        "react.search_files",
        True,
    ),
    (
        "search_memory",
        "Search a conversation",
        given.SearchMemoryArguments,
        "Searches what was written and attached in the conversation, by meaning.",
        "react.memsearch",
        True,
    ),
    (
        "record_plan",
        "Record a plan",
        given.PlanArguments,
        "Records the plan of the conversation and the status of each step.",
        "react.plan",
        False,
    ),
    (
        "web_fetch",
        "Fetch web pages",
        given.WebFetchArguments,
        "Fetches web pages as text; programs in the sandbox have no network.",
        "web_tools.web_fetch",
        False,
    ),
    (
        "web_search",
        "Search the web",
        given.WebSearchArguments,
        "Searches the web; returns titles, addresses and texts.",
        "web_tools.web_search",
        False,
    ),
)
"""Name, title, arguments, description, id of the tool of this service, and whether it only reads."""


def _react_tools(actions: ToolActions, options: McpOptions) -> list[McpTool]:
    return [
        McpTool(
            name,
            title,
            model,
            description,
            None,
            actions.react(tool_id),
            reads_only=reads_only,
            reaches_web=tool_id.startswith("web_tools."),
        )
        for name, title, model, description, tool_id, reads_only in _REACT_TOOLS
        if tool_id not in options.absent_tools
    ]
