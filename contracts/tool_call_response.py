"""The response of a tool call, the status of a call, and the response to an attachment."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, PrivateAttr, model_validator
from pydantic.dataclasses import dataclass

from proofbox.contracts.blocks import Block
from proofbox.contracts.bounded_text import cut_utf8
from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.gateway.waits import Wait
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.network import NetworkUse
from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.problems import Problem
from proofbox.contracts.wire_model import WireModel

ANSWER_BYTES_MAX = 64 * 1024
"""The whole text of an answer, in bytes of UTF-8: about 20,000 tokens."""
_CUT = "\n[… cut here, of {total} bytes; react.read shows a part of a file: <path>#L1-200 …]"


def _bound_answer(text: str) -> str:
    return cut_utf8(text, ANSWER_BYTES_MAX, _CUT)


class EnvelopeError(WireModel):
    """What went wrong with a call, in the envelope that every tool answers."""

    code: str
    """The stable code."""
    message: str
    """One sentence for the model."""
    where: str
    """Which step: ``contract``, ``rehost``, ``run``, ``check``."""
    managed: bool
    """True when the tool foresaw it; never shown on a timeline."""


class ArtifactResult(WireModel):
    """What became of one file of a call."""

    logical_path: str
    """Its path on the timeline."""
    physical_path: str
    """Its path relative to OUT_DIR."""
    mime: str
    """Its media type."""
    kind: Literal["file", "display"] = "file"
    """How it is shown."""
    visibility: Literal["external", "internal"]
    """Whether it is hosted."""
    verdict: VerdictCode
    """``produced``, or why not."""
    message: str | None = None
    """What is wrong, in a sentence."""
    size_bytes: int | None = None
    """Its size, if it is there."""
    sid: int | None = None
    """Its id in the sources pool, for ``[[S:n]]``; only files that are hosted have one."""
    sha256: str | None = None
    """Its SHA-256 in hex, if it was taken out of the sandbox."""
    hosted_uri: str | None = None
    """Where it is hosted: for the caller's program, never for a model."""
    rn: str | None = None
    """Its resource name: for the caller's program, never for a model."""
    key: str | None = None
    """Its key in the store: for the caller's program, never for a model."""


class Rehosted(WireModel):
    """One line of the rehost ledger."""

    asked: str
    """The call's own text for the file: a path, a citation token, ``workspace`` or ``assets``."""
    source: Literal["store", "asset", "uri", "timeline"]
    """Where the bytes came from: the artifact store, the call's assets, a URI, or a block of a timeline."""
    physical_path: str
    """Where they were put."""
    sha256: str
    """Their SHA-256, in hex."""
    size_bytes: int
    """How many."""
    ms: float
    """How long it took to fetch and check them."""


# A dataclass, because the protocol names a phase "validate" and a model class has a method of that name.
@dataclass(config=ConfigDict(extra="forbid", use_attribute_docstrings=True))
class Timings:
    """Where the time of a call went, in milliseconds."""

    queue: float = 0.0
    """Waiting for a free place."""
    acquire: float = 0.0
    """Getting a fresh container."""
    rehost: float = 0.0
    """Finding and checking what the call refers to."""
    run: float = 0.0
    """Putting the files in, running the program."""
    validate: float = 0.0
    """Collecting and opening the promised files."""
    host: float = 0.0
    """Storing them."""
    total: float = 0.0
    """From the request's arrival to the answer."""


class Usage(WireModel):
    """What the program used."""

    exit_code: int | None = None
    """Its exit status; none if a signal ended it."""
    signal: int | None = None
    """The signal that ended it."""
    cpu_ms: float = 0.0
    """CPU time of the program and its children."""
    memory_peak_bytes: int | None = None
    """The most memory the sandbox held; none where the kernel does not report it."""
    stdout_bytes: int = 0
    """What it wrote to stdout, kept or not."""
    stderr_bytes: int = 0
    """What it wrote to stderr, kept or not."""


class ProgramOutput(WireModel):
    """What the program printed; of each stream the first and the last 32 KiB, a marker between them."""

    stdout: str = ""
    """Standard output; bytes that are no UTF-8 are U+FFFD."""
    stderr: str = ""
    """Standard error."""
    combined: str = ""
    """Both, in the order in which they were written, as far as the kernel records it."""
    truncated: bool = False
    """Whether something was left out; ``usage`` has the bytes of each stream."""


