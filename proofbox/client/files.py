"""Plans of files and conversations: upload, download that resumes, lists, timeline, deletion."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from proofbox.client.api import Api, target
from proofbox.client.errors import ArgumentError, DamagedDownloadError, NotFoundError, ProofboxError
from proofbox.client.exchange import (
    Deliver,
    NotConnected,
    Open,
    Plan,
    Read,
    Reply,
    Request,
    TransportFailure,
    read_all,
    send,
)
from proofbox.client.uploads import UploadSource
from proofbox.contracts.artifact_lists import PAGE_ARTIFACTS_MAX, ArtifactPage
from proofbox.contracts.conversations import PAGE_CONVERSATIONS_MAX, ConversationPage
from proofbox.contracts.logical_paths import parse
from proofbox.contracts.media_types import is_mime
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.timeline import PAGE_BLOCKS_MAX, TimelinePage
from proofbox.contracts.tool_call_response import Attachment

_OK = 200
_PARTIAL = 206
_ERROR_STATUS = 400
_SERVER_ERROR_STATUS = 500
_UNKNOWN_CODES = {"unknown_artifact", "unknown_conversation"}
_VERSIONS_SEARCHED = 50
_OCTET_STREAM = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Place:
    """What a download reads.

    Attributes:
        conversation: the conversation.
        path: the logical path.
        version: which version; None for the latest, or for the one with the hash.
        sha256: the hash of its bytes, if it is known.
    """

    conversation: str
    path: str
    version: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class AttachmentName:
    """Where an attachment is stored."""

    conversation: str
    turn: str
    name: str


def name_of(path: str) -> str:
    """The name of a logical path: of a file below its folder, of others the path itself without its prefix."""
    try:
        return FilePath.from_logical(path).rel
    except UnsafePathError:
        return path.partition(":")[2]


def logical_path(path: str) -> str:
    """The logical form of a path that the caller gave.

    Raises:
        ArgumentError: it is neither a logical nor a physical path.
    """
    try:
        if ":" in path.partition("/")[0]:
            parse(path)
            return path
        return FilePath.from_physical(path).logical
    except UnsafePathError:
        advice = "give fi:<turn_id>.files/<path> or <turn_id>/files/<path>"
        raise ArgumentError("path", f"{path[:80]!r} is neither a logical nor a physical path; {advice}") from None


def upload_file(
    api: Api, place: AttachmentName, source: UploadSource, media_type: str | None = None
) -> Plan[Attachment]:
    """Store a file as an attachment of a turn.

    Raises:
        ArgumentError: the media type is not one.
    """
    if media_type is not None and not is_mime(media_type):
        raise ArgumentError("media_type", f"{media_type!a} is not a media type such as text/csv")
    where = target("conversations", place.conversation, "turns", place.turn, "attachments", place.name)
    headers = {"Content-Type": media_type or _OCTET_STREAM}
    return api.parse(Attachment, (yield from api.request(Request("PUT", where, headers, source))))


def upload_files(api: Api, conversation: str, turn: str, sources: Mapping[str, UploadSource]) -> Plan[None]:
    """Store several files as attachments of a turn."""
    for name, source in sources.items():
        yield from upload_file(api, AttachmentName(conversation, turn, name), source)


def download_file(api: Api, place: Place) -> Plan[None]:
    """Deliver the bytes of a file; a lost connection is resumed where it ended.

    Raises:
        DamagedDownloadError: the bytes are not those of the file.
        ProofboxError: see `Api.request`.
    """
    attempts = api.attempts()
    received = _Received()
    version = place.version
    while True:
        try:
            reply: Reply = yield Open(Request("GET", _artifact(place, version), received.headers()))
            if reply.status not in {_OK, _PARTIAL}:
                yield from attempts.wait(api.error(replace(reply, body=(yield from read_all()))))
                continue
            if received.tag is None and place.sha256 and reply.headers.get("etag") != f'"{place.sha256}"':
                version = yield from _find_version(api, place, reply)
                continue
            received.begin(place, reply)
            # The same version from now on, also if another one is stored meanwhile.
            version = version or _number(reply.headers.get("artifact-version"))
            while piece := (yield Read()):
                # Bytes that are read again are no progress.
                if fresh := received.take(piece):
                    attempts.reset()
                    yield Deliver(fresh)
        except TransportFailure as exc:
            yield from attempts.wait(api.unreachable(exc))
        else:
            received.check(place)
            return


class _Received:
    """What has arrived of a file."""

    def __init__(self) -> None:
        self.tag: str | None = None
        self._size = 0
        self._repeated = 0
        self._digest = hashlib.sha256()

    def headers(self) -> dict[str, str]:
        """The headers that ask for the rest."""
        if not self._size or self.tag is None:
            return {}
        return {"Range": f"bytes={self._size}-", "If-Range": self.tag}

    def begin(self, place: Place, reply: Reply) -> None:
        tag = reply.headers.get("etag", "")
        if self.tag is not None and tag != self.tag:
            raise DamagedDownloadError(
                f"{place.path}: another version replaced the file while it was read; read it again"
            )
        self.tag = tag
        # What has no ranges is sent from its beginning.
        self._repeated = self._size if reply.status == _OK else 0

    def take(self, piece: bytes) -> bytes:
        fresh = piece[self._repeated :]
        self._repeated -= min(self._repeated, len(piece))
        self._size += len(fresh)
        self._digest.update(fresh)
        return fresh

    def check(self, place: Place) -> None:
        digest = self._digest.hexdigest()
        tag = (self.tag or "").strip('"')
        expected = place.sha256 or (tag if len(tag) == len(digest) else digest)
        if digest != expected:
            raise DamagedDownloadError(
                f"{place.path}: {self._size:,} bytes with another SHA-256 arrived; read it again"
            )


def _find_version(api: Api, place: Place, reply: Reply) -> Plan[int]:
    """The version that has the hash: a later call may have stored another one.

    Raises:
        DamagedDownloadError: none of the newest versions has it.
    """
    latest = _number(reply.headers.get("artifact-version")) or 1
    if place.version is None:
        for version in range(latest - 1, max(0, latest - 1 - _VERSIONS_SEARCHED), -1):
            found = yield from api.request(Request("HEAD", _artifact(place, version)))
            if found.headers.get("etag") == f'"{place.sha256}"':
                return version
    raise DamagedDownloadError(
        f"{place.path}: no stored version has the SHA-256 {place.sha256}; list the files again"
    )


def read_link(api: Api, conversation: str, path: str) -> Plan[str]:
    """Ask for a link to a file, which works without a key for a while."""
    where = target("conversations", conversation, "artifacts", *path.split("/"), link="1")
    reply = yield from api.request(Request("GET", where))
    link = reply.headers.get("location")
    if link is None:
        raise api.unexpected(reply, f"HTTP {reply.status} without a link")
    return link


def list_files(api: Api, conversation: str) -> Plan[None]:
    """Deliver every file and attachment of a conversation, in its latest version, the oldest first."""
    after = 0
    while True:
        where = target("conversations", conversation, "artifacts", after=after, limit=PAGE_ARTIFACTS_MAX)
        page = api.parse(ArtifactPage, (yield from api.request(Request("GET", where))))
        for listed in page.artifacts:
            yield Deliver(listed)
        after = page.last
        if not page.more:
            return


def list_conversations(api: Api) -> Plan[None]:
    """Deliver the caller's conversations, the newest first."""
    after: str | None = None
    while True:
        where = target("conversations", after=after, limit=PAGE_CONVERSATIONS_MAX)
        page = api.parse(ConversationPage, (yield from api.request(Request("GET", where))))
        for listed in page.conversations:
            yield Deliver(listed)
        after = page.next
        if after is None:
            return


