"""The rows of artifacts: versions of files, and the journal of saves.

Every function takes a connection in a transaction of its caller and returns plain values.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Literal

from sqlalchemy import Connection, Row, Select, bindparam, delete, func, null, select, update
from sqlalchemy import insert as inserting

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.port import DeletedFile, EarlierVersion, NewArtifact, SaveLostError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.conversation_rows import CONVERSATION, DELETED, scope_values, utc_now
from proofbox.service.storage.database import require_rows
from proofbox.service.storage.schema import (
    artifacts,
    conversations,
    deleted_files,
    principals,
    unfinished,
    workspaces,
)
from proofbox.service.storage.text_columns import storable

_SAME_PATH = (
    artifacts.c.turn == bindparam("of_turn"),
    artifacts.c.namespace == bindparam("of_namespace"),
    artifacts.c.rel == bindparam("of_rel"),
)
_VERSIONS = select(artifacts).where(artifacts.c.conversation == CONVERSATION, *_SAME_PATH)
_LATEST = _VERSIONS.order_by(artifacts.c.version.desc()).limit(1)
_VERSION = _VERSIONS.where(artifacts.c.version == bindparam("of_version"))
_AMONG_PATHS = (
    artifacts.c.turn == bindparam("of_turn"),
    artifacts.c.namespace == bindparam("of_namespace"),
    artifacts.c.rel.in_(bindparam("of_rels", expanding=True)),
)
_THESE = select(artifacts).where(
    artifacts.c.conversation == CONVERSATION,
    *_AMONG_PATHS,
    artifacts.c.version.in_(bindparam("of_versions", expanding=True)),
)
_DELETED_NEWEST = select(
    deleted_files.c.rel, deleted_files.c.version, null().label("id"), null().label("tool_call_id")
).where(
    deleted_files.c.conversation == bindparam("in_conversation"),
    deleted_files.c.turn == bindparam("of_turn"),
    deleted_files.c.namespace == bindparam("of_namespace"),
    deleted_files.c.rel.in_(bindparam("of_rels", expanding=True)),
)
_DELETIONS = select(deleted_files).where(deleted_files.c.conversation == CONVERSATION)
_ADDED = inserting(artifacts).inline()
_PATHS_AT_ONCE = 500  # a statement takes tens of thousands of values, and not more
_HOSTED = (
    select(artifacts)
    .join_from(artifacts, conversations)
    .join(principals)
    .where(artifacts.c.hosted_name == bindparam("of_name"), principals.c.tenant != DELETED)
    .order_by(artifacts.c.version.desc())
    .limit(1)
)
_HOSTED_IN = _HOSTED.where(
    principals.c.tenant == bindparam("scope_tenant"),
    principals.c.project == bindparam("scope_project"),
)
_HOSTED_NAMES = (
    select(artifacts.c.rel)
    .distinct()
    .where(
        artifacts.c.conversation == CONVERSATION,
        artifacts.c.namespace == Namespace.FILES.value,
        artifacts.c.rel.in_(bindparam("of_rels", expanding=True)),
        artifacts.c.hosted_name.is_not(None),
    )
)
_STORED_BYTES = tuple(
    select(func.coalesce(func.sum(table.c.size_bytes), 0))
    .join_from(table, conversations)
    .join(principals)
    .where(
        principals.c.tenant == bindparam("scope_tenant"),
        principals.c.project == bindparam("scope_project"),
    )
    for table in (artifacts, workspaces)
)
_NUMBERED = (
    select(
        artifacts,
        conversations.c.name.label("conversation_name"),
        principals.c.tenant,
        principals.c.project,
        principals.c.user_type,
        principals.c.user,
    )
    .join_from(artifacts, conversations)
    .join(principals)
    .where(artifacts.c.id == bindparam("of_number"))
)
_LATER = artifacts.alias("later")
_IS_LATEST = (
    ~select(_LATER.c.id)
    .where(
        *(_LATER.c[name] == artifacts.c[name] for name in ("conversation", "turn", "namespace", "rel")),
        _LATER.c.version > artifacts.c.version,
    )
    .exists()
)
_NEWEST_HOSTED = (
    select(artifacts)
    .join_from(artifacts, conversations)
    .join(principals)
    .where(
        artifacts.c.hosted_name.in_(bindparam("of_names", expanding=True)),
        principals.c.tenant != DELETED,
        _IS_LATEST,
    )
)
_NEWEST = (
    select(artifacts.c.rel, artifacts.c.version, artifacts.c.id, artifacts.c.tool_call_id)
    .where(artifacts.c.conversation == bindparam("in_conversation"), *_AMONG_PATHS, _IS_LATEST)
    .union_all(_DELETED_NEWEST)
    .order_by("version")  # versions after a deletion have higher numbers
)
_OF_TURN = select(artifacts).where(
    artifacts.c.conversation == CONVERSATION, artifacts.c.turn == bindparam("of_turn"), _IS_LATEST
)
_LISTED = (
    select(artifacts)
    .where(artifacts.c.conversation == CONVERSATION, artifacts.c.id > bindparam("after_number"), _IS_LATEST)
    .order_by(artifacts.c.id)
    .limit(bindparam("rows_max"))
)
_SAME_CONVERSATION = artifacts.alias("same_conversation")
# The last row of a name is its newest version, or its removal: numbers rise with every version of every turn.
_NEWEST_OF_NAMES = (
    select(artifacts)
    .where(
        artifacts.c.id.in_(
            select(func.max(_SAME_CONVERSATION.c.id))
            .where(_SAME_CONVERSATION.c.conversation == CONVERSATION)
            .group_by(_SAME_CONVERSATION.c.rel)
        )
    )
    .order_by(artifacts.c.id.desc())
    .limit(bindparam("at_most"))
)
_REMOVED = (
    update(artifacts)
    .where(
        artifacts.c.conversation == CONVERSATION,
        *_SAME_PATH,
        artifacts.c.version == bindparam("of_version"),
    )
    .values(removed=bindparam("at"))
)
_BEGUN = inserting(unfinished).inline()
_ENDED = delete(unfinished).where(unfinished.c.save == bindparam("of_save"))
_NAMES_ENDED = _ENDED.where(unfinished.c.name.in_(bindparam("of_names", expanding=True)))
_UNFINISHED = select(unfinished.c.save, unfinished.c.name).order_by(unfinished.c.save, unfinished.c.name)
_WANTED = select(
    select(artifacts.c.id).where(artifacts.c.sha256 == bindparam("of_sha256")).exists()
    | select(workspaces.c.id).where(workspaces.c.sha256 == bindparam("of_sha256")).exists()
    | select(unfinished.c.id)
    .where(unfinished.c.name == bindparam("of_name"), unfinished.c.save != bindparam("of_save"))
    .exists()
)


@dataclass(frozen=True, slots=True)
class ArtifactRow:
    """One version of a file, as the database has it.

    Attributes:
        path: its path.
        version: 1 for the first.
        sha256: the SHA-256 of its bytes, in hex.
        size_bytes: its size.
        mime: its media type.
        visibility: ``external`` or ``internal``.
        description: what it is.
        created: when: UTC, RFC 3339, ``Z``.
        hosted_name: under which name the byte side hosts it; None for internal files.
        removed: whether a program removed the file from its turn.
        number: its number among all versions that are stored; no part of what it is.
        tool_call_id: the call that made it; None for an attachment.
    """

    path: FilePath
    version: int
    sha256: str
    size_bytes: int
    mime: str
    visibility: Literal["external", "internal"]
    description: str
    created: str
    hosted_name: str | None
    removed: bool = False
    number: int = field(default=0, compare=False)
    tool_call_id: str | None = field(default=None, compare=False)


# ---- saves that are under way ----


def begin_save(connection: Connection, save: str, names: Iterable[str]) -> None:
    """Record what a save is about to put into the store (``blobs/<sha256>``, ``hosted/<hosted name>``)."""
    connection.execute(_BEGUN, [{"save": save, "name": name} for name in names])


def end_save(connection: Connection, save: str, names: int) -> None:
    """Remove a save from the journal, which has so many names of it: it is complete.

    Raises:
        SaveLostError: another process undid the save; its bytes may be gone. Here, or before the commit.
    """
    lost = partial(SaveLostError, "another process took this one for lost, and undid the save; try again")
    require_rows(connection, _ENDED, {"of_save": save}, names, lost)


def end_names(connection: Connection, save: str, names: Sequence[str]) -> None:
    """Remove some names of a save from the journal: what they stand for is undone."""
    connection.execute(_NAMES_ENDED, {"of_save": save, "of_names": list(names)})


def unfinished_saves(connection: Connection) -> dict[str, list[str]]:
    """Return the saves in the journal, each with its names."""
    saves: dict[str, list[str]] = {}
    for save, name in connection.execute(_UNFINISHED):
        saves.setdefault(save, []).append(name)
    return saves


def is_wanted(connection: Connection, sha256: str, save: str) -> bool:
    """Whether a version has these bytes, or a save other than ``save`` is about to."""
    values = {"of_sha256": sha256, "of_name": f"blobs/{sha256}", "of_save": save}
    return bool(connection.execute(_WANTED, values).scalar_one())


# ---- versions ----


def insert(
    connection: Connection, conversation: int, new: Sequence[tuple[NewArtifact, str | None]]
) -> list[tuple[ArtifactRow, EarlierVersion | None]]:
    """Add the next versions of the artifacts' paths, and return them, each with the version before it.

    Of two with one path the later gets the later version.

    Args:
        connection: the database.
        conversation: its number.
        new: the files, each with the name under which it is hosted; None exactly for an internal file.
    """
    if not new:
        return []
    newest = _newest(connection, conversation, [artifact.path for artifact, _ in new])
    made, follows = [], []
    for artifact, hosted_name in new:
        version, earlier = newest.get(artifact.path, (0, None))
        number = version + 1
        newest[artifact.path] = (number, None)
        follows.append(earlier)
        row = ArtifactRow(
            path=artifact.path,
            version=number,
            sha256=artifact.sha256,
            size_bytes=artifact.size_bytes,
            mime=artifact.mime,
            visibility=artifact.visibility,
            description=storable(artifact.description),
            created=utc_now(),
            hosted_name=hosted_name,
        )
        made.append(row)
    connection.execute(
        _ADDED,
        [
            {
                "conversation": conversation,
                "turn": row.path.turn_id,
                "namespace": row.path.namespace.value,
                "rel": row.path.rel,
                "version": row.version,
                "sha256": row.sha256,
                "size_bytes": row.size_bytes,
                "mime": row.mime,
                "visibility": row.visibility,
                "description": row.description,
                "tool_call_id": artifact.tool_call_id,
                "created": row.created,
                "hosted_name": row.hosted_name,
            }
            for row, (artifact, _) in zip(made, new, strict=True)
        ],
    )
    return list(zip(made, follows, strict=True))


def _newest(
    connection: Connection, conversation: int, paths: Iterable[FilePath]
) -> dict[FilePath, tuple[int, EarlierVersion | None]]:
    """The latest versions of those paths that have one, or had one that was deleted."""
    newest = {}
    for where, group in _group_paths(paths):
        values = {"in_conversation": conversation, **where, "of_rels": group}
        for row in connection.execute(_NEWEST, values):
            path = FilePath(where["of_turn"], Namespace(where["of_namespace"]), row.rel)
            earlier = None if row.id is None else EarlierVersion(row.id, row.tool_call_id)
            newest[path] = (row.version, earlier)
    return newest


def _group_paths(paths: Iterable[FilePath]) -> Iterator[tuple[dict[str, str], list[str]]]:
    """The paths below each turn and namespace, as many as a statement takes."""
    groups: dict[tuple[str, str], dict[str, None]] = {}
    for path in paths:
        groups.setdefault((path.turn_id, path.namespace.value), {})[path.rel] = None
    for (turn, namespace), rels in groups.items():
        left = iter(rels)
        while group := list(islice(left, _PATHS_AT_ONCE)):
            yield {"of_turn": turn, "of_namespace": namespace}, group


def latest(connection: Connection, scope: ConversationKey, path: FilePath) -> ArtifactRow | None:
    """The latest version of a path, if there is one."""
    return _one(connection, _LATEST, {**scope_values(scope), **_path_values(path)})


def version(connection: Connection, scope: ConversationKey, path: FilePath, number: int) -> ArtifactRow | None:
    """That version of a path in this conversation, if there is one."""
    return _one(connection, _VERSION, {**scope_values(scope), **_path_values(path), "of_version": number})


def versions(
    connection: Connection, scope: ConversationKey, wanted: Iterable[tuple[FilePath, int]]
) -> dict[tuple[FilePath, int], ArtifactRow]:
    """Those of some versions that this conversation has."""
    requested = set(wanted)
    numbers: dict[FilePath, list[int]] = {}
    for path, number in requested:
        numbers.setdefault(path, []).append(number)
    found = {}
    for where, group in _group_paths(numbers):
        of = (FilePath(where["of_turn"], Namespace(where["of_namespace"]), rel) for rel in group)
        among = sorted({number for path in of for number in numbers[path]})
        for start in range(0, len(among), _PATHS_AT_ONCE):
            few = among[start : start + _PATHS_AT_ONCE]
            values = {**scope_values(scope), **where, "of_rels": group, "of_versions": few}
            for row in map(_row, connection.execute(_THESE, values)):
                found[row.path, row.version] = row
    return {each: row for each, row in found.items() if each in requested}


def of_turn(connection: Connection, scope: ConversationKey, turn_id: str) -> list[ArtifactRow]:
    """The latest versions of all files and attachments of a turn, in no order."""
    return [_row(row) for row in connection.execute(_OF_TURN, {**scope_values(scope), "of_turn": turn_id}).all()]


def listed(connection: Connection, scope: ConversationKey, after: int, limit: int) -> list[ArtifactRow]:
    """At most ``limit`` latest versions of files with a number greater than ``after``, by their numbers."""
    values = {**scope_values(scope), "after_number": after, "rows_max": limit}
    return [_row(row) for row in connection.execute(_LISTED, values)]


def newest_of_names(connection: Connection, scope: ConversationKey, limit: int) -> list[ArtifactRow]:
    """The newest version of each of at most ``limit`` names, whatever its turn and namespace, newest first."""
    values = {**scope_values(scope), "at_most": limit}
    return [_row(row) for row in connection.execute(_NEWEST_OF_NAMES, values).all()]


def deletions(connection: Connection, scope: ConversationKey) -> dict[FilePath, DeletedFile]:
    """The files that a client deleted."""
    return {
        FilePath(row.turn, Namespace(row.namespace), row.rel): DeletedFile(row.deleted, row.position)
        for row in connection.execute(_DELETIONS, scope_values(scope))
    }


def mark_removed(connection: Connection, scope: ConversationKey, wanted: Iterable[tuple[FilePath, int]]) -> None:
    """Mark versions as removed by a program; those that this conversation does not have are passed over."""
    now = utc_now()
    for path, number in wanted:
        connection.execute(_REMOVED, {**scope_values(scope), **_path_values(path), "of_version": number, "at": now})


# ---- hosted ----


def hosted_latest(connection: Connection, name: str) -> ArtifactRow | None:
    """The latest version that is hosted under a name."""
    return _one(connection, _HOSTED, {"of_name": name})


def newest_hosted(connection: Connection, names: Iterable[str]) -> dict[str, ArtifactRow]:
    """The newest versions of the files that have some hosted names, by these; without those that are internal."""
    found, left = {}, iter(names)
    while group := list(islice(left, _PATHS_AT_ONCE)):
        for row in connection.execute(_NEWEST_HOSTED, {"of_names": group}):
            found[row.hosted_name] = _row(row)
    return found


def hosted_latest_in(connection: Connection, scope: ConversationKey, name: str) -> ArtifactRow | None:
    """The same, if it belongs to the scope's tenant and project."""
    who = {"scope_tenant": scope.principal.tenant, "scope_project": scope.principal.project}
    return _one(connection, _HOSTED_IN, {"of_name": name, **who})


