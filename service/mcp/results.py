"""Results of tools: a text that is complete on its own, at most one picture, links to files, and bounded data."""

import base64
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from mcp_types import Annotations, CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent
from pydantic import BaseModel, ConfigDict

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_response import ANSWER_BYTES_MAX, ArtifactResult, ToolCallResponse
from proofbox.contracts.tool_schemas import compact_schema, without_descriptions
from proofbox.service.mcp.calls import CallOutcome
from proofbox.service.mcp.exchange import Exchange
from proofbox.service.mcp.preview import Picture

RESULT_BYTES_MAX = 768 * 1024
"""A whole result as JSON: some hosts refuse more than 1 MiB."""
TEXT_BYTES_MAX = ANSWER_BYTES_MAX
"""About 20,000 tokens: some hosts refuse results of more than 25,000."""
REPORT_BYTES_MAX = 16 * 1024
"""The report in structured content, for clients that give the model only that."""
FILES_LISTED_MAX = 100
LINKS_MAX = 50
_MESSAGE_CHARS_MAX = 300
_STRUCTURE_BYTES = 1024  # brackets, names and roles around the blocks
META_SHA256 = "proofbox/sha256"
META_SIZE_BYTES = "proofbox/size_bytes"
_REPORT_CUT = "\n…[cut here: the report has {total} bytes]"
_CUT = "\n…[cut here: the text has {total} bytes, {shown} are shown; read_file takes lines of a file]"


class ErrorData(BaseModel):
    """Why a call did not succeed."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    code: str
    """The stable code."""
    message: str
    """One sentence."""


class FileData(BaseModel):
    """One file of a call or of a conversation."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    path: str
    """Its path in the conversation."""
    verdict: str | None = None
    """produced, or why not."""
    message: str | None = None
    """What is wrong with it."""
    media_type: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None


class CallData(BaseModel):
    """The structured content of a call: verdicts, paths and timings; output is in the report only."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    status: str
    """queued, running, done, failed or cancelled."""
    ok: bool | None = None
    """Of a call that is done: whether it succeeded and wrote every promised file."""
    conversation: str
    """The conversation, for further calls."""
    handle: str
    """The call, for get_result."""
    error: ErrorData | None = None
    exit_code: int | None = None
    files: list[FileData] = []
    """The first files."""
    files_total: int = 0
    timings_ms: dict[str, float] = {}
    report: str | None = None
    """What the text of the result has, without its notes; at most 16 KiB."""


class FilesData(BaseModel):
    """The structured content of a list of files."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    conversation: str
    files: list[FileData]
    last: int
    """For the next page: give it as after."""
    more: bool


class LinkData(BaseModel):
    """The structured content of a link."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    conversation: str
    path: str
    """The path of the file in programs and results."""
    url: str
    expires_s: int
    """How long the link works."""
    bytes_max: int | None = None
    """The largest file, of an upload link."""


def output_schema(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of structured content; fields that do not apply are left out."""
    return {"type": "object", **without_descriptions(compact_schema(model.model_json_schema()))}


def file_uri(conversation: str, path: FilePath) -> str:
    """The URI of a file as a resource."""
    return f"proofbox://{quote(conversation, safe='')}/{quote(path.physical)}"


def text_block(text: str, notes: Sequence[str] = ()) -> TextContent:
    """A block with a text, cut to its bound, and notes below it."""
    return TextContent(text="\n".join([_cut(text, TEXT_BYTES_MAX, _CUT), *notes]))


def _cut(text: str, bytes_max: int, mark: str) -> str:
    """A text, or its beginning and a mark if it is too long; the mark is not part of the bound."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= bytes_max:
        return text
    shown = encoded[:bytes_max].decode(errors="ignore")
    return shown + mark.format(total=len(encoded), shown=len(shown.encode()))


def _report_of(text: str) -> str:
    """The report of structured content: a text within its bound, the mark included."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= REPORT_BYTES_MAX:
        return encoded.decode()
    room = REPORT_BYTES_MAX - len(_REPORT_CUT.format(total=len(encoded)).encode())
    return _cut(text, room, _REPORT_CUT)


