"""What a call refers to is in OUT_DIR before its program starts: files of other turns, and the turn's own."""

import hashlib
from pathlib import Path

import pytest

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from tests.container.calling import Caller
from tests.container.rehosted import LIST, ledger, notices, write

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

BYTES = bytes(range(256)) * 40

# ---- files of other turns ----

SPELLINGS: list[tuple[str, str]] = [
    ("open('turn_1/files/a.txt')", "a.txt"),
    ('open("./turn_1/files/a.txt")', "a.txt"),
    ("open('/out/turn_1/files/a.txt')", "a.txt"),
    ("open(f'{OUT_DIR}/turn_1/files/a.txt')", "a.txt"),
    ("# see turn_1/files/a.txt.", "a.txt"),
    ("# (turn_1/files/a.txt), and so on", "a.txt"),
    ("html = '<img src=turn_1/files/a.txt alt=x>'", "a.txt"),
    ("html = '<img srcset=\"turn_1/files/a.txt 1x, turn_1/files/b.txt 2x\">'", "b.txt"),
    (r'html = "<img src=\"turn_1/files/a.txt\">"', "a.txt"),
    (r'html = "<img src=\"turn_1/files/with space.txt\">"', "with space.txt"),
    (r"open('turn_1/files/it\'s.txt')", "it's.txt"),
    (r"print('see turn_1/files/a.txt\n')", "a.txt"),
    (r"os.system('cat turn_1/files/with\ space.txt')", "with space.txt"),
    ("css = 'body { background: url(turn_1/files/a.txt) }'", "a.txt"),
    ("css = 'body { background: url(\"turn_1/files/a.txt\") }'", "a.txt"),
    ("md = '![x](turn_1/files/with space.txt)'", "with space.txt"),
    ("md = '![x](<turn_1/files/with space.txt>)'", "with space.txt"),
    ("md = '![x](turn_1/files/paren (1).txt)'", "paren (1).txt"),
    ("md = '![x](turn_1/files/paren%20%281%29.txt \"title\")'", "paren (1).txt"),
    ("html = '<img src=\"turn_1/files/with%20space.txt\">'", "with space.txt"),
    ("html = '<img src=\"turn_1/files/a.txt?v=3\">'", "a.txt"),
    ("html = '<a href=\"turn_1/files/a.txt#page=2\">'", "a.txt"),
    ("open('turn_1/files/sub/deep/c.txt')", "sub/deep/c.txt"),
    ("open('turn_1/files/\u00fcml\u00e4ut.txt')", "\u00fcml\u00e4ut.txt"),
    ("open('turn_1/files/u\u0308ml\u00e4ut.txt')", "\u00fcml\u00e4ut.txt"),
    ("for name in 'ab': open(f'turn_1/files/{name}.txt')", "b.txt"),
    ("glob.glob('turn_1/files/sub/**/*.txt')", "sub/deep/c.txt"),
    ("os.listdir('turn_1/files')", "a.txt"),
    ("os.listdir('turn_1/files/sub/')", "sub/deep/c.txt"),
]


async def test_every_spelling_brings_the_file_that_it_means(call: Caller) -> None:
    await write(
        call,
        "a.txt",
        "b.txt",
        "with space.txt",
        "paren (1).txt",
        "sub/deep/c.txt",
        "\u00fcml\u00e4ut.txt",
        "it's.txt",
    )
    wrong = []
    for number, (text, rel) in enumerate(SPELLINGS):
        # The program puts its path together, so that only the comment can have brought the file.
        code = f"# {text}\nprint(open('turn_' + '1/files/' + {rel!r}).read())"
        response = await call(code, turn_id=f"turn_{number + 2}")
        if (response.ok, await call.output()) != (True, f"{rel}\n"):
            wrong.append((text, response.report, ledger(response)))
    assert wrong == []


async def test_file_of_another_turn_is_byte_identical_and_read_only(call: Caller) -> None:
    seed = "open('files/b.bin', 'wb').write(bytes(range(256)) * 40)"
    assert (await call(seed, ["b.bin"])).ok
    code = """
import hashlib, os
path = "turn_1/files/b.bin"
print(hashlib.sha256(open(path, "rb").read()).hexdigest(), os.access(path, os.W_OK))
try:
    open(path, "ab")
except PermissionError as exc:
    print(exc)
"""
    response = await call(code, turn_id="turn_2")
    sha256 = hashlib.sha256(BYTES).hexdigest()
    assert await call.output() == (f"{sha256} False\n[Errno 13] Permission denied: 'turn_1/files/b.bin'\n")
    [line] = response.rehosted
    assert (line.asked, line.source, line.physical_path, line.sha256, line.size_bytes) == (
        "turn_1/files/b.bin",
        "store",
        "turn_1/files/b.bin",
        sha256,
        len(BYTES),
    )
    assert line.ms > 0


