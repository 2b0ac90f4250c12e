"""Files of a conversation: lists, texts, links in both directions, and resources."""

import base64
from collections.abc import AsyncIterator, Sequence
from urllib.parse import unquote, urlsplit

from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, ReadResourceResult, TextResourceContents

from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.tool_call_response import Attachment
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.routes.download_links import own_link
from proofbox.service.api.services import Services
from proofbox.service.artifacts.attachments import UploadTarget, parse_attachment_path
from proofbox.service.artifacts.port import DamagedBytesError, StoredArtifact
from proofbox.service.errors import BodyTooLargeError, UnknownArtifactError
from proofbox.service.identity import ConversationKey
from proofbox.service.mcp.arguments import (
    INLINE_BYTES_MAX,
    FileArguments,
    GivenFile,
    ListFilesArguments,
    UploadArguments,
)
from proofbox.service.mcp.errors import unknown_resource
from proofbox.service.mcp.exchange import Exchange, new_conversation
from proofbox.service.mcp.options import TURN_ID
from proofbox.service.mcp.results import (
    FileData,
    FilesData,
    LinkData,
    build_result,
    file_link,
    file_uri,
    text_block,
)
from proofbox.service.visible_text import visible_line

TEXT_RESOURCE_BYTES_MAX = 256 * 1024
BLOB_RESOURCE_BYTES_MAX = 512 * 1024
"""As base64 it is within the bound of a result."""
_SCHEME = "proofbox"