class SandboxInfo(WireModel):
    """Which sandbox ran the program."""

    engine: str
    """``docker``."""
    runtime: str
    """The OCI runtime, such as ``runc`` or ``runsc``."""
    image_digest: str
    """The id of the image."""
    acquired: Literal["warm", "cold"]
    """``warm`` if the container had been started and waited before the call, ``cold`` if it was started for it. In
    a warm one the libraries of the program may have been imported before as well, or not."""
    tier: Literal["shared_kernel", "gvisor"] = "shared_kernel"
    """What stands between the program and the machine's kernel: a filter, or a kernel of its own, gVisor's."""
    user_namespace: bool = False
    """Whether the users of the container are nobody outside of it."""


class Posted(WireModel):
    """The message that shows a call."""

    space_id: str
    """Its space."""
    message_id: str
    """Its id."""


class ToolCallResponse(WireModel):
    """The answer to one call; ``ok=false`` is a result too."""

    ok: bool
    """Whether the program ran to its end and every promised file was produced."""
    error: EnvelopeError | None = None
    """What went wrong."""
    ret: Any = None
    """The tool's own return value."""
    report: str
    """The report of an exec call, as its block has it; a short one of every other call."""
    text: Annotated[str, AfterValidator(_bound_answer)] = ""
    """The answer for a model, complete without the blocks: what was done, read, found or printed, or what is wrong
    and what to do. To be appended as the tool message; 64 KiB at most, and a cut shows how to read on."""
    output: ProgramOutput = ProgramOutput()
    """What the program of an exec call printed; empty for every other tool."""
    blocks: list[Block]
    """The blocks of the call, in the order of the timeline."""
    artifacts: list[ArtifactResult] = []
    """One verdict for each promised file, then the files that were not promised."""
    shown: list[ArtifactResult] = []
    """Those of them in which is what a Python program showed: figures, pictures, pages."""
    last_value: str | None = None
    """The text of the value of its last line, if that is an expression; of a long one the beginning and the end."""
    rehosted: list[Rehosted] = []
    """What was put into OUT_DIR before the program started."""
    timings_ms: Timings = Timings()
    """Where the time went."""
    usage: Usage = Usage()
    """What the program used."""
    sandbox: SandboxInfo | None = None
    """Which sandbox ran it; none if nothing ran."""
    network: NetworkUse | None = None
    """The connections of a program that could use the network."""
    packages: list[InstalledPackage] | None = None
    """What was installed for a program that asked for packages: also what they need, not what the image has."""
    warnings: list[GatewayWarning] = []
    """Of a call of a run: what the caller should know although the tool ran."""
    posted: Posted | None = None
    """Of a call of a run: the message that shows it."""

    _is_refusal: bool = PrivateAttr(default=False)
    _printed: str | None = PrivateAttr(default=None)

    @property
    def is_refusal(self) -> bool:
        """Whether nothing was run: the call may be sent again, corrected, under its id. It is not on the wire."""
        return self._is_refusal

    def refused(self) -> Self:
        """Mark the response of a call of which nothing was run, and return it."""
        self._is_refusal = True
        return self

    @property
    def printed(self) -> str | None:
        """All that the program printed, if `output` has less: stored with the answer, and not on the wire."""
        return self._printed

    def add_printed(self, text: str) -> None:
        """Set what is stored with the answer of all that the program printed."""
        self._printed = text

    @model_validator(mode="after")
    def _complete_text(self) -> Self:
        if not self.text:  # the report has all, or an earlier release stored the answer
            self.text = _bound_answer(self.report)
        return self


class CallStatus(WireModel):
    """How a call stands."""

    tool_call_id: str
    """The loop's id of the call."""
    conversation_id: str
    """Its conversation."""
    status: Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
    """``waiting`` has a wait, ``done`` a response, ``failed`` a problem, ``cancelled`` a problem and the rest."""
    created: str
    """When it was accepted: UTC, RFC 3339, ``Z``."""
    response: ToolCallResponse | None = None
    """The answer of a call that is done; of one that was cancelled its blocks, and what it had printed by then."""
    problem: Problem | None = None
    """Why a call has no answer."""
    wait: Wait | None = None
    """What a call that is waiting waits for."""


class Attachment(WireModel):
    """An attachment that was stored."""

    logical_path: str
    """Its path on the timeline."""
    physical_path: str
    """Its path relative to OUT_DIR, as programs read it."""
    sid: int
    """Its id in the conversation's sources pool."""
    sha256: str
    """Its SHA-256, in hex."""
    size_bytes: int
    """Its size."""
    mime: str
    """Its media type."""