async def test_program_that_changes_a_file_of_another_turn_leaves_the_stored_one_unchanged(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    code = """
import os
os.chmod("turn_1/files/a.txt", 0o666)
open("turn_1/files/a.txt", "w").write("changed")
os.remove("turn_1/files/b.txt")
open("turn_1/files/b.txt", "w").write("replaced")
open("turn_" + "1/files/c.txt", "w").write("new")
"""
    response = await call(code, turn_id="turn_2")
    changed = "turn_1/files/a.txt, turn_1/files/b.txt, turn_1/files/c.txt"
    assert response.report == (
        f"Runtime error: none\nNot stored: {changed} (folder of another turn; write to files/)"
    )
    assert response.artifacts == []
    assert await call.stored("turn_1/files/a.txt") == b"a.txt"
    assert await call.stored("turn_1/files/b.txt") == b"b.txt"
    assert await call.stored("turn_1/files/c.txt") is None
    third = await call("print(open('turn_1/files/a.txt').read())", turn_id="turn_3")
    assert (third.ok, await call.output()) == (True, "a.txt\n")


async def test_attachment_of_another_turn_is_brought(call: Caller) -> None:
    await call.attach("data.csv", b"a,b\n1,2\n")
    response = await call("print(open('turn_1/attachments/data.csv').read(), end='')", turn_id="turn_2")
    assert (response.ok, await call.output()) == (True, "a,b\n1,2\n")
    physical = "turn_1/attachments/data.csv"
    assert ledger(response) == [(physical, "store", physical)]


async def test_file_that_is_mentioned_and_cited_several_times_is_brought_once(call: Caller) -> None:
    await write(call, "a.txt")
    code = f"# turn_1/files/a.txt './turn_1/files/a.txt' turn_1/files [[S:1]]\n{LIST}"
    response = await call(code, turn_id="turn_2")
    assert [line.physical_path for line in response.rehosted] == ["turn_1/files/a.txt"]
    assert await call.output() == "a.txt\n"


async def test_small_files_of_other_turns_are_there_unasked(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    await write(call, "a.txt", turn_id="turn_10")
    response = await call(LIST, turn_id="turn_2")
    assert await call.output() == "a.txt\nb.txt\n"
    paths = ["turn_10/files/a.txt", "turn_1/files/b.txt"]
    assert ledger(response) == [("workspace", "store", path) for path in paths]


async def test_path_that_an_escape_ends_brings_that_file_alone(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    response = await call(r'html = "<img src=\"turn_1/files/a.txt\">\n"', turn_id="turn_2")
    named = [line.physical_path for line in response.rehosted if line.asked != "workspace"]
    assert named == ["turn_1/files/a.txt"]
    gone = await call(r'html = "<img src=\"turn_1/files/gone.txt\">\n"', turn_id="turn_2")
    assert [notice["missing"] for notice in notices(gone)] == [["turn_1/files/gone.txt"]]


async def test_missing_path_of_another_turn_stops_the_call_before_anything_runs(call: Caller) -> None:
    await write(call, "a.txt")
    code = "open('turn_1/files/a.txt'); open('turn_1/files/gone.csv'); open('turn_0/attachments/x.png')"
    response = await call(code, ["out.txt"], turn_id="turn_2")
    missing = ["turn_1/files/gone.csv", "turn_0/attachments/x.png"]
    message = f"the code refers to files that are not in the conversation: {', '.join(missing)}"
    assert notices(response) == [
        {"code": "tool_call_error.pre_exec_missing_paths", "message": message, "missing": missing}
    ]
    assert response.report == (
        f"Runtime error: pre_exec_missing_paths — {message}\nNothing was run.\n"
        "Hint: write new files to files/<name>; folders of other turns can only be read"
    )
    assert response.error is not None
    assert (response.error.code, response.error.where, response.sandbox) == (
        "pre_exec_missing_paths",
        "rehost",
        None,
    )
    assert [block.type for block in response.blocks] == [
        "react.notice",
        "react.tool.code",
        "react.tool.call",
        "react.tool.result",
    ]
    assert "started" not in {event.name for event in await call.events()}


async def test_file_of_another_conversation_cannot_be_had(call: Caller) -> None:
    await write(call, "a.txt")
    response = await Caller(call.service)("open('turn_1/files/a.txt')", turn_id="turn_2")
    assert [notice["missing"] for notice in notices(response)] == [["turn_1/files/a.txt"]]


# ---- the turn's workspace ----


async def test_files_of_the_current_turn_are_there_unasked_and_writable(call: Caller) -> None:
    await write(call, "a.txt", "sub/b.txt")
    await call.attach("in.csv", b"x\n")
    response = await call(LIST)
    assert (await call.output()).splitlines() == ["a.txt", "in.csv", "sub/b.txt"]
    paths = ["turn_1/attachments/in.csv", "turn_1/files/a.txt", "turn_1/files/sub/b.txt"]
    assert sorted(ledger(response)) == [("workspace", "store", path) for path in paths]
    assert response.artifacts == []


async def test_edit_of_a_file_of_the_turn_is_a_new_version_promised_or_not(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    code = "open('files/a.txt', 'a').write(' +1'); open('turn_1/files/b.txt', 'a').write(' +1')"
    response = await call(code, ["a.txt"])
    assert response.report == (
        "Runtime error: none\nProduced files:\n- turn_1/files/a.txt\nNot in the contract: turn_1/files/b.txt\n"
        "Note: b.txt: the copy that the user has is an older version; promise the file to renew it"
    )
    assert (await call.text("a.txt"), await call.text("b.txt")) == ("a.txt +1", "b.txt +1")
    await call("print(open('files/a.txt').read(), open('files/b.txt').read())")
    assert await call.output() == "a.txt +1 b.txt +1\n"


async def test_edit_of_an_attachment_of_the_turn_is_a_new_version(call: Caller) -> None:
    await call.attach("in.csv", b"x\n")
    response = await call("open('turn_1/attachments/in.csv', 'a').write('y\\n')")
    assert response.report == "Runtime error: none\nNot in the contract: turn_1/attachments/in.csv"
    assert await call.stored("turn_1/attachments/in.csv") == b"x\ny\n"


async def test_path_of_the_current_turn_that_does_not_exist_yet_is_no_error(call: Caller) -> None:
    response = await call("open('turn_1/files/new.txt', 'w').write('x')", ["new.txt"])
    assert (response.ok, notices(response)) == (True, [])
    absent = await call("print(__import__('os').path.exists('turn_1/attachments/none.png'))")
    assert (absent.ok, await call.output()) == (True, "False\n")


async def test_workspace_above_its_bound_brings_only_what_is_named_and_says_so(
    settings: Settings, tmp_path: Path
) -> None:
    small = settings.model_copy(update={"data_dir": tmp_path, "pool_size": 0, "workspace_files_max": 2})
    service = build(small)
    async with running(service):
        call = Caller(service)
        await write(call, "a.txt", "b.txt")
        assert notices(await call(LIST)) == []
        assert await call.output() == "a.txt\nb.txt\n"
        await write(call, "c.txt", "large.txt")
        response = await call(f"# turn_1/files/large.txt\n{LIST}")
        assert await call.output() == "b.txt\nc.txt\nlarge.txt\n"
        assert notices(response) == []
        assert response.text.count("a.txt") == 1
        assert "Note: not in the working directory: a.txt (5 bytes); name a file in the code" in response.report


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (
            {"out_dir_bytes": 1_000_000},
            "take 2002944 bytes and 8 files and folders, OUT_DIR holds 1000000 and 20000",
        ),
        ({"out_dir_inodes": 20}, "take 122880 bytes and 37 files and folders, OUT_DIR holds 268435456 and 20"),
        ({"out_dir_bytes": 81_920}, "take 122880 bytes and 37 files and folders, OUT_DIR holds 81920 and 20000"),
    ],
    ids=["one_large", "many", "many_small"],
)
async def test_files_that_do_not_fit_into_out_dir_run_nothing_if_their_paths_are_named_and_else_are_left_out(
    call: Caller, limits: dict[str, int], told: str
) -> None:
    if limits == {"out_dir_bytes": 1_000_000}:
        seed, count = "open('a.bin', 'wb').write(bytes(2_000_000))", 1
    else:
        seed, count = "for n in range(30): open(f'{n}.txt', 'w').write('x')", 30
    assert (await call(seed)).ok
    named = await call("print('ran', 'turn_1/files/')", limits=limits, turn_id="turn_2")
    assert named.report.splitlines()[0] == (
        f"Runtime error: disk_limit — the files that the call refers to {told}; nothing was run"
    )
    assert (named.sandbox, await call.output()) == (None, "")
    unnamed = await call("import os; print('ran', len(os.listdir()))", limits=limits, turn_id="turn_2")
    there = len(unnamed.rehosted)
    assert (unnamed.ok, await call.output(), there < count) == (True, f"ran {there}\n", True)
    assert notices(unnamed) == []
    assert "Note: not in the working directory: " in unnamed.report
