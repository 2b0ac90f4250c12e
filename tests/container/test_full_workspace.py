"""A whole workspace between real containers: modes, links, empty folders and deletions; limits; reading alone."""

import asyncio

import pytest

from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

FULL = {"explore": True, "workspace": "full", "language": "bash"}
FILL = r"""
mkdir -p src/deep empty locked
echo 'echo ran' >run; chmod 750 run
echo secret >locked/s; chmod 000 locked/s; chmod 500 locked
ln -s run link; ln -s /etc/passwd out; ln run src/hard
for n in $(seq 200); do echo $n >src/deep/$n; done
touch -d '2001-02-03 04:05:06.789' src/deep/1
echo odd >$'two\nlines'; printf x >$'\377'
"""
SHOW = r"""find . -printf '%y %m %n %T@ %l %P\0' | sort -z | tr '\0' '\n' | grep -v ' $'"""


async def test_a_workspace_comes_back_as_it_was(call: Caller) -> None:
    response = await call(f"{FILL}\n{SHOW}", **FULL)
    assert response.ok, response.report
    again = await call(SHOW, **FULL)
    assert again.output.stdout == response.output.stdout
    assert "d 500 2" in again.output.stdout
    assert "f 750 2" in again.output.stdout
    third = await call("./link; cat src/deep/1; rm -r src", turn_id="turn_2", **FULL)
    assert third.output.stdout == "ran\n1\n"
    left = await call("ls -d [a-z]*", turn_id="turn_2", **FULL)
    assert left.output.stdout.split() == ["empty", "link", "locked", "out", "run", "two", "lines"]


async def test_python_and_bash_share_the_folder_under_each_of_its_names(call: Caller) -> None:
    await call("open('a', 'w').write('1'); open('/out/b', 'w').write('2')", explore=True, workspace="full")
    found = await call("cat a b /mnt/data/a /out/files/b /out/turn_1/files/b", **FULL)
    assert found.output.stdout == "12122"


async def test_a_promised_file_is_checked_as_ever_and_an_old_one_is_stale(call: Caller) -> None:
    made = await call("open('t.csv', 'w').write('a,b\\n1,2\\n')", ["t.csv"], workspace="full")
    assert made.ok, made.report
    stale = await call("print(open('t.csv').read())", ["t.csv"], workspace="full")
    assert (stale.ok, stale.output.stdout) == (False, "a,b\n1,2\n\n")


async def test_an_attachment_and_a_written_file_are_in_the_workspace(call: Caller) -> None:
    await call("echo old >notes.md", **FULL)
    await call.attach("data.csv", b"a,b\n")
    await call.tool("react.file", {"path": "files/notes.md", "content": "new\n"})
    assert (await call("cat data.csv notes.md; echo c,d >>data.csv", **FULL)).output.stdout == "a,b\nnew\n"
    assert (await call("cat data.csv", **FULL)).output.stdout == "a,b\nc,d\n"


async def test_reading_leaves_the_workspace_unchanged(call: Caller) -> None:
    await call("echo 1 >a", **FULL)
    read = await call("cat a; rm a; mkdir b", **{**FULL, "workspace": "read"})
    assert read.output.stdout == "1\n"
    assert (await call("ls -A", **FULL)).output.stdout == "a\n"


async def test_concurrent_calls_lose_nothing(call: Caller) -> None:
    responses = await asyncio.gather(*(call(f"ls | wc -l; touch f{n}", **FULL) for n in range(5)))
    assert sorted(response.output.stdout.strip() for response in responses) == ["0", "1", "2", "3", "4"]


async def test_a_workspace_over_the_limit_fails_and_the_old_one_stays(call: Caller) -> None:
    await call("echo 1 >a", **FULL)
    response = await call("head -c 140M /dev/zero >big", **FULL)
    assert response.error is not None
    assert (response.error.code, "limit 10000 files and folders, 134217728 bytes" in response.report) == (
        "disk_limit",
        True,
    )
    assert (await call("ls -A", **FULL)).output.stdout == "a\n"


async def test_a_program_that_is_ended_leaves_what_it_had_written(call: Caller) -> None:
    response = await call("echo 1 >a; mkfifo p; sleep 60", timeout_s=3, **FULL)
    assert "Note: workspace: 1 entries cannot be stored" in response.report
    assert (await call("ls -A", **FULL)).output.stdout == "a\n"


async def test_a_call_without_a_workspace_costs_and_changes_nothing(call: Caller) -> None:
    await call("mkdir empty; for n in $(seq 60); do echo $n >f$n; done", **FULL)
    plain = await call("ls files | wc -l; pwd", explore=True, language="bash")
    assert plain.output.stdout == "50\n/out\n"
    assert (await call("ls | wc -l", **FULL)).output.stdout == "61\n"