def file_link(conversation: str, path: FilePath, file: FileData, description: str = "") -> ResourceLink:
    """A block with the link to a file of the conversation, for the user."""
    return ResourceLink(
        uri=file_uri(conversation, path),
        name=path.rel.rpartition("/")[2],
        mime_type=file.media_type,
        size=file.size_bytes,
        description=description or None,
        annotations=Annotations(audience=["user"], priority=0.5),
        _meta={META_SHA256: file.sha256, META_SIZE_BYTES: file.size_bytes},
    )


def picture_block(picture: Picture) -> ImageContent:
    """A block with a picture."""
    return ImageContent(
        data=base64.b64encode(picture.content).decode(),
        mime_type=picture.mime,
        annotations=Annotations(audience=["user", "assistant"]),
    )


def build_result(
    blocks: Sequence[ContentBlock], data: BaseModel | None = None, *, is_error: bool = False
) -> CallToolResult:
    """Build a result within the bound of its size: pictures go first, then links."""
    structured = None if data is None else data.model_dump(mode="json", exclude_none=True)
    parts = list(blocks)
    room = RESULT_BYTES_MAX - _STRUCTURE_BYTES - (0 if data is None else len(data.model_dump_json()))
    for kind in (ImageContent, ResourceLink):
        if sum(map(_size, parts)) > room:
            parts = [block for block in parts if not isinstance(block, kind)]
    return CallToolResult(content=parts, structured_content=structured, is_error=is_error)


def without_structure(result: CallToolResult) -> CallToolResult:
    """The same result for a client that cannot read structured content."""
    return result.model_copy(update={"structured_content": None})


def _size(block: ContentBlock) -> int:
    return len(block.model_dump_json(by_alias=True, exclude_none=True))


def error_result(message: str) -> CallToolResult:
    """The result of a call that the model has to write differently; nothing was done."""
    return build_result([text_block(message)], is_error=True)


def call_data(outcome: CallOutcome, text: str | None = None) -> CallData:
    """The structured content of a call.

    Args:
        outcome: what is known of the call.
        text: the report, and the texts that the result shows below it.
    """
    response, problem = outcome.response, outcome.problem
    error = None
    if problem is not None:
        error = ErrorData(code=str(problem.code), message=problem.detail[:_MESSAGE_CHARS_MAX])
    elif response is not None and response.error is not None:
        error = ErrorData(code=response.error.code, message=response.error.message[:_MESSAGE_CHARS_MAX])
    artifacts = [] if response is None else response.artifacts
    return CallData(
        status=outcome.status,
        ok=response.ok if response is not None and outcome.status == "done" else None,
        conversation=outcome.handle.conversation,
        handle=str(outcome.handle),
        error=error,
        exit_code=None if response is None else response.usage.exit_code,
        files=[_file_data(artifact) for artifact in artifacts[:FILES_LISTED_MAX]],
        files_total=len(artifacts),
        timings_ms={} if response is None else {k: v for k, v in vars(response.timings_ms).items() if v},
        report=None if text is None else _report_of(text),
    )


def _file_data(artifact: ArtifactResult) -> FileData:
    return FileData(
        path=artifact.physical_path,
        verdict=str(artifact.verdict),
        message=None if artifact.message is None else artifact.message[:_MESSAGE_CHARS_MAX],
        media_type=artifact.mime,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
    )


def call_links(exchange: Exchange, outcome: CallOutcome) -> list[ResourceLink]:
    """The links to the files that a call stored for the user."""
    if outcome.response is None or not exchange.has_resource_links:
        return []
    stored = stored_files(outcome.response)
    return [
        file_link(outcome.handle.conversation, FilePath.from_physical(artifact.physical_path), _file_data(artifact))
        for artifact in stored[:LINKS_MAX]
    ]


def stored_files(response: ToolCallResponse) -> list[ArtifactResult]:
    """The files of a call that are stored for the user, in the order of the contract."""
    return [
        found for found in response.artifacts if found.hosted_uri is not None and found.visibility == "external"
    ]
