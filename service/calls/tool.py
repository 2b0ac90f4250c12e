"""The interface of a tool."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.observer import CallObserver
from proofbox.service.identity import ConversationKey


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call whose parameters were parsed.

    Attributes:
        run: runs it and returns its response.
        interrupt: builds the response of a call that was cancelled or whose process ended; it never runs again
            under its id.
    """

    run: Callable[[CallObserver], Awaitable[ToolCallResponse]]
    interrupt: Callable[[Interruption], ToolCallResponse]


class Tool(Protocol):
    """Runs the calls of one or more tool ids."""

    def prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        """Parses the parameters of a call.

        Raises:
            InvalidParamsError: a parameter does not fit its schema.
            InvalidRequestError: the call has code and the tool takes none.
            LimitNotAllowedError: a limit is above the operator's.
        """


Tools = Mapping[str, Tool]
"""The tools by the ids that they are called by."""
