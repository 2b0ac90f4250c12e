"""The blocking client."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack

from proofbox.client import calls, files
from proofbox.client.api import Api
from proofbox.client.call_bodies import (
    DEFAULT_TURN,
    CallOptions,
    OnEvent,
    RunOptions,
    StartOptions,
    prepare_call,
    prepare_render,
    prepare_run,
)
from proofbox.client.errors import StillRunningError
from proofbox.client.event_stream import CallEvent
from proofbox.client.exchange import Plan
from proofbox.client.operations import call_tool, read_health, run_program
from proofbox.client.results import FileFacts, Health, RunResult, facts_of_listed
from proofbox.client.sync_driver import SyncDriver
from proofbox.client.sync_files import Download, OutputFile
from proofbox.client.uploads import Files, FileSource, UploadSource
from proofbox.contracts.blocks import Block
from proofbox.contracts.conversations import ListedConversation
from proofbox.contracts.tool_call_response import Attachment, CallStatus, ToolCallResponse

if TYPE_CHECKING:
    from proofbox.client.sync_gateway import Gateway
    from proofbox.contracts.gateway.imports import AgentImported
    from proofbox.contracts.image_contents import ImageContents
    from proofbox.contracts.tools import Tool

T = TypeVar("T")


class Client:
    """A client of one service, with blocking calls; several threads can share it.

    Every method raises a `ProofboxError`: `UnreachableError` without an answer, a `ProblemError` for a refusal,
    `ArgumentError` for a wrong argument. A program that fails is a result.

    Args:
        url: the address of the service; PROOFBOX_URL, else http://127.0.0.1:8080.
        api_key: the key; PROOFBOX_API_KEY, else none.
        timeout_s: how long the service may send nothing, 60 s by default. A call may run for longer.
        retries: how often a request is sent again after a lost connection or a retryable problem.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout_s: float | None = None,
        retries: int = 4,
    ) -> None:
        self._api = Api.create(url, api_key, timeout_s, retries)
        self._driver = SyncDriver(self._api)

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._api.url

    def __repr__(self) -> str:
        """The address, without the key."""
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._driver.close()

    # ---- calls ----

    def run(self, code: str | Path, **options: Unpack[RunOptions]) -> RunResult[OutputFile]:
        """Run a program and check the files that it promises.

        Args:
            code: the program, or the path of one.
            options: see `RunOptions`.

        Returns:
            The result, also of a program that failed.
        """
        on_event = options.pop("on_event", None)
        return self._driver.complete(
            run_program(self._api, prepare_run(code, options), on_event, self._make_file), on_event
        )

    def render(
        self,
        source: str | Path,
        output_name: str,
        *,
        files: Files | None = None,
        on_event: OnEvent | None = None,
        **params: Any,
    ) -> RunResult[OutputFile]:
        """Render a document; the extension of ``output_name`` is the format: pdf, docx, pptx, png or xlsx.

        Args:
            source: the text, or the path of a Markdown, HTML, Mermaid, SVG or CSV file.
            output_name: the name of the file to write.
            files: pictures and other files that the document names.
            on_event: called with each event.
            params: parameters of the tool, such as ``theme`` or ``toc``, and the options of `RequestOptions`.
        """
        prepared = prepare_render(source, output_name, files, params)
        return self._driver.complete(run_program(self._api, prepared, on_event, self._make_file), on_event)

    def call(self, tool_id: str, params: Mapping[str, Any], **options: Unpack[CallOptions]) -> ToolCallResponse:
        """Call a tool and wait for its answer.

        Raises:
            StillRunningError: ``wait_s`` has passed; the call continues.
        """
        plan, on_event = call_tool(self._api, tool_id, params, options)
        return self._wait(plan, on_event)

    def start(self, tool_id: str, params: Mapping[str, Any], **options: Unpack[StartOptions]) -> "CallHandle":
        """Start a call that continues without this client."""
        call = prepare_call(tool_id, params, options)
        self._driver.complete(calls.start_call(self._api, call))
        return self.handle(call.call_id, call.conversation)

    def handle(self, call_id: str, conversation: str) -> "CallHandle":
        """A call by its id; nothing is requested."""
        return CallHandle(call_id, conversation, self)

    def status(self, call_id: str, conversation: str | None = None) -> CallStatus:
        """Ask how a call stands; with its answer if it has ended."""
        return self._driver.complete(calls.ask_for_call(self._api, call_id, conversation))

    def cancel(self, call_id: str, conversation: str | None = None) -> CallStatus:
        """Cancel a call; one that has ended stays as it is."""
        return self._driver.complete(calls.cancel_call(self._api, call_id, conversation))

    def events(self, call_id: str, conversation: str | None = None, *, after: int = 0) -> Iterator[CallEvent]:
        """Yield the events of a call until it has ended; a lost connection is resumed after the last event.

        Args:
            call_id: the call.
            conversation: its conversation; needed if several have a call of that id.
            after: only events with a greater id, and the last one in any case.
        """
        yield from self._driver.iterate(calls.follow_call(self._api, call_id, conversation, after=after))

    def wait(
        self, call_id: str, conversation: str, *, timeout_s: float | None = None, on_event: OnEvent | None = None
    ) -> ToolCallResponse:
        """Wait for the answer of a call.

        Raises:
            StillRunningError: ``timeout_s`` has passed; the call continues.
        """
        deadline = calls.Deadline.after(timeout_s)
        return self._wait(calls.wait_for_call(self._api, call_id, conversation, deadline), on_event)

    # ---- files and conversations ----

    def upload(
        self,
        conversation: str,
        name: str,
        source: FileSource,
        *,
        turn: str = DEFAULT_TURN,
        media_type: str | None = None,
    ) -> Attachment:
        """Store a file as an attachment of a turn; every program of the conversation finds it by its name."""
        content = UploadSource("source", source)
        return self._driver.complete(
            files.upload_file(self._api, files.AttachmentName(conversation, turn, name), content, media_type)
        )

    def download(self, conversation: str, path: str, *, version: int | None = None) -> Download:
        """A file by its logical or physical path; nothing is requested before it is read."""
        logical = files.logical_path(path)
        return Download(
            name=files.name_of(logical),
            path=logical,
            conversation=conversation,
            version=version,
            api=self._api,
            driver=self._driver,
        )

    def link(self, conversation: str, path: str) -> str:
        """A link to a file, which works without a key for a while."""
        return self._driver.complete(files.read_link(self._api, conversation, files.logical_path(path)))

    def files(self, conversation: str) -> Iterator[OutputFile]:
        """Yield every file and attachment of a conversation, the oldest first."""
        for listed in self._driver.iterate(files.list_files(self._api, conversation)):
            yield self._make_file(facts_of_listed(conversation, listed))

    def conversations(self) -> Iterator[ListedConversation]:
        """Yield the conversations of the caller, the newest first."""
        yield from self._driver.iterate(files.list_conversations(self._api))

    def delete_file(self, conversation: str, path: str) -> None:
        """Delete a file, all its versions."""
        self._driver.complete(files.delete_file(self._api, conversation, files.logical_path(path)))

    def delete_conversation(self, conversation: str) -> None:
        """Delete a conversation: its files, timeline and calls."""
        self._driver.complete(files.delete_conversation(self._api, conversation))

    def timeline(self, conversation: str, *, after: int = 0) -> Iterator[Block]:
        """Yield the blocks of a conversation, the oldest first.

        Args:
            conversation: the conversation.
            after: only blocks after this position.
        """
        yield from self._driver.iterate(files.list_blocks(self._api, conversation, after))

    def timeline_text(self, conversation: str, *, after: int = 0) -> str:
        """The text of a conversation that a model reads."""
        return self._driver.complete(files.read_timeline_text(self._api, conversation, after))

    # ---- agents, runs, spaces ----

    @property
    def gateway(self) -> "Gateway":
        """Tools of agents, their runs, and the spaces that show them."""
        from proofbox.client.sync_gateway import Gateway  # noqa: PLC0415 - takes long

        return Gateway(self._api, self._driver)

    # ---- the service ----

    def tools(self) -> "list[Tool]":
        """The tools of the service."""
        from proofbox.client import catalogue  # noqa: PLC0415 - takes long

        return self._driver.complete(catalogue.list_tools(self._api))

    def function_definitions(self, style: Literal["openai", "anthropic"]) -> list[dict[str, Any]]:
        """The tools as function definitions of a model's API."""
        from proofbox.client import catalogue  # noqa: PLC0415 - takes long

        return self._driver.complete(catalogue.list_functions(self._api, style))

    def import_agent(self, config: Mapping[str, Any], *, save_as: str | None = None) -> "AgentImported":
        """Convert the configuration of an agent from version 1, and report what became of each tool.

        Args:
            config: the configuration.
            save_as: the agent that gets it as its newest version, without what needs review.
        """
        from proofbox.client import agents  # noqa: PLC0415 - takes long

        return self._driver.complete(agents.import_agent(self._api, config, save_as))

    def image(self) -> "ImageContents | None":
        """Libraries, commands and languages of the sandbox image; None while the service cannot read them."""
        from proofbox.client import catalogue  # noqa: PLC0415 - takes long

        return self._driver.complete(catalogue.read_image(self._api))

    def health(self) -> Health:
        """Whether the service can take a call now; without retries.

        Raises:
            UnreachableError: there is no answer.
        """
        return self._driver.complete(read_health(self._api))

    def _make_file(self, facts: FileFacts) -> OutputFile:
        return OutputFile(**vars(facts), api=self._api, driver=self._driver)

    def _wait(self, plan: Plan[T], on_event: OnEvent | None) -> T:
        try:
            return self._driver.complete(plan, on_event)
        except StillRunningError as exc:
            exc.handle = self.handle(exc.call_id, exc.conversation)
            raise


@dataclass(frozen=True)
class CallHandle:
    """A call that was started.

    Attributes:
        call_id: its id.
        conversation: its conversation.
        client: the client that asks for it.
    """

    call_id: str
    conversation: str
    client: Client = field(repr=False, compare=False)

    def status(self) -> CallStatus:
        """See `Client.status`."""
        return self.client.status(self.call_id, self.conversation)

    def cancel(self) -> CallStatus:
        """See `Client.cancel`."""
        return self.client.cancel(self.call_id, self.conversation)

    def events(self, *, after: int = 0) -> Iterator[CallEvent]:
        """See `Client.events`."""
        return self.client.events(self.call_id, self.conversation, after=after)

    def wait(self, timeout_s: float | None = None, on_event: OnEvent | None = None) -> ToolCallResponse:
        """See `Client.wait`."""
        return self.client.wait(self.call_id, self.conversation, timeout_s=timeout_s, on_event=on_event)
