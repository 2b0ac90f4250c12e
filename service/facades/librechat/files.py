"""The files of sessions, as files of conversations.

A session is the conversation ``librechat:<session>`` of its owner. What was uploaded to it are attachments of the
turn ``turn_uploads``, what a run left are files of ``turn_1``.
"""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from proofbox.contracts.paths import FilePath, Namespace, UnsafePathError, relative_path
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.port import ArtifactStore, StoredArtifact
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.ids import (
    READ_ONLY_TURN,
    RUN_TURN,
    UPLOADS_TURN,
    conversation_of,
    file_id,
)
from proofbox.service.identity import ConversationKey, Principal


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A file of a session.

    Attributes:
        session: the id of the session.
        scope: its conversation.
        artifact: the latest version of the file.
    """

    session: str
    scope: ConversationKey
    artifact: StoredArtifact

    @property
    def id(self) -> str:
        """Its id."""
        return file_id(self.session, self.artifact.path)

    @property
    def name(self) -> str:
        """Its name, which may have folders."""
        return self.artifact.path.rel

    @property
    def is_read_only(self) -> bool:
        """Whether it is never given back as output of a run."""
        return self.artifact.path.turn_id == READ_ONLY_TURN

    @property
    def object_name(self) -> str:
        """The name of its object: session, id and extension."""
        return f"{self.session}/{self.id}{PurePosixPath(self.name).suffix}"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on its way into a session.

    Attributes:
        name: its name, which may have folders.
        content: its bytes, in pieces.
        mime: its media type; None to go by the name.
        is_read_only: whether it is never given back as output of a run.
    """

    name: str
    content: AsyncIterator[bytes]
    mime: str | None
    is_read_only: bool


class SessionFiles:
    """Stores and finds files of sessions."""

    def __init__(self, artifacts: ArtifactStore, attachments: Attachments) -> None:
        self._artifacts = artifacts
        self._attachments = attachments

    async def store(self, owner: Principal, session: str, upload: Upload) -> SessionFile:
        """Store an uploaded file.

        Raises:
            RefusedError: the name is not a safe path.
            BodyTooLargeError: the file is too large.
            StoreFailedError, StoreFullError: the store failed.
        """
        turn = READ_ONLY_TURN if upload.is_read_only else UPLOADS_TURN
        path = safe_path("filename", turn, upload.name, Namespace.ATTACHMENTS)
        scope = ConversationKey(owner, conversation_of(session))
        await self._attachments.store_at(scope, path, upload.content, upload.mime)
        stored = await self._artifacts.latest(scope, path)
        if stored is None:
            raise AssertionError("a file that was just stored is there")
        return SessionFile(session, scope, stored)

    async def all(self, owner: Principal, session: str) -> list[SessionFile]:
        """Return all files of a session.

        Raises:
            StoreFailedError: the store failed.
        """
        scope = ConversationKey(owner, conversation_of(session))
        found: list[SessionFile] = []
        for turn in (UPLOADS_TURN, READ_ONLY_TURN, RUN_TURN):
            stored = await self._artifacts.of_turn(scope, turn)
            found += (SessionFile(session, scope, artifact) for artifact in _shown(stored))
        return found

    async def find(self, owner: Principal, session: str, wanted: str) -> SessionFile | None:
        """Return the file of a session that has an id, if there is one.

        Raises:
            StoreFailedError: the store failed.
        """
        return next((file for file in await self.all(owner, session) if file.id == wanted), None)


def is_output(rel: str) -> bool:
    """Whether a file that a run left is an output: hidden files and bytecode are not."""
    return not any(segment.startswith(".") or segment == "__pycache__" for segment in rel.split("/"))


def safe_path(field: str, turn_id: str, name: str, namespace: Namespace = Namespace.FILES) -> FilePath:
    """Return the path of a file by the name that a client gave.

    Raises:
        RefusedError: the name is empty, absolute, leads outside or has control characters.
    """
    try:
        return FilePath(turn_id, namespace, relative_path(name))
    except UnsafePathError as exc:
        raise RefusedError(f"{field}: {exc}") from exc


def _shown(stored: list[StoredArtifact]) -> Iterator[StoredArtifact]:
    for artifact in stored:
        is_upload = artifact.path.namespace is Namespace.ATTACHMENTS
        is_hosted = artifact.hosted_uri is not None  # else the process ended before it was, and no run can get it
        if is_hosted and not artifact.removed and (is_upload or is_output(artifact.path.rel)):
            yield artifact
