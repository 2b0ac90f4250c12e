"""The request of a tool call."""

import base64
import binascii
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Base64Encoder, ConfigDict, EncodedBytes, Field, model_validator
from pydantic_core import PydanticCustomError

from proofbox.contracts.blocks import GivenBlock
from proofbox.contracts.bounded_text import limit_utf8
from proofbox.contracts.gateway.names import RunId
from proofbox.contracts.logical_paths import parse
from proofbox.contracts.network import NetworkAccess
from proofbox.contracts.packages.requirements import PACKAGES_MAX, RequirementText
from proofbox.contracts.paths import FilePath, UnsafePathError, is_call_id, is_turn_id
from proofbox.contracts.wire_model import WireModel

CODE_BYTES_MAX = 10 * 1024 * 1024


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


class Limits(WireModel):
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


class SourceRow(WireModel):
    """One row of the sources pool; fields that no row has are ignored, and blank ones are as if left out."""

    model_config = ConfigDict(extra="ignore")

    sid: Annotated[int, Field(ge=1, le=10**9)]
    """Its id, which never changes its meaning."""
    source_type: Literal["web", "file", "attachment", "manual"]
    """What it is."""
    title: Annotated[str, Field(max_length=1_000)] = ""
    """Its title."""
    url: Annotated[str, Field(max_length=8_192)] | None = None
    """Where it is on the web."""
    text: str | None = None
    """The text of the source."""
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

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, value: Any) -> Any:
        """Runtimes write rows with all fields of theirs, empty where they have nothing."""
        if not isinstance(value, dict):
            return value
        return {name: each for name, each in value.items() if each is not None and each != ""}

    @property
    def file(self) -> FilePath | None:
        """The file that the row stands for, if it is a file or an attachment."""
        if self.physical_path is not None:
            return FilePath.from_physical(self.physical_path)
        if self.artifact_path is not None and self.artifact_path.startswith("fi:"):
            return FilePath.from_logical(self.artifact_path)
        return None


def decode_base64(data: bytes) -> bytes:
    """Decode base64 in the standard alphabet, in one line or several.

    A blank within a line is refused like any other character: a form makes one of each plus sign.

    Raises:
        binascii.Error: it is not base64.
    """
    return base64.b64decode(b"".join(line.strip() for line in data.splitlines()), validate=True)


class _StrictBase64Encoder(Base64Encoder):
    """Base64 as `decode_base64` takes it."""

    @classmethod
    def decode(cls, data: bytes) -> bytes:
        """See `Base64Encoder.decode`."""
        try:
            return decode_base64(data)
        except binascii.Error as exc:
            message = "Base64 decoding error: '{error}'"
            raise PydanticCustomError("base64_decode", message, {"error": str(exc)}) from exc


Base64Strict = Annotated[bytes, EncodedBytes(encoder=_StrictBase64Encoder)]


class Asset(WireModel):
    """A file that the caller hands over with the call: exactly one of base64, text and uri."""

    physical_path: PhysicalPath
    """Where it lies in OUT_DIR."""
    base64: Base64Strict | None = None
    """Its bytes; a blank within a line is refused."""
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


class ToolCallRequest(WireModel):
    """One call of a tool, as an agent's loop sends it."""

    OTHER_NAMES: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("arguments", "args", "input", "parameters", "kwargs"), "params"),
        **dict.fromkeys(("tool", "name", "function", "toolname"), "tool_id"),
        **dict.fromkeys(("id", "callid", "tooluseid"), "tool_call_id"),
        **dict.fromkeys(("thread", "threadid", "session", "sessionid"), "conversation_id"),
        **dict.fromkeys(("program", "script", "source"), "code"),
    }
    """What the fields are called elsewhere, in lower case without marks between the words."""

    tool_id: Annotated[str, Field(min_length=1, max_length=128)]
    """Which tool, as ``GET /v1/tools`` lists it."""
    tool_call_id: CallId
    """The loop's own id of the call; with the conversation it makes the call idempotent."""
    conversation_id: ConversationId
    """Which conversation."""
    run_id: RunId | None = None
    """The run of an agent, whose tools can be called, also by name; its lease is in the header ``Run-Lease``."""
    turn_id: TurnId | None = None
    """The current turn; absent in a run: ``turn_<run_id>``."""
    params: dict[str, Any]
    """The tool's own parameters."""
    code: Annotated[str, AfterValidator(limit_utf8(CODE_BYTES_MAX))] | None = None
    """The program of an exec tool, run byte for byte as given (Bash: CRLF as LF); 10 MiB of UTF-8 at most."""
    notes: str | None = None
    """The agent's remark on the call; becomes a block of its own."""
    sources_pool: Annotated[list[SourceRow], Field(max_length=10_000)] = []
    """Rows that complete the conversation's stored pool."""
    timeline: list[GivenBlock] | None = None
    """The blocks of a loop that keeps and renders its own timeline; of each only ``type`` is required. The text of
    ``react.read`` does not repeat what a model sees there."""
    assets: Annotated[list[Asset], Field(max_length=1_000)] = []
    """Files of a caller that keeps its own storage."""
    limits: Limits = Limits()
    """Lower limits for this call."""
    network: NetworkAccess | None = None
    """Hosts that the program of an exec tool may connect to; none: it has no network."""
    packages: Annotated[list[RequirementText], Field(max_length=PACKAGES_MAX)] = []
    """Packages of the operator's index that a program in Python or bash finds beside the libraries of the image."""
