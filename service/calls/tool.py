"""Who is told how a call goes on, and what a story of a tool has to offer to `Calls`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from contracts.tool_call_request import ToolCallRequest
from contracts.tool_call_response import SandboxInfo, ToolCallResponse
from service.calls.interruptions import Interruption
from service.identity import ConversationKey
from service.sandbox.port import StreamName


class CallObserver(Protocol):
    """Who is told how a call goes on.

    Attributes:
        owner: in whose share of the places it runs.
    """

    owner: str

    def queued(self, position: int) -> None:
        """It waits; so many calls are before it."""

    def started(self, sandbox: SandboxInfo) -> None:
        """It has a sandbox: from here on the program may have had effects."""

    def output(self, stream: StreamName, piece: bytes, truncated: bool) -> None:
        """The program wrote something."""


class NullObserver:
    """The watcher of a call that nobody watches."""

    owner = ""

    def queued(self, position: int) -> None:
        """See `CallObserver.queued`."""

    def started(self, sandbox: SandboxInfo) -> None:
        """See `CallObserver.started`."""

    def output(self, stream: StreamName, piece: bytes, truncated: bool) -> None:
        """See `CallObserver.output`."""


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose parameters were read.

    Attributes:
        tell: runs it to its answer.
        interrupted: the answer if it was cancelled or the service died; it is never run again under its id.
    """

    tell: Callable[[CallObserver], Awaitable[ToolCallResponse]]
    interrupted: Callable[[Interruption], ToolCallResponse]


class Tool(Protocol):
    """How the calls of some tools are told."""

    def open(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall | None:
        """Reads the parameters of a call; None if the tool is none of this story's.

        Raises:
            InvalidParamsError: a parameter is not what its schema asks for.
            InvalidRequestError: the call has code and the tool takes none.
            LimitNotAllowedError: a limit is above the operator's.
        """
