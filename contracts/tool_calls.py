"""The tool call door: request, response, status, attachments."""

import base64
import binascii
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Base64Encoder, BaseModel, ConfigDict, EncodedBytes, Field, model_validator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from contracts.blocks import Block, GivenBlock
from contracts.codes import VerdictCode
from contracts.logical import parse
from contracts.paths import FilePath, UnsafePathError, is_call_id, is_turn_id
from contracts.problems import Problem
from contracts.texts import utf8_at_most

CODE_BYTES_MAX = 10 * 1024 * 1024


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


def _turn_id(text: str) -> str:
    if not is_turn_id(text):
        raise ValueError("a turn id is turn_ and then any of A-Z a-z 0-9 _ . -")
    return text


def _call_id(text: str) -> str:
    if not is_call_id(text):
        raise ValueError("a tool call id is 1 to 128 of A-Z a-z 0-9 _ : -")
    return text


def _physical(text: str) -> str:
    try:
        return FilePath.from_physical(text).physical
    except UnsafePathError as exc:
        raise ValueError(str(exc)) from exc


def _logical(text: str) -> str:
    try:
        return str(parse(text)) if not text.startswith("fi:") else FilePath.from_logical(text).logical
    except UnsafePathError as exc:
        raise ValueError(str(exc)) from exc


# The patterns are for the schema's readers; the validators have the sentence for who wrote it wrong.
TurnId = Annotated[
    str, AfterValidator(_turn_id), Field(json_schema_extra={"pattern": r"^turn_[A-Za-z0-9_.-]+$", "maxLength": 255})
]
CallId = Annotated[str, AfterValidator(_call_id), Field(json_schema_extra={"pattern": r"^[A-Za-z0-9_:-]{1,128}$"})]
ConversationId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$")]
PhysicalPath = Annotated[str, AfterValidator(_physical)]
LogicalPathText = Annotated[str, AfterValidator(_logical)]


class Limits(_Wire):
    """What one call may use. A request can only lower what the operator allows."""

    wall_s: Annotated[float, Field(gt=0)] | None = None
    """Wall-clock time of the program, in seconds."""
    cpus: Annotated[float, Field(ge=0.01)] | None = None
    """CPU share, in cores."""
    memory_bytes: Annotated[int, Field(ge=32 * 1024 * 1024)] | None = None
    """Memory of the whole sandbox, its temporary file systems included."""
    pids: Annotated[int, Field(ge=8)] | None = None
    """Processes and threads at one time, the sandbox's own four included."""
    out_dir_bytes: Annotated[int, Field(ge=4096)] | None = None
    """Size of OUT_DIR."""
    out_dir_inodes: Annotated[int, Field(ge=16)] | None = None
    """Files and folders that OUT_DIR can hold."""
    file_bytes: Annotated[int, Field(ge=1)] | None = None
    """Size of any one file that the program writes."""
    files: Annotated[int, Field(ge=1)] | None = None
    """Files that the program may leave behind."""
    depth: Annotated[int, Field(ge=1)] | None = None
    """Folders below one another that the program may leave behind."""
    output_bytes: Annotated[int, Field(ge=1)] | None = None
    """What the program may write to stdout and stderr together."""
    artifact_bytes: Annotated[int, Field(ge=1)] | None = None
    """Size of any one file that is taken out of the sandbox."""


class SourceRow(_Wire):
    """One row of the sources pool."""

    sid: Annotated[int, Field(ge=1, le=10**9)]
    """Its id, which never changes its meaning."""
    source_type: Literal["web", "file", "attachment", "manual"]
    """What it is."""
    title: Annotated[str, Field(max_length=1_000)] = ""
    """Its title."""
    url: Annotated[str, Field(max_length=8_192)] | None = None
    """Where it is on the web."""
    text: str | None = None
    """What it says."""
    mime: Annotated[str, Field(max_length=128)] | None = None
    """Its media type."""
    size_bytes: Annotated[int, Field(ge=0)] | None = None
    """Its size."""
    artifact_path: LogicalPathText | None = None
    """The logical path of a file or attachment."""
    physical_path: PhysicalPath | None = None
    """The OUT_DIR-relative path of a file or attachment."""
    hosted_uri: str | None = None
    """Where it is hosted."""
    rn: str | None = None
    """Its resource name."""
    key: str | None = None
    """Its key in the store."""
    turn_id: TurnId | None = None
    """The turn it came with."""

    @property
    def file(self) -> FilePath | None:
        """The file that the row stands for, if it is a file or an attachment."""
        if self.physical_path is not None:
            return FilePath.from_physical(self.physical_path)
        if self.artifact_path is not None and self.artifact_path.startswith("fi:"):
            return FilePath.from_logical(self.artifact_path)
        return None


class _StrictBase64Encoder(Base64Encoder):
    """Base64 in the standard alphabet; blanks and line feeds between are ignored, anything else is refused."""

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        """See `Base64Encoder.decode`."""
        try:
            return base64.b64decode(b"".join(data.split()), validate=True)
        except binascii.Error as exc:
            message = "Base64 decoding error: '{error}'"
            raise PydanticCustomError("base64_decode", message, {"error": str(exc)}) from exc


