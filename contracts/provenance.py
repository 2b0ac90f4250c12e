"""The audit line of a call, which is also its manifest, and the report of running it again."""

from typing import Annotated, Literal

from pydantic import Field

from proofbox.contracts.network import NetworkUse
from proofbox.contracts.packages.installed import InstalledPackage
from proofbox.contracts.tool_call_request import Limits
from proofbox.contracts.tool_call_response import SandboxInfo, Usage
from proofbox.contracts.wire_model import WireModel

AUDIT_FORMAT = "proofbox-audit-1"
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class AuditPrincipal(WireModel):
    """Who made a call."""

    tenant: str
    """The tenant."""
    project: str
    """The project."""
    user_type: str
    """What kind of user."""
    user: str
    """The user."""
    key_id: str | None = None
    """The id of the API key that the request came with, which is no secret; none if it came without, or if the
    call was answered by a later process of the service."""


class AuditCall(WireModel):
    """Which call."""

    tool_call_id: str
    """The loop's own id; of a rerun the service's."""
    conversation_id: str
    """Its conversation."""
    turn_id: str | None = None
    """Its turn."""
    tool_id: str
    """The tool."""
    request_id: str | None = None
    """The HTTP request, as in the log."""
    traceparent: str | None = None
    """Its span, in the form of W3C Trace Context, if it was traced."""
    accepted: str
    """When it was accepted: UTC, RFC 3339, ``Z``."""
    rerun_of: Sha256 | None = None
    """Of a rerun: the audit line of the call that was run again."""


class AuditService(WireModel):
    """What answered it."""

    version: str
    """The release."""
    boot_id: str
    """The process of the service, from its start to its end."""


class AuditRequest(WireModel):
    """What was asked for, by hash."""

    sha256: Sha256
    """Of the whole request; the order of its keys and fields at their default do not change it."""
    params_sha256: Sha256
    """Of the parameters, as JSON with sorted keys, without spaces, in ASCII."""
    code_sha256: Sha256 | None = None
    """Of the program, byte for byte as UTF-8; of one that was given by reference, of the text that ran."""
    code_bytes: int | None = None
    """The program's size."""


class AuditReference(WireModel):
    """A text that a parameter named by its path."""

    param: str
    """The parameter, such as ``content``, or ``code``."""
    path: str
    """The logical path."""
    version: int | None = None
    """Its version in the artifact store; none if it came with the call or from a block of the timeline."""
    sha256: Sha256
    """The SHA-256 of the text."""
    size_bytes: int
    """Its size as UTF-8."""


class AuditInput(WireModel):
    """A file that the program could read."""

    path: str
    """Where, relative to OUT_DIR."""
    version: int | None = None
    """Its version in the artifact store; none if it came with the call or from a block of the timeline."""
    sha256: Sha256
    """Its SHA-256."""
    size_bytes: int
    """Its size."""
    source: Literal["store", "asset", "uri", "timeline"]
    """Where the bytes came from, as in the rehost ledger."""
    asked: str
    """The call's own text for the file, as in the rehost ledger."""


class AuditSource(WireModel):
    """A source that the call cites."""

    sid: int
    """Its id."""
    sha256: Sha256
    """Of what is shown of it: sid, title, url and path, as JSON with sorted keys, without spaces, in ASCII."""


class AuditOutput(WireModel):
    """A file of the call."""

    path: str
    """Where, relative to OUT_DIR."""
    verdict: str
    """``produced``, or why not."""
    visibility: Literal["external", "internal"]
    """Whether it is hosted."""
    version: int | None = None
    """Its version in the artifact store; none if it was not stored."""
    sha256: Sha256 | None = None
    """Its SHA-256; none if it was not taken out of the sandbox."""
    size_bytes: int | None = None
    """Its size."""


class AuditOutcome(WireModel):
    """How it ended."""

    state: Literal["done", "failed", "cancelled"]
    """The state in the call's status."""
    code: str
    """``ok``, or the code of its error or problem."""
    ended: str
    """When: UTC, RFC 3339, ``Z``."""
    answer_sha256: Sha256
    """Of the answer, byte for byte as it is stored and sent."""
    answer_bytes: int
    """Its size."""


class AuditEffect(WireModel):
    """One request that left the service; without path, secret and content."""

    host: str
    """The host that it went to."""
    method: str
    """Its method."""
    status: int | None = None
    """The status of the response; none if there was no response."""
    attempt: int
    """1 for the first."""
    bytes: int = 0
    """Size of the response's body as it was received."""
    ms: float
    """How long it took."""


