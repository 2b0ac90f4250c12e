"""A process that is killed in the middle of a deletion: all is visible or nothing, and nothing is left over."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from disk_check import assert_disk_says_what_the_rows_say
from whole_conversations import CONTENT, NOTES, REPORT, AllStores, under

import proofbox.service

DELETER = Path(__file__).with_name("dying_deleter.py")
REPOSITORY = Path(proofbox.service.__file__).parents[2]


def died(what, folder):
    """How many processes died, each in a folder of its own."""
    ran = subprocess.run(
        [sys.executable, str(DELETER), what, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(DELETER.parent)])},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return int(ran.stdout)


async def is_whole(stores, scope, content):
    """Whether a conversation is there as it was; if not, nothing of it may be seen."""
    report = await stores.artifacts.latest(scope, REPORT)
    calls = await stores.calls.find(scope.principal, "call-1")
    if report is None:
        assert (calls, await stores.timelines.last(scope), await stores.sources.rows(scope)) == ([], 0, [])
        assert await stores.artifacts.listed(scope, 0, 10) == []
        return False
    assert await content(stores.artifacts, scope, report) == CONTENT
    assert await content(stores.artifacts, scope, await stores.artifacts.latest(scope, NOTES)) == b"notes"
    assert [call.answer for call in calls] == ["answer"]
    assert await stores.timelines.last(scope) == 5
    return True


@pytest.mark.slow
async def test_a_conversation_is_deleted_whole_or_not_at_all_wherever_the_process_dies(
    opened_artifacts, scope, content, tmp_path
):
    deaths = died("conversation", tmp_path)
    assert deaths >= 15
    wholes = []
    for number in range(1, deaths + 2):
        data = tmp_path / str(number)
        async with opened_artifacts(data) as artifacts:
            stores = AllStores(artifacts._database, artifacts)
            wholes.append(await is_whole(stores, scope, content))
            await stores.conversations.purge_interrupted()
            other = under(scope, "conv-2")
            assert await content(artifacts, other, await artifacts.latest(other, REPORT)) == b"older"
            rows = await stores.rows()
        if not wholes[-1]:
            assert rows == {"artifacts": 1, "conversations": 1, "sources": 1}
        assert_disk_says_what_the_rows_say(data)
    assert sorted(set(wholes)) == [False, True]
    assert wholes == sorted(wholes, reverse=True)


async def test_a_file_is_deleted_whole_or_not_at_all_wherever_the_process_dies(
    opened_artifacts, scope, content, tmp_path
):
    deaths = died("file", tmp_path)
    assert deaths >= 4
    wholes = []
    for number in range(1, deaths + 2):
        data = tmp_path / str(number)
        async with opened_artifacts(data) as artifacts:
            stores = AllStores(artifacts._database, artifacts)
            latest = await artifacts.latest(scope, REPORT)
            blocks = await stores.timelines.after(scope, 0, 10, binaries=True)
            shown = [placed.block.text for placed in blocks if placed.block.path == REPORT.logical]
            if latest is not None:
                assert await content(artifacts, scope, latest) == CONTENT
                assert (shown, len(blocks)) == ([CONTENT.decode(), None], 5)
            else:
                assert (shown, len(blocks)) == ([None, None], 6)
            wholes.append(latest is not None)
            assert await content(artifacts, scope, await artifacts.latest(scope, NOTES)) == b"notes"
        assert_disk_says_what_the_rows_say(data)
    assert sorted(set(wholes)) == [False, True]
    assert wholes == sorted(wholes, reverse=True)
