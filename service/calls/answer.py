"""The one answer of a call as it goes over the wire and into the store."""

from dataclasses import dataclass

from proofbox.contracts.problems import Problem
from proofbox.service.calls.port import CallState
from proofbox.service.calls.problem import problem_of, retry_after_s
from proofbox.service.errors import ShuttingDownError

_NEW_ID = "under a new id"


@dataclass(frozen=True, slots=True)
class Answer:
    """The one answer of a call as it goes over the wire: serialised once, stored and sent as it is.

    Attributes:
        http_status: 200, or the problem's status.
        body: JSON text of a response, or of a problem.
        is_problem: which of the two.
        retry_after_s: when to come again, for a refusal that may pass.
    """

    http_status: int
    body: str
    is_problem: bool
    retry_after_s: float | None = None


def build_problem_answer(exc: BaseException, request_id: str) -> Answer:
    """The answer of a call that ended by an error; a temporary one has the time of a retry."""
    problem = problem_of(exc, request_id)
    body, seconds = problem.model_dump_json(exclude_none=True), retry_after_s(exc, problem)
    return Answer(problem.status, body, is_problem=True, retry_after_s=seconds)


def make_final(answer: Answer) -> Answer:
    """An answer as it is stored: no stored problem asks for a repetition, which would only bring it again."""
    if not answer.is_problem:
        return answer
    problem = Problem.model_validate_json(answer.body)
    if not problem.retryable:
        return answer
    detail = problem.detail if _NEW_ID in problem.detail else f"{problem.detail}; call again {_NEW_ID}"
    final = problem.model_copy(update={"retryable": False, "detail": detail})
    return Answer(problem.status, final.model_dump_json(exclude_none=True), is_problem=True)


def restore_answer(state: CallState, body: str) -> Answer:
    """The answer as the store has it."""
    if state is CallState.DONE:
        return Answer(200, body, is_problem=False)
    return Answer(Problem.model_validate_json(body).status, body, is_problem=True)


def build_shutdown_error(*, may_have_run: bool) -> ShuttingDownError:
    """Why a call ended that the end of the service met."""
    if may_have_run:
        return ShuttingDownError("the service stopped while the call ran; its outcome is unknown")
    return ShuttingDownError("the service stopped before the call ran; nothing was run, call again")
