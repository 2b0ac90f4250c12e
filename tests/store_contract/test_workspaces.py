"""What every artifact store promises of the workspaces of conversations."""

import asyncio
import hashlib

import pytest

from proofbox.service.artifacts.port import NewSave, NewWorkspace
from proofbox.service.errors import StoreFailedError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts.workspace_rows import STORED_MAX
from tests.support.staging import save_together


def new(data, turn_id="turn_1", covers=0, call="call_1"):
    sha256 = hashlib.sha256(data).hexdigest()
    return NewWorkspace(turn_id, FileContent(data), len(data), sha256, 1, covers, call)


async def content(store, scope, workspace):
    async with store.staging() as folder:
        return (await store.fetch_workspace(scope, workspace, folder)).read_bytes()


async def test_the_newest_workspace_is_found_with_all_that_was_stored_of_it(artifact_store, scope):
    assert await artifact_store.workspace(scope) is None
    for data, turn in ((b"one", "turn_1"), (b"two", "turn_2")):
        await save_together(artifact_store, NewSave(scope, [], workspace=new(data, turn, 7, "c:1")))
    stored = await artifact_store.workspace(scope)
    assert (stored.turn_id, stored.size_bytes, stored.entries, stored.covers, stored.tool_call_id) == (
        "turn_2",
        3,
        1,
        7,
        "c:1",
    )
    assert await content(artifact_store, scope, stored) == b"two"


async def test_a_workspace_and_files_are_saved_together(artifact_store, scope, stage):
    async with artifact_store.staging() as folder:
        given = stage(folder, "turn_1/files/a", b"same bytes")
        (saved,) = await (
            await artifact_store.prepare(NewSave(scope, [given], workspace=new(b"same bytes")))
        ).store()
    found = await artifact_store.latest(scope, saved.path)
    assert await artifact_store.newest_number(scope) == found.number > 0
    assert await content(artifact_store, scope, await artifact_store.workspace(scope)) == b"same bytes"


async def test_only_the_newest_stay_and_bytes_that_a_file_has_too_are_not_removed(artifact_store, scope, save):
    await save(artifact_store, scope, {"turn_1/files/a": b"0"})
    stored = []
    for number in range(STORED_MAX + 2):
        await save_together(artifact_store, NewSave(scope, [], workspace=new(b"%d" % number)))
        stored.append(await artifact_store.workspace(scope))
    left = [await artifact_store.workspace(scope, workspace.number) for workspace in stored]
    assert left == [None, None, *stored[2:]]
    assert [await content(artifact_store, scope, workspace) for workspace in left[2:]] == [b"2", b"3", b"4"]
    with pytest.raises(StoreFailedError, match="is not stored in this conversation"):
        await content(artifact_store, scope, stored[0])
    latest = await artifact_store.latest(scope, (await artifact_store.listed(scope, 0, 1))[0][1].path)
    assert await artifact_store.contents(scope, [latest]) == [b"0"]


async def test_a_workspace_is_of_one_conversation(artifact_store, scope):
    await save_together(artifact_store, NewSave(scope, [], workspace=new(b"mine")))
    other = ConversationKey(scope.principal, f"{scope.conversation_id}-other")
    mine = await artifact_store.workspace(scope)
    assert await artifact_store.workspace(other) is None
    assert await artifact_store.workspace(other, mine.number) is None
    with pytest.raises(StoreFailedError, match="is not stored in this conversation"):
        await content(artifact_store, other, mine)


async def test_one_holds_the_workspace_of_a_conversation_at_a_time(artifact_store, scope):
    other = ConversationKey(scope.principal, f"{scope.conversation_id}-other")
    order = []

    async def hold(name, key):
        async with artifact_store.hold_workspace(key):
            order.append(name)
            await asyncio.sleep(0)
            order.append(name)

    await asyncio.gather(hold("a", scope), hold("b", scope))
    assert order == ["a", "a", "b", "b"]
    async with artifact_store.hold_workspace(scope), asyncio.timeout(60):
        await hold("c", other)