class ConversationFiles:
    """The files of conversations, for MCP clients.

    Args:
        services: the services of the routes.
    """

    def __init__(self, services: Services) -> None:
        self._services = services

    async def list_files(self, exchange: Exchange, arguments: ListFilesArguments) -> CallToolResult:
        """List files, the oldest first."""
        exchange.caller.require(Permission.ARTIFACTS_READ)
        scope = exchange.scope(arguments.conversation)
        rows = await self._services.artifacts.listed(scope, arguments.after, arguments.limit + 1)
        shown = rows[: arguments.limit]
        data = FilesData(
            conversation=arguments.conversation,
            files=[_file_data(stored) for _, stored in shown],
            last=shown[-1][0] if shown else arguments.after,
            more=len(rows) > len(shown),
        )
        lines = [_line(stored) for _, stored in shown] or ["The conversation has no files."]
        if data.more:
            lines.append(f"There are more: call list_files with after={data.last}.")
        return build_result([text_block("\n".join(lines))], data)

    async def find(self, scope: ConversationKey, path: str) -> StoredArtifact:
        """Return the latest version of a file.

        Raises:
            UnknownArtifactError: the conversation has no such file.
        """
        text = path
        if path.startswith(f"{_SCHEME}://"):
            text = unquote(urlsplit(path).path.lstrip("/"))
        found = await self._services.paths.for_call(scope, TURN_ID).find_file(text)
        if found is None or found.stored is None:
            raise UnknownArtifactError(
                f"path: '{visible_line(path[:200])}' is not in the conversation; list_files shows what it has"
            )
        return found.stored

    async def download_link(self, exchange: Exchange, arguments: FileArguments) -> CallToolResult:
        """Create a link to the latest version of a file."""
        exchange.caller.require(Permission.ARTIFACTS_READ)
        scope = exchange.scope(arguments.conversation)
        stored = await self.find(scope, arguments.path)
        url = await self._services.artifacts.link(scope, stored)
        if url is None:
            url = await own_link(self._services, scope, stored)
        url = f"{exchange.base_url}{url}" if url.startswith("/") else url
        data = LinkData(
            conversation=arguments.conversation,
            path=stored.path.physical,
            url=url,
            expires_s=self._services.uploads.link_s,
        )
        text = (
            f"Download link for {_line(stored)}, works {data.expires_s} s for everyone who has it; give it to "
            f"the user "
            f"exactly as it is:\n{url}"
        )
        blocks: list[ContentBlock] = [text_block(text)]
        if exchange.has_resource_links:
            link = file_link(arguments.conversation, stored.path, _file_data(stored), stored.description)
            blocks.append(link.model_copy(update={"uri": url}))
        return build_result(blocks, data)

    async def upload_link(self, exchange: Exchange, arguments: UploadArguments) -> CallToolResult:
        """Create a link by which a file is uploaded."""
        exchange.caller.require(Permission.ARTIFACTS_WRITE)
        conversation = arguments.conversation or new_conversation()
        bytes_max = self._services.attachments.bytes_max
        scope = exchange.scope(conversation)
        latest = await self._services.artifacts.latest(scope, parse_attachment_path(TURN_ID, arguments.name))
        target = UploadTarget(
            scope,
            TURN_ID,
            arguments.name,
            bytes_max,
            exchange.meter.allowed.stored_bytes or 0,
            0 if latest is None else latest.number,
            exchange.caller.own,
        )
        data = LinkData(
            conversation=conversation,
            path=f"{TURN_ID}/attachments/{arguments.name}",
            url=f"{exchange.base_url}/v1/uploads/{self._services.uploads.make(target)}",
            expires_s=self._services.uploads.link_s,
            bytes_max=bytes_max,
        )
        text = (
            f"Upload link for {arguments.name} in conversation {conversation}: the file goes by PUT, works "
            f"{data.expires_s} s for one version, at most {bytes_max} bytes, no key needed:\n"
            f"curl -T '{_shell_quoted(arguments.name)}' '{data.url}'\n"
            f"Programs of the conversation then open it as {arguments.name}."
        )
        return build_result([text_block(text)], data)

    async def store(self, exchange: Exchange, conversation: str, files: Sequence[GivenFile]) -> list[Attachment]:
        """Store files that stand in arguments as attachments.

        Raises:
            BodyTooLargeError: they are too large together.
            InvalidArgumentsError: one is not base64.
            ServiceError: a name is refused, or the store failed.
        """
        if not files:
            return []
        exchange.caller.require(Permission.CALLS_RUN)
        exchange.caller.require(Permission.ARTIFACTS_WRITE)
        contents = [file.content() for file in files]
        if (total := sum(map(len, contents))) > INLINE_BYTES_MAX:
            raise BodyTooLargeError(
                f"files: too large (limit {INLINE_BYTES_MAX} bytes together, got {total}); use get_upload_link"
            )
        scope = exchange.scope(conversation)
        return [
            (await self._services.attachments.store(scope, TURN_ID, file.name, _one(content), None)).attachment
            for file, content in zip(files, contents, strict=True)
        ]

    async def read_resource(self, exchange: Exchange, uri: str) -> ReadResourceResult:
        """Read a file as a resource.

        Raises:
            MCPError: the resource does not exist, or is too large for an answer.
            MissingPermissionError: the key may not read files.
            StoreFailedError: the store failed.
        """
        exchange.caller.require(Permission.ARTIFACTS_READ)
        try:
            parts = urlsplit(uri)
        except ValueError as exc:
            raise unknown_resource(uri) from exc
        if parts.scheme != _SCHEME or not parts.netloc:
            raise unknown_resource(uri)
        scope = exchange.scope(unquote(parts.netloc))
        try:
            stored = await self._named(scope, unquote(parts.path.lstrip("/")))
        except UnknownArtifactError as exc:
            raise unknown_resource(uri) from exc
        is_text = _is_text(stored.mime)
        limit = TEXT_RESOURCE_BYTES_MAX if is_text else BLOB_RESOURCE_BYTES_MAX
        if stored.size_bytes > limit:
            raise BodyTooLargeError(
                f"uri: the file is too large to be read as a resource (limit {limit} bytes, has "
                f"{stored.size_bytes}); "
                "use get_download_link, or read_file with lines"
            )
        try:
            [content] = await self._services.artifacts.contents(scope, [stored])
        except DamagedBytesError as exc:
            raise unknown_resource(uri) from exc
        address = file_uri(scope.conversation_id, stored.path)
        try:
            if is_text:
                text = TextResourceContents(uri=address, mime_type=stored.mime, text=content.decode())
                return ReadResourceResult(contents=[text])
        except UnicodeDecodeError:
            pass
        blob = base64.b64encode(content).decode()
        return ReadResourceResult(contents=[BlobResourceContents(uri=address, mime_type=stored.mime, blob=blob)])

    async def _named(self, scope: ConversationKey, text: str) -> StoredArtifact:
        """The very file of a physical path, of another one what it names. Raises as `find`."""
        try:
            stored = await self._services.artifacts.latest(scope, FilePath.from_physical(text))
        except UnsafePathError:
            stored = None
        return stored or await self.find(scope, text)


def _is_text(mime: str) -> bool:
    return (
        mime.startswith("text/")
        or mime in {"application/json", "image/svg+xml"}
        or mime.endswith(("+json", "+xml"))
    )


def _file_data(stored: StoredArtifact) -> FileData:
    return FileData(
        path=stored.path.physical, media_type=stored.mime, size_bytes=stored.size_bytes, sha256=stored.sha256
    )


def _line(stored: StoredArtifact) -> str:
    return visible_line(f"{stored.path.physical} ({stored.mime}, {stored.size_bytes} bytes)")


def _shell_quoted(name: str) -> str:
    return name.replace("'", "'\\''")


async def _one(content: bytes) -> AsyncIterator[bytes]:
    yield content
