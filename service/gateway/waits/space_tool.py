"""Tools of the type ``space``: the members of the active space are asked, and their answer is the result."""

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.executions import SpaceExecution
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, CallRun, RunOutcome, Suspension, WaitOutcome
from proofbox.service.gateway.posting import WaitCard
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution
from proofbox.service.gateway.waits.answers import expiry, new_wait_id
from proofbox.service.gateway.waits.policy import WaitPolicy, fail_expired, fail_without_space, restore, spec_of
from proofbox.service.gateway.waits.port import OpenWait


class SpaceTool(ToolExecution):
    """Asks the active space; see `ToolExecution`.

    Args:
        policy: the operator's limits of waits.
    """

    def __init__(self, policy: WaitPolicy) -> None:
        self._policy = policy

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """Lets the call wait for an answer."""
        if call.posting.space_id is None:
            return fail_without_space(call)
        execution = _execution(call)
        wait_id, expires = new_wait_id(), expiry(self._policy.seconds(execution.timeout))
        opened = OpenWait(
            wait_id,
            "space",
            call.recorded,
            call.posting,
            expires,
            WaitCard(wait_id, expires),
            spec_of(call, answer_by=execution.answer_by, result_schema=call.tool.shown.result_schema),
            self._policy.lease_s,
        )
        return Suspension([opened], call.fail)

    async def resume(self, call: GatewayCall, outcome: WaitOutcome) -> CallResponse | CallRun:
        """Makes the answer the result of the call."""
        return await answer_with(call, outcome, self._policy)


async def answer_with(call: GatewayCall, outcome: WaitOutcome, policy: WaitPolicy) -> CallResponse:
    """The response of a call that somebody outside has answered, or nobody in time."""
    restore(call, outcome)
    if outcome.how == "result":
        return await policy.succeed(call, outcome.value)
    if outcome.how == "error":
        return call.fail(GatewayCode.USER_ERROR, str(outcome.value))
    if outcome.how == "cancelled":
        return call.fail(GatewayCode.USER_CANCELLED, "the person who was asked gave no answer on purpose")
    return fail_expired(call, "nobody answered in time")


def _execution(call: GatewayCall) -> SpaceExecution:
    configuration = call.tool.configuration
    execution = None if configuration is None else configuration.execution
    return execution if isinstance(execution, SpaceExecution) else SpaceExecution()
