"""A call that was ended from outside: why, and what its program had printed by then."""

from dataclasses import dataclass, field

from proofbox.contracts.codes import RuntimeCode
from proofbox.contracts.tool_call_response import ProgramOutput, SandboxInfo, Usage


@dataclass(frozen=True, slots=True)
class Interruption:
    """Why a call has no answer of its own; its answer is written from this.

    Attributes:
        code: the stable code.
        message: one sentence for the model: what happened, what to do.
        output: what its program had printed.
        sandbox: where it ran; None if it had no sandbox, or that is not known.
    """

    code: RuntimeCode
    message: str
    output: ProgramOutput = field(default_factory=ProgramOutput)
    sandbox: SandboxInfo | None = None

    @property
    def usage(self) -> Usage:
        """What is known of what the program used."""
        output = self.output
        return Usage(stdout_bytes=len(output.stdout.encode()), stderr_bytes=len(output.stderr.encode()))


SERVICE_STOPPED = Interruption(
    RuntimeCode.SANDBOX_FAILED,
    "the service stopped while the call ran, its outcome is unknown: check what it may have changed outside, then "
    "call again under a new tool_call_id",
)

WORKER_LOST = Interruption(
    RuntimeCode.SANDBOX_FAILED,
    "the worker that ran the call was lost, its outcome is unknown: check what it may have changed outside, then "
    "call again under a new tool_call_id",
)


def cancelled(output: ProgramOutput, sandbox: SandboxInfo | None, *, only_waited: bool) -> Interruption:
    """Of a call that was cancelled; one that ``only_waited`` for a slot or a sandbox ran nothing."""
    when = "before it began: nothing was run" if only_waited else "while it ran"
    message = f"the call was cancelled {when}; if it is still wanted, call again under a new tool_call_id"
    return Interruption(RuntimeCode.CANCELLED, message, output, sandbox)
