"""One exec call, its parameters read."""

from dataclasses import dataclass

from contracts.tool_calls import ToolCallRequest
from contracts.tools import ExecParams, Language
from service.core.limits import CallBounds
from service.core.looking_ahead import LookAhead
from service.core.scopes import Scope


@dataclass(frozen=True, slots=True)
class ExecCall:
    """One exec call at the door.

    Attributes:
        scope: whose conversation.
        request: the call as it came.
        language: what its code is.
        params: its parameters.
        bounds: what it may use.
        ahead: what is looked up before it is told.
    """

    scope: Scope
    request: ToolCallRequest
    language: Language
    params: ExecParams
    bounds: CallBounds
    ahead: LookAhead
