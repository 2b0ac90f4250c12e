"""The result of an MCP server's tool as a model gets it: cleaned, without secrets, its files apart."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.media_types import OCTET_STREAM, canonical_mime, is_mime
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool
from proofbox.service.gateway.mcp.port import EncodedFile, McpFailedError, ServerAnswer
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import ERROR_CHARACTERS_MAX, clean_json
from proofbox.service.gateway.schema_check import SchemaRefusedError, check_schema
from proofbox.service.web.port import clean_text

FILES_MAX = 16
LINKS_MAX = 100
_LINK_CHARACTERS_MAX = 2_048


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file of a result.

    Attributes:
        content: its bytes.
        mime: its media type.
    """

    content: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class ReadResult:
    """A result, without secrets.

    Attributes:
        data: the structured result, else the texts.
        files: pictures, sounds and files.
        links: resources that the server names; nobody fetched them.
    """

    data: Any
    files: Sequence[ReadFile]
    links: Sequence[dict[str, str]]

    def as_ret(self, stored: Sequence[dict[str, Any]]) -> Any:
        """The result of the call: the data alone, or beside its files and links.

        Args:
            stored: the files as results name them.
        """
        if not self.files and not self.links:
            return self.data
        found: dict[str, Any] = {"data": self.data}
        if stored:
            found["files"] = list(stored)
        if self.links:
            found["links"] = list(self.links)
        return found


def read_answer(answer: ServerAnswer, tool: PinnedTool, redactor: Redactor, bytes_max: int) -> ReadResult:
    """Read the answer of a server. Takes time, so it belongs into a thread.

    Args:
        answer: the answer.
        tool: the tool, whose ``output_schema`` a structured result fits.
        redactor: removes the secrets of the server.
        bytes_max: the largest data as JSON.

    Raises:
        McpFailedError: ``mcp_tool_error``: the tool failed, or the result does not fit; ``response_too_large``.
    """
    if answer.is_error:
        text = _text(answer.texts, redactor).strip()
        raise _failed(f"the tool failed: {text}" if text else "the tool failed without a text")
    if answer.has_structured:
        try:
            data = redactor.redact_json(clean_json(answer.structured))
        except RecursionError as exc:
            raise _failed("the structured result is nested too deep") from exc
        except ValueError as exc:
            raise _failed(f"the structured result is {exc}") from exc
        _check_output(tool, answer.structured, data)
    elif tool.output_schema is not None:
        raise _failed("the result has no structured part, although the tool has an output schema")
    else:
        data = _text(answer.texts, redactor)
    size = len(compact_json(data).encode(errors="replace"))
    if size > bytes_max:
        raise McpFailedError(
            GatewayCode.RESPONSE_TOO_LARGE, f"the result has {size:,} bytes as JSON (limit {bytes_max:,})"
        )
    if len(answer.files) > FILES_MAX:
        raise McpFailedError(
            GatewayCode.RESPONSE_TOO_LARGE, f"the result has {len(answer.files)} files (limit {FILES_MAX})"
        )
    files = [_file(file, redactor) for file in answer.files]
    return ReadResult(data, files, [_link(link, redactor) for link in answer.links[:LINKS_MAX]])


def _check_output(tool: PinnedTool, value: Any, shown: Any) -> None:
    """Requires that a structured result fits; by our validator, whose patterns run in linear time.

    Args:
        tool: the tool.
        value: the result as it came.
        shown: the result without secrets. What does not fit is read from it: messages cut what they repeat, and a
            part of a secret would not be removed.

    Raises:
        McpFailedError: it does not.
    """
    if tool.output_schema is None:
        return
    try:
        schema = check_schema(tool.output_schema)
    except SchemaRefusedError as exc:
        raise _failed(f"its output schema is refused: {exc.message}") from exc
    if not schema.check(value, "result"):
        return
    errors = schema.check(shown, "result")
    why = f": {errors[0].field}: {errors[0].message}" if errors else ""
    raise _failed(f"the result does not fit the tool's output schema{why}")


def _file(file: EncodedFile, redactor: Redactor) -> ReadFile:
    try:
        content = base64.b64decode(file.content, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise _failed("a file of the result is not base64") from exc
    mime = canonical_mime(file.mime)
    is_shown = is_mime(mime) and redactor.redact_text(mime) == mime and redactor.redact_text(file.mime) == file.mime
    return ReadFile(redactor.redact_bytes(content), mime if is_shown else OCTET_STREAM)


def _link(link: dict[str, Any], redactor: Redactor) -> dict[str, str]:
    return {
        name: redactor.redact_text(clean_text(value))[:_LINK_CHARACTERS_MAX]
        for name, value in link.items()
        if isinstance(value, str)
    }


def shown_reason(message: str, redactor: Redactor) -> str:
    """A message of `McpFailedError` as anybody may see it: cleaned and without secrets before it is cut."""
    return _text([message], redactor)[:ERROR_CHARACTERS_MAX]


def _text(texts: Sequence[str], redactor: Redactor) -> str:
    # Before and after: a secret may have controls of its own, and a server may put controls into one.
    return redactor.redact_text(clean_text(redactor.redact_text("\n".join(texts))))


def _failed(message: str) -> McpFailedError:
    return McpFailedError(GatewayCode.MCP_TOOL_ERROR, message)
