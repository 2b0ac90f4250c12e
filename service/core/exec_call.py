"""One exec call, its parameters read."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from contracts.artifacts import Contract, parse_contract
from contracts.tool_calls import ToolCallRequest
from contracts.tools import ExecParams, Language
from service.core.intake import read_code
from service.core.limits import CallBounds
from service.core.looking_ahead import LookAhead
from service.core.scopes import Scope


@dataclass(slots=True)
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
    _plan: tuple[Contract, bytes] | None = field(default=None, init=False, repr=False)

    def plan(self) -> tuple[Contract, bytes]:
        """Its contract and its code, read once.

        Raises:
            ContractError: the model has to write one of them differently.
        """
        if self._plan is None:
            self._plan = (
                parse_contract(self.params.contract, self.request.turn_id),
                read_code(self.request.code),
            )
        return self._plan

    def look_ahead(self) -> None:
        """Begins with what can be done while the call is registered, and changes nothing."""
        self.ahead.begin()
        asyncio.get_running_loop().call_soon(self._read_early)

    def _read_early(self) -> None:
        with contextlib.suppress(Exception):  # who wants it meets that too
            self.plan()