class AuditGateway(WireModel):
    """Of a call of a run: which agent's tool, where it was shown, and what it caused."""

    run_id: str
    """The run."""
    agent_id: str
    """Its agent."""
    agent_version: int
    """The version of the configuration that the run uses."""
    execution: str
    """The variant, such as ``http``, ``webhook`` or ``own_tool``."""
    visibility: Literal["visible", "hidden", "result-only"]
    """What of the call the active space shows."""
    space_id: str | None = None
    """The active space when the call was accepted."""
    message_id: str | None = None
    """The message that shows it."""
    answered_by: str | None = None
    """The entity that answered or approved."""
    effects: list[AuditEffect] = []
    """Every request that left the service for it."""


class AuditNetwork(NetworkUse):
    """The network of a call."""

    allow: list[str]
    """What its program could connect to."""
    unknown: bool = False
    """Whether its connections are not known: the service ended while the call ran."""


class AuditLine(WireModel):
    """One line of the audit log: who ran what, where, on which inputs, and what came out.

    The lines of a tenant's project are a chain: each has the SHA-256 of the one before it. Nothing here is code,
    the content of a file, or a secret.
    """

    seq: Annotated[int, Field(ge=1)]
    """Its number in the chain, 1 for the first."""
    previous: Sha256 | None
    """The SHA-256 of the line before it, byte for byte; null for the first."""
    format: Literal["proofbox-audit-1"] = "proofbox-audit-1"
    """How the line is to be read."""
    principal: AuditPrincipal
    """Who."""
    call: AuditCall
    """Which call."""
    service: AuditService
    """Which service."""
    request: AuditRequest
    """What was asked for."""
    limits: Limits | None = None
    """What the program could use, every limit filled in; none if no program was to run."""
    sandbox: SandboxInfo | None = None
    """Where it ran: engine, runtime, image; none if nothing ran."""
    randomness: Literal["fresh"] = "fresh"
    """``fresh``: every run draws random numbers of its own and has the real clock. The seed of ``hash()`` of text
    may be that of other runs, where libraries are imported once for all."""
    references: list[AuditReference] = []
    """The texts that parameters named by their paths."""
    inputs: list[AuditInput] = []
    """What was put into OUT_DIR."""
    missing: list[str] = []
    """What it names that could not be had: a rendering has placeholders for them."""
    sources: list[AuditSource] = []
    """What it cites."""
    outputs: list[AuditOutput] = []
    """One for each verdict, then what was not promised."""
    usage: Usage = Usage()
    """What the program used, and its exit status."""
    network: AuditNetwork | None = None
    """The connections of a program that could use the network; none if it had none."""
    packages: list[InstalledPackage] | None = None
    """What was installed for a program that asked for packages, which a rerun installs again; none if it asked for
    none."""
    gateway: AuditGateway | None = None
    """Of a call of a run: which agent's tool it was."""
    outcome: AuditOutcome
    """How it ended."""


class ComparedOutput(WireModel):
    """A file of the first run beside the same file of the second."""

    path: str
    """Where, relative to OUT_DIR."""
    result: Literal["identical", "differs", "missing", "new"]
    """``missing``: only the first run made it; ``new``: only the second did."""
    first_sha256: Sha256 | None = None
    """What the first run made."""
    now_sha256: Sha256 | None = None
    """What the second run made."""
    first_verdict: str | None = None
    """Its verdict of the first run."""
    now_verdict: str | None = None
    """Its verdict of this run."""


class Compared(WireModel):
    """One fact of the first run beside that of the second."""

    first: str | None
    """Then."""
    now: str | None
    """Now."""
    equal: bool
    """Whether they are the same."""


class RerunReport(WireModel):
    """A call that was run again on the inputs of the first time; only an audit line of it was stored."""

    rerun_id: str
    """The id that it ran under."""
    tool_call_id: str
    """The call that was run again."""
    conversation_id: str
    """Its conversation."""
    identical: bool
    """Every output is the same, byte for byte, and the call ended the same way."""
    outputs: list[ComparedOutput]
    """Each file of either run, by its path."""
    image: Compared
    """The digest of the image."""
    outcome: Compared
    """``ok``, or the code of the error."""
    exit: Compared
    """The program's exit status, or the signal that ended it."""
    limits: Compared
    """What the program could use; now less where the operator allows less than then."""
    sources_changed: list[int] = []
    """Cited sources whose title, address or file is another one now."""
    first_line: Sha256
    """The audit line of the first run."""
    line: Sha256
    """The audit line of this one."""
    sandbox: SandboxInfo | None = None
    """Where it ran now."""
    usage: Usage = Usage()
    """What the program used now."""
