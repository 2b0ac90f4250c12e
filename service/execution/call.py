"""One exec call with its parsed parameters."""

from dataclasses import dataclass, field

from proofbox.contracts.artifacts import Contract, ContractError, no_promises, parse_contract, raise_mistakes
from proofbox.contracts.exec_params import ExecParams, working_folder
from proofbox.contracts.paths import Namespace
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tools import Language
from proofbox.service.egress.policy import CallNetwork
from proofbox.service.execution.code_check import encode_code
from proofbox.service.identity import ConversationKey
from proofbox.service.sandbox.limits import CallBounds
from proofbox.service.sandbox.port import Job, PackageFolder
from proofbox.service.timeline.block_writer import now_text


@dataclass(frozen=True, slots=True)
class ExecCall:
    """One exec call.

    Attributes:
        scope: its conversation.
        request: the request.
        language: the language of its program.
        params: its parameters.
        bounds: what it may use.
        began: when it came, as its blocks have it.
    """

    scope: ConversationKey
    request: ToolCallRequest
    language: Language
    params: ExecParams
    bounds: CallBounds
    began: str = field(default_factory=now_text)

    @property
    def packages(self) -> list[str]:
        """What it asks for: the caller's loop and its model."""
        return [*self.request.packages, *self.params.packages]

    @property
    def has_carriage_returns(self) -> bool:
        """Whether it is a shell script whose lines all end with CRLF; Bash takes the CR as a letter."""
        code = self.request.code or ""
        return self.language is Language.BASH and 0 < code.count("\r\n") == code.count("\n")

    def parse(self) -> tuple[Contract, bytes]:
        """Parses its contract and its code.

        Raises:
            ContractError: the model has to write one of them differently.
        """
        return parse_call(self.request, self.params.contract, explore=self.params.explore)

    def job(self, code: bytes, network: CallNetwork | None = None, packages: PackageFolder | None = None) -> Job:
        """The program with its arguments, variables, input, network and packages."""
        given, turn_id = self.params, self.request.turn_id or ""
        return Job(
            language=self.language,
            code=code.replace(b"\r\n", b"\n") if self.has_carriage_returns else code,
            prog_name=given.prog_name,
            turn_id=turn_id,
            limits=self.bounds.limits,
            args=tuple(given.args),
            env=given.env if network is None else {**network.variables, **given.env},
            stdin=(given.stdin or "").encode(),
            cwd=working_folder(given.cwd or Namespace.FILES, turn_id),
            network=network,
            packages=packages,
        )

    def further_texts(self) -> tuple[str, ...]:
        """The texts beside the code that may refer to files; a value is quoted, for it may hold spaces."""
        given = self.params
        values = [*given.args, *given.env.values()]
        if folder := working_folder(given.cwd or "", self.request.turn_id or ""):
            values.append(folder)
        return (given.stdin or "", *(f'"{value}"' for value in values))


def parse_call(request: ToolCallRequest, contract: object, *, explore: bool) -> tuple[Contract, bytes]:
    """Parses a contract, and the code of a request.

    Raises:
        ContractError: the model has to write something differently; it lists all of that.
    """
    mistakes: list[ContractError] = []
    parsed, code = Contract((), ()), b""
    try:
        parsed = no_promises(request.turn_id) if explore else parse_contract(contract, request.turn_id)
    except ContractError as exc:
        mistakes.append(exc)
    try:
        code = encode_code(request.code)
    except ContractError as exc:
        mistakes.append(exc)
    raise_mistakes(mistakes)
    return parsed, code
