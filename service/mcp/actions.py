"""What each tool does: arguments to calls of the service, and responses to results."""

from typing import Any

from mcp_types import CallToolResult, ContentBlock

from proofbox.contracts.codes import ProblemCode, VerdictCode
from proofbox.contracts.paths import FilePath
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX, OutputFormat
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language, exec_tool_id
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.services import Services
from proofbox.service.identity import ConversationKey
from proofbox.service.mcp.arguments import (
    CancelArguments,
    InvalidArgumentsError,
    PackageArguments,
    ReadFileArguments,
    RenderArguments,
    ResultArguments,
    RunArguments,
)
from proofbox.service.mcp.calls import CallOutcome, CallSpec, Handle, McpCalls
from proofbox.service.mcp.errors import CORRECTABLE_CODES, protocol_error
from proofbox.service.mcp.exchange import Exchange, new_conversation
from proofbox.service.mcp.files import ConversationFiles
from proofbox.service.mcp.options import WAIT_S_DEFAULT, McpOptions
from proofbox.service.mcp.preview import NO_PREVIEW, PICTURE_TYPES, Preview, Previews
from proofbox.service.mcp.results import (
    build_result,
    call_data,
    call_links,
    picture_block,
    stored_files,
    text_block,
)
from proofbox.service.mcp.tools import Run, ToolActions

_RUNNING = frozenset({"queued", "running"})
_PATCH = {"channel": "canvas", "kind": "file"}


