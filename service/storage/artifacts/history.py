"""The versions of files and of calls in the database."""

from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, select
from typing_extensions import override

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.port import FileHistory, StoredArtifact
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.conversation_rows import CONVERSATION, scope_values
from proofbox.service.storage.database import Database
from proofbox.service.storage.schema import artifacts

_NO_BOUND = 2**31 - 1
_VERSIONS = (
    select(artifacts)
    .where(
        artifacts.c.conversation == CONVERSATION,
        artifacts.c.turn == bindparam("of_turn"),
        artifacts.c.namespace == bindparam("of_namespace"),
        artifacts.c.rel == bindparam("of_rel"),
        artifacts.c.version < bindparam("before_version"),
    )
    .order_by(artifacts.c.version.desc())
    .limit(bindparam("rows_max"))
)
_MADE = (
    select(
        artifacts.c.id,
        func.row_number()
        .over(
            partition_by=(artifacts.c.turn, artifacts.c.namespace, artifacts.c.rel),
            order_by=artifacts.c.version.desc(),
        )
        .label("place"),
    )
    .where(artifacts.c.conversation == CONVERSATION, artifacts.c.tool_call_id == bindparam("call_id"))
    .subquery()
)
_OF_CALL = (
    select(artifacts)
    .join_from(artifacts, _MADE, artifacts.c.id == _MADE.c.id)
    .where(_MADE.c.place == 1, artifacts.c.removed.is_(None))
    .order_by(artifacts.c.turn, artifacts.c.namespace, artifacts.c.rel)
    .limit(bindparam("rows_max"))
)


class SqlFileHistory(FileHistory):
    """The FileHistory in the database.

    Args:
        database: the open database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @override
    async def versions(
        self, scope: ConversationKey, path: FilePath, before: int | None, limit: int
    ) -> list[StoredArtifact]:
        values = {
            **scope_values(scope),
            "of_turn": path.turn_id,
            "of_namespace": path.namespace.value,
            "of_rel": path.rel,
            "before_version": _NO_BOUND if before is None else before,
            "rows_max": limit,
        }

        def work(connection: Connection) -> list[StoredArtifact]:
            return [_build_stored(row) for row in connection.execute(_VERSIONS, values)]

        return await self._database.read(work)

    @override
    async def of_call(self, scope: ConversationKey, tool_call_id: str, limit: int) -> list[StoredArtifact]:
        values = {**scope_values(scope), "call_id": tool_call_id, "rows_max": limit}

        def work(connection: Connection) -> list[StoredArtifact]:
            return [_build_stored(row) for row in connection.execute(_OF_CALL, values)]

        return await self._database.read(work)


def _build_stored(row: Row[Any]) -> StoredArtifact:
    return StoredArtifact(
        path=FilePath(row.turn, Namespace(row.namespace), row.rel),
        version=row.version,
        size_bytes=row.size_bytes,
        sha256=row.sha256,
        mime=row.mime,
        visibility=row.visibility,
        description=row.description,
        created=row.created,
        removed=row.removed is not None,
        number=row.id,
        tool_call_id=row.tool_call_id,
    )
