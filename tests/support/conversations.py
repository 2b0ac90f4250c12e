"""A conversation on the real local stores, and react.read called in it."""

import base64
import hashlib
import json
from contextlib import asynccontextmanager

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import FilePath
from proofbox.contracts.react_tools import ReadParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.artifacts.attachments import Attachments
from proofbox.service.artifacts.conversation_files import ConversationFiles
from proofbox.service.artifacts.path_resolver import LogicalPathResolver
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.calls.direct_tool import DirectTool
from proofbox.service.calls.observer import CallObserver
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.jobs.input_resolver import InputResolver, WorkspaceBounds
from proofbox.service.jobs.inputs import InputRequest
from proofbox.service.react.read import ReadBounds, ReadTool
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.asset_folders import AssetFolders
from proofbox.service.storage.database import Database
from proofbox.service.storage.skill_folder import FolderSkills
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.support.fresh_database import lay_out
from tests.support.staging import MadeFolder

ANN = Principal("acme", "books", "registered", "ann")
BOB = Principal("acme", "books", "registered", "bob")
EVE = Principal("other", "books", "registered", "eve")
SCOPE = ConversationKey(ANN, "conv-1")
TOKENS = BpeTokenCounter()
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def block(path, text=None, **fields):
    """A block as another program may write it."""
    values = {
        "type": "react.tool.result",
        "author": "react",
        "turn_id": "turn_1",
        "ts": "2026-02-09T02:14:32Z",
        "mime": "text/markdown",
        "path": path,
        "text": text,
    }
    return Block(**{**values, **fields})


def call_block(call_id, tool_id, turn_id="turn_1", path=None, **params):
    payload = json.dumps({"tool_id": tool_id, "tool_call_id": call_id, "params": params})
    return block(
        path or f"tc:{turn_id}.{call_id}.call",
        payload,
        type="react.tool.call",
        mime="application/json",
        turn_id=turn_id,
        call_id=call_id,
    )


def meta_block(call_id, digest, turn_id="turn_1", **fields):
    return block(
        f"tc:{turn_id}.{call_id}.result",
        json.dumps(digest),
        mime="application/json",
        turn_id=turn_id,
        call_id=call_id,
        **fields,
    )


def sha256(data):
    return hashlib.sha256(data).hexdigest()


class Conversation:
    """One conversation; reads of it are in turn_9."""

    def __init__(self, database, artifacts, folder, scope=SCOPE):
        self.database = database
        self.artifacts = artifacts
        self.folder = folder
        self.scope = scope
        self.sources = SqlSourcePool(database)
        self.timelines = SqlTimelineStore(database)
        self.shared = folder / "shared"
        self.skills = folder / "skills"
        self.files = ConversationFiles(artifacts, self.timelines, AssetFolders((self.shared,)))
        self.inline_bytes_max = 100_000
        self.tokens_max = 20_000
        self.documents = None
        self._calls = 0

    def of(self, scope):
        """Another conversation on the same stores."""
        return Conversation(self.database, self.artifacts, self.folder, scope)

    async def save(self, physical, data=None, mime="text/plain", visibility="external"):
        data = physical.encode() if data is None else data
        async with self.artifacts.staging() as staging:
            source = staging / "in"
            source.write_bytes(data)
            path = FilePath.from_physical(physical)
            new = NewArtifact(path, FileContent(source), len(data), sha256(data), mime, visibility, "d", "call_0")
            [stored] = await self.artifacts.save(self.scope, [new])
        return stored

    async def attach(self, turn_id, name, data, mime=None):
        async def pieces():
            yield data

        taking = Attachments(self.artifacts, self.sources, bytes_max=10**9, inline_bytes_max=self.inline_bytes_max)
        return (await taking.store(self.scope, turn_id, name, pieces(), mime)).attachment

    async def append(self, *blocks):
        await self.timelines.append(self.scope, blocks)

    async def read(self, *paths, turn_id="turn_9", call_id=None, keep=True, **fields):
        """The answer of a call; its blocks are on the timeline afterwards, as those of every call are."""
        self._calls += 1
        read = ReadTool(
            LogicalPathResolver(self.files, self.sources, FolderSkills(self.skills)),
            TOKENS,
            ReadBounds(self.inline_bytes_max, self.tokens_max),
            self.documents,
        )
        request = ToolCallRequest.model_validate(
            {
                "tool_id": "react.read",
                "tool_call_id": call_id or f"r{self._calls}",
                "conversation_id": self.scope.conversation_id,
                "turn_id": turn_id,
                "params": {"paths": list(paths)},
                **fields,
            }
        )
        story = DirectTool(ReadParams, read.run, self.sources)
        response = await story.prepare(self.scope, request).run(CallObserver())
        if keep:
            await self.append(*response.blocks)
        return response

    async def gather(self, text="", *, turn_id="turn_9", bounds=(10_000, 100), **fields):
        """What a run would find in OUT_DIR, and the ledger, the missing paths and the notices."""
        rehosting = InputResolver(self.files, self.sources, WorkspaceBounds(*bounds))
        async with self.artifacts.staging() as staging:
            wish = InputRequest(self.scope, turn_id, text, (), (), **fields)
            gathered = await rehosting.resolve_inputs(wish, MadeFolder(staging))
            contents = {path: file.source.read() for path, file in gathered.files.items()}
        return contents, gathered


@asynccontextmanager
async def opened_conversation(folder):
    for name in ("shared", "skills"):
        (folder / name).mkdir()
    database = Database(lay_out(folder / "data"))
    await database.open()
    artifacts = SqlArtifactStore(database, LocalBlobStore(folder / "data"))
    await artifacts.open()
    try:
        yield Conversation(database, artifacts, folder)
    finally:
        await artifacts.close()
        await database.close()


def told(response):
    """The blocks of an answer as (type, path, what it carries)."""
    return [
        (
            item.type,
            item.path,
            "text" if item.text is not None else "base64" if item.base64 is not None else None,
        )
        for item in response.blocks
    ]


def status(response):
    """The status block of a read, wherever it stands."""
    results = [item.text or "" for item in response.blocks if item.type == "react.tool.result"]
    return json.loads(next(text for text in results if '"paths"' in text))