class Actions:
    """What the tools do.

    Args:
        services: the services of the routes.
        options: the options of the endpoint.
    """

    def __init__(self, services: Services, options: McpOptions) -> None:
        self.files = ConversationFiles(services)
        self._services = services
        self._options = options
        self._calls = McpCalls(services, self.files.store)
        self._previews = Previews(services, options.limits)

    def all(self) -> ToolActions:
        """All of them."""
        return ToolActions(
            run_program=self._program,
            render=self._render,
            read_file=self._read_file,
            list_files=self.files.list_files,
            upload_link=self.files.upload_link,
            download_link=self.files.download_link,
            get_result=self._get_result,
            cancel_call=self._cancel,
            react=self._react,
        )

    def _program(self, language: Language) -> Run:
        async def run(exchange: Exchange, arguments: RunArguments) -> CallToolResult:
            conversation = arguments.conversation or new_conversation()
            params: dict[str, Any] = {"contract": arguments.contract()}
            if arguments.timeout_s is not None:
                params["timeout_s"] = arguments.timeout_s
            if arguments.stdin is not None:
                params["stdin"] = arguments.stdin
            if isinstance(arguments, PackageArguments) and arguments.packages:
                params["packages"] = arguments.packages
            tool_id, files = exec_tool_id(language), arguments.files
            spec = CallSpec(tool_id, params, conversation, code=arguments.code, files=files)
            return await self._finish(exchange, await self._calls.run(exchange, spec, arguments.wait_s))

        return run

    async def _render(self, exchange: Exchange, arguments: RenderArguments) -> CallToolResult:
        suffix = arguments.path.rpartition(".")[2].lower()
        if suffix not in set(OutputFormat):
            known = ", ".join(OutputFormat)
            raise InvalidArgumentsError(f"path: '.{suffix[:20]}' cannot be rendered; use one of {known}")
        conversation = arguments.conversation or new_conversation()
        fields = arguments.model_dump(include={"path", "content", "format", "title", "theme"}, exclude_none=True)
        params = {**arguments.options, **fields}
        spec = CallSpec(f"{RENDER_TOOL_PREFIX}{suffix}", params, conversation, files=arguments.files)
        return await self._finish(exchange, await self._calls.run(exchange, spec, arguments.wait_s))

    async def _read_file(self, exchange: Exchange, arguments: ReadFileArguments) -> CallToolResult:
        exchange.caller.require(Permission.ARTIFACTS_READ)
        scope = exchange.scope(arguments.conversation)
        stored = await self.files.find(scope, arguments.path)
        part = f"#L{arguments.lines}" if arguments.lines else ""
        params = {"paths": [f"{stored.path.logical}{part}"]}
        spec = CallSpec("react.read", params, arguments.conversation)
        outcome = await self._calls.run(exchange, spec, WAIT_S_DEFAULT)
        preview = await self._previews.find(scope, stored) if outcome.response is not None else None
        return await self._finish(exchange, outcome, preview)

    async def _get_result(self, exchange: Exchange, arguments: ResultArguments) -> CallToolResult:
        outcome = await self._calls.result(exchange, Handle.parse(arguments.handle), arguments.wait_s)
        return await self._finish(exchange, outcome)

    async def _cancel(self, exchange: Exchange, arguments: CancelArguments) -> CallToolResult:
        outcome = await self._calls.cancel(exchange, Handle.parse(arguments.handle))
        if outcome.status != "cancelled":
            return await self._finish(exchange, outcome)
        text = "The call is cancelled."
        if outcome.response is not None:
            text = f"{text}\n{outcome.response.text}"
        return build_result([text_block(text)], call_data(outcome, text))

    def _react(self, tool_id: str) -> Run:
        async def run(exchange: Exchange, arguments: Any) -> CallToolResult:
            params = arguments.model_dump(exclude={"conversation"}, exclude_none=True)
            if tool_id == "react.patch":
                params |= _PATCH
            conversation = arguments.conversation or new_conversation()
            outcome = await self._calls.run(exchange, CallSpec(tool_id, params, conversation), WAIT_S_DEFAULT)
            return await self._finish(exchange, outcome)

        return run

    async def _finish(
        self,
        exchange: Exchange,
        outcome: CallOutcome,
        preview: Preview | None = None,
    ) -> CallToolResult:
        """Build the result of a call.

        Raises:
            MCPError: the service could not make the call.
        """
        response, problem = outcome.response, outcome.problem
        if problem is not None and problem.code not in CORRECTABLE_CODES | {ProblemCode.CANCELLED}:
            raise protocol_error(problem)
        if response is None:
            text = self._text_without_response(outcome)
            return build_result(
                [text_block(text)],
                call_data(outcome, text),
                is_error=outcome.status not in _RUNNING,
            )
        if preview is None:
            scope = exchange.scope(outcome.handle.conversation)
            preview = await self._preview_of(scope, response)
        blocks: list[ContentBlock] = [text_block(response.text, self._notes(outcome, preview))]
        if preview.picture is not None:
            blocks.append(picture_block(preview.picture))
        blocks += call_links(exchange, outcome)
        return build_result(blocks, call_data(outcome, response.text), is_error=not response.ok)

    async def _preview_of(self, scope: ConversationKey, response: ToolCallResponse) -> Preview:
        """The preview of the first picture that this very call wrote."""
        for found in response.artifacts:
            if found.mime not in PICTURE_TYPES or found.verdict != VerdictCode.PRODUCED or found.sha256 is None:
                continue
            stored = await self._services.artifacts.latest(scope, FilePath.from_physical(found.physical_path))
            # Another call may have written a later version meanwhile.
            if stored is None or stored.sha256 != found.sha256:
                return NO_PREVIEW
            return await self._previews.find(scope, stored)
        return NO_PREVIEW

    def _notes(self, outcome: CallOutcome, preview: Preview) -> list[str]:
        """What follows the report: the conversation, and how the user gets files."""
        notes = [f"Conversation: {outcome.handle.conversation} (its files are stored {self._options.retention})"]
        if outcome.response is not None and stored_files(outcome.response):
            notes.append("For a link to a file, call get_download_link; no other link to it exists.")
        if preview.note:
            notes.append(preview.note)
        return notes

    def _text_without_response(self, outcome: CallOutcome) -> str:
        conversation = f"Conversation: {outcome.handle.conversation}"
        if outcome.status in _RUNNING:
            return (
                f"The call is still {outcome.status}. Call get_result with handle '{outcome.handle}' for its "
                f"result, or "
                f"cancel_call to end it.\n{conversation}"
            )
        detail = outcome.problem.detail if outcome.problem is not None else "the call has no answer"
        return f"The call {outcome.status}: {detail}\n{conversation}"