def list_blocks(api: Api, conversation: str, after: int) -> Plan[None]:
    """Deliver the blocks of a timeline, the oldest first."""
    while True:
        where = target("conversations", conversation, "timeline", after=after, limit=PAGE_BLOCKS_MAX)
        page = api.parse(TimelinePage, (yield from api.request(Request("GET", where))))
        for block in page.blocks:
            yield Deliver(block)
        after = page.last
        if not page.more:
            return


def read_timeline_text(api: Api, conversation: str, after: int) -> Plan[str]:
    """Ask for the text of a timeline that a model reads."""
    where = target("conversations", conversation, "timeline", view="rendered", after=after)
    reply = yield from api.request(Request("GET", where))
    return reply.body.decode()


def delete_file(api: Api, conversation: str, path: str) -> Plan[None]:
    """Delete a file, all its versions."""
    yield from _delete(api, _artifact(Place(conversation, path), None))


def delete_conversation(api: Api, conversation: str) -> Plan[None]:
    """Delete a conversation with all that it has."""
    yield from _delete(api, target("conversations", conversation))


def _delete(api: Api, where: str) -> Plan[None]:
    """Delete until it is answered: "not found" is success if an attempt without an answer may have deleted it."""
    attempts = api.attempts()
    may_be_deleted = False
    while True:
        try:
            reply = yield from send(Request("DELETE", where))
        except TransportFailure as exc:
            error: ProofboxError = api.unreachable(exc)
            may_be_deleted = may_be_deleted or not isinstance(exc, NotConnected)
        else:
            if reply.status < _ERROR_STATUS:
                return
            error = api.error(reply)
            if may_be_deleted and isinstance(error, NotFoundError) and error.code in _UNKNOWN_CODES:
                return
            may_be_deleted = may_be_deleted or reply.status >= _SERVER_ERROR_STATUS
        yield from attempts.wait(error)


def _artifact(place: Place, version: int | None) -> str:
    return target("conversations", place.conversation, "artifacts", *place.path.split("/"), version=version)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() else None
