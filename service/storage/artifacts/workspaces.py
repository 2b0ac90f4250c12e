"""The workspaces of conversations: the part of the artifact store that reads them, and lets one call hold one.

They are saved together with the files of their calls, see `proofbox.service.storage.artifacts.store`.
"""

import asyncio
import logging
import random
from abc import abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from typing_extensions import override

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.port import ArtifactStore, NewArtifact, NewWorkspace, StoredWorkspace
from proofbox.service.calls.claim import CURRENT_CLAIM, ClaimId
from proofbox.service.errors import OurError, StoreFailedError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts import workspace_rows
from proofbox.service.storage.artifacts.key_locks import KeyLocks
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.workspace_holds import leave_workspace, take_workspace

_LOOK_AGAIN_S = 0.05

log = logging.getLogger("proofbox.artifacts")


class SqlWorkspaces(ArtifactStore):
    """The methods of the port ``ArtifactStore`` that concern workspaces."""

    _database: Database
    _locks: KeyLocks

    @abstractmethod
    async def _fetch(self, hashes: Sequence[str], staging: Path) -> list[Path]:
        """Local files with the bytes of these hashes."""

    @override
    @asynccontextmanager
    async def hold_workspace(self, scope: ConversationKey) -> AsyncIterator[None]:
        who = scope.principal
        name = repr((who.tenant, who.project, who.user_type, who.user, scope.conversation_id))
        async with self._locks.held([name]):
            claim = CURRENT_CLAIM.get()
            if claim is None:  # no other process runs calls
                yield
                return
            while not await self._database.write(lambda connection: take_workspace(connection, claim)):  # noqa: ASYNC110 - of another process
                await asyncio.sleep(_LOOK_AGAIN_S * random.uniform(0.5, 1.5))  # noqa: S311 - no secret
            try:
                yield
            finally:
                await self._leave_workspace(claim)

    async def _leave_workspace(self, claim: ClaimId) -> None:
        try:
            await self._database.write(lambda connection: leave_workspace(connection, claim))
        except OurError as exc:
            log.warning("a call has the workspace of its conversation until it has ended: %s", exc)

    @override
    async def newest_number(self, scope: ConversationKey) -> int:
        return await self._database.read(lambda connection: workspace_rows.newest_artifact(connection, scope))

    @override
    async def workspace(self, scope: ConversationKey, number: int | None = None) -> StoredWorkspace | None:
        return await self._database.read(lambda connection: workspace_rows.find(connection, scope, number))

    @override
    async def fetch_workspace(self, scope: ConversationKey, workspace: StoredWorkspace, staging: Path) -> Path:
        stored = await self.workspace(scope, workspace.number)
        if stored is None:
            raise StoreFailedError(f"workspace {workspace.number} is not stored in this conversation")
        (fetched,) = await self._fetch([stored.sha256], staging)
        return fetched


def workspace_blob(workspace: NewWorkspace) -> NewArtifact:
    """A workspace as the byte side takes it; the path is for its errors."""
    return NewArtifact(
        path=FilePath(workspace.turn_id, Namespace.FILES, "workspace"),
        source=workspace.source,
        size_bytes=workspace.size_bytes,
        sha256=workspace.sha256,
        mime="application/octet-stream",
        visibility="internal",
        description="",
        tool_call_id=workspace.tool_call_id,
    )