Base64Strict = Annotated[bytes, EncodedBytes(encoder=_StrictBase64Encoder)]


class Asset(_Wire):
    """A file that the caller hands over with the call: exactly one of base64, text and uri."""

    physical_path: PhysicalPath
    """Where it lies in OUT_DIR."""
    base64: Base64Strict | None = None
    """Its bytes."""
    text: str | None = None
    """Its content, as UTF-8."""
    uri: Annotated[str, Field(max_length=8_192)] | None = None
    """Where to read it: a URI below a store that the operator allows."""
    mime: Annotated[str, Field(max_length=128)] | None = None
    """Its media type."""

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if sum(part is not None for part in (self.base64, self.text, self.uri)) != 1:
            raise ValueError("give exactly one of base64, text and uri")
        return self


class ToolCallRequest(_Wire):
    """One call of a tool, as an agent's loop sends it."""

    tool_id: Annotated[str, Field(min_length=1, max_length=128)]
    """Which tool, as ``GET /v1/tools`` lists it."""
    tool_call_id: CallId
    """The loop's own id of the call; with the conversation it makes the call idempotent."""
    conversation_id: ConversationId
    """Which conversation."""
    turn_id: TurnId | None = None
    """The current turn."""
    params: dict[str, Any]
    """The tool's own parameters."""
    code: Annotated[str, AfterValidator(utf8_at_most(CODE_BYTES_MAX))] | None = None
    """The program of an exec tool, run byte for byte as given; 10 MiB of UTF-8 at most."""
    notes: str | None = None
    """What the agent says about the call; becomes a block of its own."""
    sources_pool: Annotated[list[SourceRow], Field(max_length=10_000)] = []
    """Rows that complete the conversation's stored pool."""
    timeline: list[GivenBlock] | None = None
    """The blocks of a loop that keeps its own timeline; of each only ``type`` is required."""
    assets: Annotated[list[Asset], Field(max_length=1_000)] = []
    """Files of a caller that keeps its own storage."""
    limits: Limits = Limits()
    """Lower limits for this call."""


class EnvelopeError(_Wire):
    """What went wrong with a call, in the envelope that every tool answers."""

    code: str
    """The stable code."""
    message: str
    """One sentence for the model."""
    where: str
    """Which step: ``contract``, ``rehost``, ``run``, ``check``."""
    managed: bool
    """True when the tool foresaw it; never shown on a timeline."""


class ArtifactResult(_Wire):
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


class Rehosted(_Wire):
    """One line of the rehost ledger."""

    asked: str
    """What the call said: a path, a citation token, ``workspace`` or ``assets``."""
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
    """From the door to the answer."""


class Usage(_Wire):
    """What the program used."""

    exit_code: int | None = None
    """Its exit status; none if a signal ended it."""
    signal: int | None = None
    """The signal that ended it."""
    cpu_ms: float = 0.0
    """CPU time of the program and its children."""
    memory_peak_bytes: int | None = None
    """The most memory the sandbox held; none where the kernel does not say."""
    stdout_bytes: int = 0
    """What it wrote to stdout, kept or not."""
    stderr_bytes: int = 0
    """What it wrote to stderr, kept or not."""


class ProgramOutput(_Wire):
    """What the program printed; of each stream the first and the last 32 KiB, a marker between them."""

    stdout: str = ""
    """Standard output; bytes that are no UTF-8 are U+FFFD."""
    stderr: str = ""
    """Standard error."""
    combined: str = ""
    """Both, in the order in which they were written, as far as the kernel records it."""
    truncated: bool = False
    """Whether something was left out; ``usage`` has the bytes of each stream."""


class SandboxInfo(_Wire):
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


class ToolCallResponse(_Wire):
    """The answer to one call; ``ok=false`` is a result too."""

    ok: bool
    """Whether the program ran to its end and every promised file was produced."""
    error: EnvelopeError | None = None
    """What went wrong."""
    ret: Any = None
    """The tool's own return value."""
    report: str
    """The report, as the model reads it."""
    output: ProgramOutput = ProgramOutput()
    """What the program of an exec call printed; empty for every other tool."""
    blocks: list[Block]
    """The blocks of the call, in the order of the timeline."""
    artifacts: list[ArtifactResult] = []
    """One verdict for each promised file, then the files that were not promised."""
    rehosted: list[Rehosted] = []
    """What was put into OUT_DIR before the program started."""
    timings_ms: Timings = Timings()
    """Where the time went."""
    usage: Usage = Usage()
    """What the program used."""
    sandbox: SandboxInfo | None = None
    """Which sandbox ran it; none if nothing ran."""


class CallStatus(_Wire):
    """How a call stands."""

    tool_call_id: str
    """The loop's id of the call."""
    conversation_id: str
    """Its conversation."""
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    """``done`` has a response, ``failed`` has a problem, ``cancelled`` has a problem and what the call had done."""
    created: str
    """When it was accepted: UTC, RFC 3339, ``Z``."""
    response: ToolCallResponse | None = None
    """The answer of a call that is done; of one that was cancelled its blocks, and what it had printed by then."""
    problem: Problem | None = None
    """Why a call has no answer."""


class Attachment(_Wire):
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