def hosted_names(connection: Connection, scope: ConversationKey, names: Iterable[str]) -> set[str]:
    """Those of some paths below ``files/`` of which a version of any turn is hosted."""
    found, left = set[str](), iter(names)
    while group := list(islice(left, _PATHS_AT_ONCE)):
        found.update(connection.execute(_HOSTED_NAMES, {**scope_values(scope), "of_rels": group}).scalars())
    return found


def _path_values(path: FilePath) -> dict[str, object]:
    return {"of_turn": path.turn_id, "of_namespace": path.namespace.value, "of_rel": path.rel}


def _one(connection: Connection, query: Select[Any], values: dict[str, Any]) -> ArtifactRow | None:
    row = connection.execute(query, values).first()
    return None if row is None else _row(row)


def _row(row: Row[Any]) -> ArtifactRow:
    return ArtifactRow(
        path=FilePath(row.turn, Namespace(row.namespace), row.rel),
        version=row.version,
        sha256=row.sha256,
        size_bytes=row.size_bytes,
        mime=row.mime,
        visibility=row.visibility,
        description=row.description,
        created=row.created,
        hosted_name=row.hosted_name,
        removed=row.removed is not None,
        number=row.id,
        tool_call_id=row.tool_call_id,
    )


def numbered(connection: Connection, number: int) -> tuple[ConversationKey, ArtifactRow] | None:
    """The version that has a number, and whose it is, if there is one."""
    row = connection.execute(_NUMBERED, {"of_number": number}).first()
    if row is None:
        return None
    who = Principal(row.tenant, row.project, row.user_type, row.user)
    return ConversationKey(who, row.conversation_name), _row(row)


def stored_bytes(connection: Connection, tenant: str, project: str) -> int:
    """How many bytes all versions of all files and workspaces of a project have together."""
    values = {"scope_tenant": tenant, "scope_project": project}
    return sum(int(connection.execute(query, values).scalar_one()) for query in _STORED_BYTES)
