"""Programs that save artifacts and die in the middle; run as ``dying_writer.py (loop|points|many|s3) <folder>``.

``loop`` saves sets of three files until somebody kills it, and prints the number of each set that is stored.

``points`` kills itself with SIGKILL at the first, second, third … file operation of one save, each time in a
process and a data folder of its own (``<folder>/<number>``), until a save comes through; prints how many died.

``many`` does the same with forty files more, at every fifteenth operation; prints the last at which one died.

``s3`` opens a store on the bucket that the environment names, says so, waits for a line, and saves
``<folder>/large``; somebody else kills it.
"""

import asyncio
import hashlib
import itertools
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.s3_client import Bucket
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.database import Database
from tests.support.fresh_database import lay_out

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
FILE_OPERATIONS = {"open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.chmod"}


@asynccontextmanager
async def opened(data_dir):
    database = Database(lay_out(data_dir))
    await database.open()
    store = SqlArtifactStore(database, LocalBlobStore(data_dir))
    await store.open()
    try:
        yield store
    finally:
        await store.close()
        await database.close()


def staged(folder, physical, data, visibility, *, in_memory=False):
    source = data
    if not in_memory:
        source = folder / hashlib.sha256(physical.encode()).hexdigest()
        source.write_bytes(data)
    return NewArtifact(
        path=FilePath.from_physical(physical),
        source=FileContent(source),
        size_bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        mime="text/plain",
        visibility=visibility,
        description="",
        tool_call_id="call-1",
    )


async def save_for_ever(data_dir):
    async with opened(data_dir) as store:
        first = await store.latest(SCOPE, FilePath.from_physical("turn_1/files/one"))
        for number in itertools.count(first.version + 1 if first else 1):
            async with store.staging() as folder:
                files = [
                    staged(folder, "turn_1/files/one", f"one {number}".encode(), "external"),
                    staged(folder, "turn_1/files/deep/two", os.urandom(50_000), "external"),
                    staged(folder, "turn_1/files/three", f"three {number}".encode(), "internal", in_memory=True),
                ]
                await store.save(SCOPE, files)
            print(number, flush=True)  # noqa: T201 - the test reads it


async def save_twice(data_dir, die_at, more):
    """The first save is whole; at its file operation number ``die_at`` the second one, of more files, dies."""
    async with opened(data_dir) as store:
        async with store.staging() as folder:
            files = [
                staged(folder, "turn_1/files/kept", b"first", "external"),
                staged(folder, "turn_1/files/quiet", b"first, internal", "internal"),
            ]
            await store.save(SCOPE, files)
        async with store.staging() as folder:
            files = [
                staged(folder, "turn_1/files/kept", b"second", "external"),
                staged(folder, "turn_1/files/quiet", b"second, internal", "internal", in_memory=True),
                staged(folder, "turn_1/files/new/file", b"first", "external"),
            ]
            for number in range(more):
                visibility = "external" if number % 2 else "internal"
                path, data, in_memory = f"turn_1/files/{number:02}", b"%d" % (number // 3), number % 4 > 1
                files.append(staged(folder, path, data, visibility, in_memory=in_memory))
            passed = itertools.count(1)

            def die(event, _arguments):
                if event in FILE_OPERATIONS and next(passed) == die_at:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(die)
            await store.save(SCOPE, files)


async def save_large(data_dir):
    database = Database(data_dir)
    await database.open()
    bucket = Bucket(**json.loads(os.environ["BUCKET"]))
    store = SqlArtifactStore(database, S3BlobStore(bucket, data_dir / "staging", 5 * 1024 * 1024, 900))
    await store.open()
    print("open", flush=True)  # noqa: T201 - the test reads it
    await asyncio.to_thread(sys.stdin.readline)
    async with store.staging() as folder:
        data = (data_dir / "large").read_bytes()
        await store.save(SCOPE, [staged(folder, "turn_1/files/a", data, "external")])
    print("saved", flush=True)  # noqa: T201 - the test reads it


def die_at_every_point(folder, more=0, step=1):
    lay_out(folder / "0")  # what is copied is made here, and not in each process
    for die_at in itertools.count(1, step):
        child = os.fork()
        if child == 0:
            asyncio.run(save_twice(folder / str(die_at), die_at, more))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            print(die_at - step)  # noqa: T201 - the test reads it
            return os.waitstatus_to_exitcode(status)
    return 1


if __name__ == "__main__":
    mode, where = sys.argv[1], Path(sys.argv[2])
    if mode == "points":
        sys.exit(die_at_every_point(where))
    if mode == "many":
        sys.exit(die_at_every_point(where, more=40, step=15))
    asyncio.run({"loop": save_for_ever, "s3": save_large}[mode](where))
