"""Programs that delete and die in the middle: ``dying_deleter.py (conversation|file) FOLDER``.

Each kills itself with SIGKILL before the first, second, third … commit or file operation of the deletion, each time
in a process and a data folder of its own (``FOLDER/<number>``), until one comes through; prints how many died.
"""

import asyncio
import hashlib
import itertools
import os
import signal
import sys
from pathlib import Path

from sqlalchemy import Engine, event
from whole_conversations import REPORT, AllStores, delete, draft_of, fill, under

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.database import Database
from tests.support.fresh_database import lay_out

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
OTHER = under(SCOPE, "conv-2")
FILE_OPERATIONS = {"os.remove", "os.rmdir", "os.rename", "os.link"}
AT = "2026-07-04T13:18:14.000Z"


async def save(store, scope, files, visibility="external"):
    new = [
        NewArtifact(
            path=FilePath.from_physical(path),
            source=FileContent(data),
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            mime="text/plain",
            visibility=visibility,
            description="",
            tool_call_id="call-1",
        )
        for path, data in files.items()
    ]
    return await store.save(scope, new)


async def delete_and_die(what, data_dir, die_at):
    database = Database(lay_out(data_dir))
    await database.open()
    artifacts = SqlArtifactStore(database, LocalBlobStore(data_dir))
    await artifacts.open()
    stores = AllStores(database, artifacts)
    await fill(stores, SCOPE, save)
    await save(artifacts, OTHER, {REPORT.physical: b"older"})
    passed = itertools.count(1)

    def die(*_arguments):
        if next(passed) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    event.listen(Engine, "commit", die)
    sys.addaudithook(lambda name, _arguments: die() if name in FILE_OPERATIONS else None)
    if what == "conversation":
        await delete(stores, SCOPE)
    else:
        await stores.conversations.delete_file(SCOPE, REPORT, AT, draft_of(SCOPE))


def die_at_every_point(what, folder):
    lay_out(folder / "0")  # what is copied is made here, and not in each process
    for die_at in itertools.count(1):
        child = os.fork()
        if child == 0:
            asyncio.run(delete_and_die(what, folder / str(die_at), die_at))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            print(die_at - 1)  # noqa: T201 - the test reads it
            return os.waitstatus_to_exitcode(status)
    return 1


if __name__ == "__main__":
    sys.exit(die_at_every_point(sys.argv[1], Path(sys.argv[2])))
