"""Deletion of one file: its rows, and its content in the timeline, the sources and the passages.

Blocks stay at their places, for positions count; those that carry the file's content lose it. A block is added that
hides the others, and states when the file was deleted.
"""

import json

from sqlalchemy import BindParameter, Connection, bindparam, delete, select, update

from proofbox.contracts.blocks import Block
from proofbox.contracts.codes import NoticeCode
from proofbox.contracts.logical_paths import TurnPath
from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.line_ranges import parse_stretch
from proofbox.service.conversations.port import DeletedCounts
from proofbox.service.storage.artifacts.removal import remove_versions
from proofbox.service.storage.conversation_rows import new_or_changed
from proofbox.service.storage.schema import blocks, deleted_files, passages, sources
from proofbox.service.storage.text_columns import json_text, storable
from proofbox.service.storage.timelines import append_rows, block_rows, last_position
from proofbox.service.timeline.artifact_versions import HOSTING_FIELDS
from proofbox.service.timeline.block_writer import AUTHOR_SERVICE

_IN: BindParameter[int] = bindparam("in_conversation")
# The file itself, and parts of it that react.read showed: `<path>#L1-20`.
_CARRYING = select(blocks.c.position, blocks.c.path, blocks.c.block).where(
    blocks.c.conversation == _IN,
    (blocks.c.path == bindparam("of_path"))
    | ((blocks.c.path > bindparam("first_part")) & (blocks.c.path < bindparam("after_parts"))),
)
_EMPTIED = (
    update(blocks)
    .where(blocks.c.conversation == _IN, blocks.c.position == bindparam("at_position"))
    .values(block=bindparam("new_block"), content=None)
)
_PASSAGES = delete(passages).where(
    passages.c.conversation == _IN, passages.c.position.in_(bindparam("at_positions", expanding=True))
)
_SOURCES = select(sources.c.sid, sources.c.source).where(
    sources.c.conversation == _IN, sources.c.file == bindparam("of_path")
)
_SOURCE_EMPTIED = (
    update(sources)
    .where(sources.c.conversation == _IN, sources.c.sid == bindparam("of_sid"))
    .values(source=bindparam("new_source"))
)
_POSITIONS_AT_ONCE = 500  # a statement takes tens of thousands of values, and not more
_SOURCE_CONTENT = ("hosted_uri", "rn", "key", "text")


def remove_file(
    connection: Connection, conversation: int, save: str, path: FilePath, at: str
) -> tuple[DeletedCounts, list[str]] | None:
    """Remove all versions of a file; None if there is none.

    Args:
        connection: the database, in a transaction that has locked the conversation.
        conversation: its number.
        save: the name of the removal in the journal.
        path: the file.
        at: the time of the deletion.

    Returns:
        How much was removed, and the names whose bytes are left.
    """
    removed, names = remove_versions(connection, conversation, save, path)
    if not removed:
        return None
    emptied = _empty_blocks(connection, conversation, path, at)
    _empty_sources(connection, conversation, path)
    append_rows(connection, conversation, block_rows([_deletion_block(path, at, save)]))
    position = last_position(connection, conversation)
    _record(connection, conversation, path, {"version": removed[-1][0], "position": position, "deleted": at})
    size_bytes = sum(size for _, size in removed)
    return DeletedCounts(files=1, versions=len(removed), size_bytes=size_bytes, blocks=emptied), names


def _empty_blocks(connection: Connection, conversation: int, path: FilePath, at: str) -> int:
    logical = storable(path.logical)
    values = {"of_path": logical, "first_part": f"{logical}#", "after_parts": f"{logical}$"}
    found = connection.execute(_CARRYING, {"in_conversation": conversation, **values}).all()
    carrying = [
        (row.position, Block.model_validate_json(row.block))
        for row in found
        if row.path == logical or _is_part(row.path, logical)
    ]
    # The description of an attachment stays; its content is in a block of its own.
    own = [(position, block) for position, block in carrying if block.type != "user.attachment.meta"]
    for position, block in own:
        new = {"at_position": position, "new_block": _emptied(block, at)}
        connection.execute(_EMPTIED, {"in_conversation": conversation, **new})
    for start in range(0, len(own), _POSITIONS_AT_ONCE):
        positions = [position for position, _ in own[start : start + _POSITIONS_AT_ONCE]]
        connection.execute(_PASSAGES, {"in_conversation": conversation, "at_positions": positions})
    return len(own)


def _is_part(text: str, logical: str) -> bool:
    stretch = parse_stretch(text)
    return stretch is not None and stretch.path == logical


def _emptied(block: Block, at: str) -> str:
    """The block without content and without the places where the file was hosted; its digest stays."""
    meta = {name: value for name, value in block.meta.items() if name not in HOSTING_FIELDS}
    return json_text(block.model_copy(update={"text": None, "base64": None, "meta": {**meta, "deleted": at}}))


def _empty_sources(connection: Connection, conversation: int, path: FilePath) -> None:
    """Keep the id and the title, which citations show; the rest leads nowhere any more."""
    values = {"in_conversation": conversation, "of_path": path.logical}
    for row in connection.execute(_SOURCES, values).all():
        fields = {name: value for name, value in json.loads(row.source).items() if name not in _SOURCE_CONTENT}
        new = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        connection.execute(_SOURCE_EMPTIED, {"in_conversation": conversation, "of_sid": row.sid, "new_source": new})


def _deletion_block(path: FilePath, at: str, save: str) -> Block:
    return Block(
        type="react.notice",
        author=AUTHOR_SERVICE,
        turn_id=path.turn_id,
        ts=at,
        mime="application/json",
        path=str(TurnPath("notice", path.turn_id, f"delete-{save[:12]}")),
        text=json.dumps(
            {
                "code": NoticeCode.FILE_DELETED,
                "message": f"{path.logical} was deleted at {at}",
                "path": path.logical,
            },
            ensure_ascii=False,
        ),
        meta={
            "hides": path.logical,
            "hides_from": 1,
            "replacement_text": f"{path.rel} was deleted at {at}",
            "deletes": True,
        },
    )


def _record(connection: Connection, conversation: int, path: FilePath, values: dict[str, object]) -> None:
    key = {"conversation": conversation, "turn": path.turn_id, "namespace": path.namespace.value, "rel": path.rel}
    connection.execute(new_or_changed(deleted_files, connection.dialect.name, *values), {**key, **values})
