"""All stores together, and a conversation that has something in each of them."""

import hashlib
import json
import struct
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewPage, NewSave, NewWorkspace
from proofbox.service.calls.port import AuditDraft, CallKey, CallState, NewCall
from proofbox.service.file_content import FileContent
from proofbox.service.react.memsearch.port import Passage
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.passages import SqlPassageStore
from proofbox.service.storage.schema import metadata
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore
from tests.support.staging import save_together

KEPT_TABLES = {"alembic_version", "audit", "audit_keys", "chains", "principals", "api_keys"}
REPORT = FilePath.from_physical("turn_1/files/report.txt")
NOTES = FilePath.from_physical("turn_1/attachments/notes.txt")
CONTENT = b"first line\nsecond line\n"


@dataclass
class AllStores:
    """The stores of one service."""

    database: Any
    artifacts: Any

    def __post_init__(self):
        self.calls = SqlCallStore(self.database)
        self.timelines = SqlTimelineStore(self.database)
        self.sources = SqlSourcePool(self.database)
        self.passages = SqlPassageStore(self.database)
        self.conversations = SqlConversationStore(self.database, self.artifacts)

    async def rows(self):
        """How many rows the tables have that hold something of conversations."""
        tables = [table for table in metadata.sorted_tables if table.name not in KEPT_TABLES]

        def work(connection):
            counts = {t.name: connection.execute(select(func.count()).select_from(t)).scalar_one() for t in tables}
            return {name: count for name, count in counts.items() if count}

        return await self.database.read(work)


def draft_of(scope, said="deletion"):
    """The draft of an audit line that holds the counts of a deletion."""

    def drafted(counts):
        who = {"tenant": scope.principal.tenant, "project": scope.principal.project}
        line = {"principal": who, "said": said, "files": counts.files, "size_bytes": counts.size_bytes}
        return AuditDraft("2026-07-04T13:18:14.000Z", json.dumps(line, separators=(",", ":")))

    return drafted


def new_call(scope, tool_call_id="call-1", idempotency_key=None):
    return NewCall(CallKey(scope, tool_call_id), "a" * 64, "{}", "boot-1", idempotency_key)


def file_block(file, content=CONTENT, **fields):
    """The content block of a file, as a call leaves it."""
    digest = {"artifact_path": file.logical, "sha256": hashlib.sha256(content).hexdigest(), "mime": "text/plain"}
    values = {
        "type": "react.tool.result",
        "author": "proofbox",
        "turn_id": file.turn_id,
        "ts": "2026-02-09T02:14:32Z",
        "mime": "text/plain",
        "path": file.logical,
        "text": content.decode(),
        "meta": {
            "digest": json.dumps(digest),
            "hosted_uri": "file://proofbox/hosted/x",
            "rn": "ef:x",
            "key": "cb/x",
        },
    }
    return Block(**{**values, **fields})


def prompt(text="hello"):
    return Block(
        type="user.prompt",
        author="user",
        turn_id="turn_1",
        ts="2026-02-09T02:14:30Z",
        mime="text/plain",
        path="ar:turn_1.user.prompt",
        text=text,
    )


async def fill(stores, scope, save, name="call-1"):
    """A conversation with files in two versions, a call, blocks, sources and passages."""
    await stores.calls.claim(new_call(scope, name, f"key of {name}"))
    blocks = [
        prompt(),
        file_block(REPORT, call_id=name),
        file_block(NOTES, type="user.attachment"),
        file_block(REPORT, path=f"{REPORT.logical}#L1-1", text="first line"),
        file_block(REPORT, mime="image/png", text=None, base64="AAEC"),
    ]
    await stores.calls.finish(CallKey(scope, name), CallState.DONE, "answer", blocks, draft_of(scope, name)(_NONE))
    await save(stores.artifacts, scope, {REPORT.physical: b"older"})
    saved = await save(stores.artifacts, scope, {REPORT.physical: CONTENT, NOTES.physical: b"notes"})
    await save(stores.artifacts, scope, {"turn_2/files/deep/inner": b"inner"}, visibility="internal")
    archive = b"archive of %s" % name.encode()
    sha256 = hashlib.sha256(archive).hexdigest()
    workspace = NewWorkspace("turn_2", FileContent(archive), len(archive), sha256, 1, 0, name)
    await save_together(stores.artifacts, NewSave(scope, [], workspace=workspace))
    await stores.sources.add_pages(
        scope, [NewPage("https://example.org/", "A page", "text", "text/html", "turn_1")]
    )
    vector = struct.pack("<2f", 1.0, 0.5)
    given = [
        Passage(1, "turn_1", "user", "2026-02-09T02:14:30.000Z", "ar:turn_1.user.prompt", "hello", vector),
        Passage(3, "turn_1", "attachment", "2026-02-09T02:14:32.000Z", NOTES.logical, "notes", vector),
    ]
    assert await stores.passages.add(scope, given, since=0, through=5)
    return saved


@dataclass
class _NoCounts:
    files: int = 0
    size_bytes: int = 0


_NONE = _NoCounts()


async def delete(stores, scope, **fields):
    """Deletes a conversation, its rows and its bytes."""
    deletion = await stores.conversations.delete(scope, draft_of(scope), **fields)
    await stores.conversations.purge(deletion)
    return deletion


def under(scope, conversation_id):
    """The same user's other conversation."""
    return replace(scope, conversation_id=conversation_id)
