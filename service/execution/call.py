"""One exec call, its parameters read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.artifacts import Contract, no_promises, parse_contract
from contracts.exec_params import ExecParams, working_folder
from contracts.tool_call_request import ToolCallRequest
from contracts.tools import Language
from service.execution.code_check import read_code
from service.identity import ConversationKey
from service.sandbox.limits import CallBounds
from service.sandbox.port import Job


@dataclass(slots=True)
class ExecCall:
    """One exec call at the door.

    Attributes:
        scope: whose conversation.
        request: the call as it came.
        language: what its code is.
        params: its parameters.
        bounds: what it may use.
        libraries: name and version of what is installed in the image; None if that is not known.
    """

    scope: ConversationKey
    request: ToolCallRequest
    language: Language
    params: ExecParams
    bounds: CallBounds
    libraries: Mapping[str, str] | None = None
    _plan: tuple[Contract, bytes] | None = field(default=None, init=False, repr=False)

    def plan(self) -> tuple[Contract, bytes]:
        """Its contract and its code, read once.

        Raises:
            ContractError: the model has to write one of them differently.
        """
        if self._plan is None:
            turn_id, given = self.request.turn_id, self.params
            contract = no_promises(turn_id) if given.explore else parse_contract(given.contract, turn_id)
            self._plan = contract, read_code(self.request.code)
        return self._plan

    def job(self, code: bytes) -> Job:
        """The program, with all that it is given at its start."""
        given, turn_id = self.params, self.request.turn_id or ""
        return Job(
            language=self.language,
            code=code,
            prog_name=given.prog_name,
            turn_id=turn_id,
            limits=self.bounds.limits,
            args=tuple(given.args),
            env=given.env,
            stdin=(given.stdin or "").encode(),
            cwd=working_folder(given.cwd or "", turn_id),
        )

    def further_texts(self) -> tuple[str, ...]:
        """What may refer to files beside the code; a value that is one path is quoted, so that it is read whole."""
        given = self.params
        values = [*given.args, *given.env.values()]
        if folder := working_folder(given.cwd or "", self.request.turn_id or ""):
            values.append(folder)
        return (given.stdin or "", *(f'"{value}"' for value in values))
