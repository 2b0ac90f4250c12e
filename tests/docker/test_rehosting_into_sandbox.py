"""What a call refers to is in OUT_DIR before its program starts: files, citations, assets, the turn's workspace."""

import asyncio
import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from contracts.codes import ProblemCode
from contracts.tool_calls import ToolCallRequest, ToolCallResponse
from service.core.ports import Principal
from service.main import Service, build, running
from service.settings import Settings
from tests.docker.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

BYTES = bytes(range(256)) * 40
LIST = """
import os
for folder, _, names in sorted(os.walk(".")):
    for name in sorted(names):
        print(os.path.join(folder, name)[2:])
"""


async def write(call: Caller, *names: str, turn_id: str = "turn_1") -> ToolCallResponse:
    """A turn that leaves files; each holds its own name."""
    code = f"""
import os
for name in {names!r}:
    os.makedirs(os.path.dirname("files/" + name), exist_ok=True)
    open("files/" + name, "w").write(name)
"""
    response = await call(code, list(names), turn_id=turn_id)
    assert response.ok, response.report
    return response


def ledger(response: ToolCallResponse) -> list[tuple[str, str, str]]:
    return [(line.asked, line.source, line.physical_path) for line in response.rehosted]


def notices(response: ToolCallResponse) -> list[dict[str, Any]]:
    return [json.loads(block.text or "") for block in response.blocks if block.type == "react.notice"]


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
    assert (response.report, response.artifacts) == ("Runtime error: none", [])
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
    assert await call.output() == "turn_1/files/a.txt\n"


async def test_only_what_is_mentioned_of_other_turns_is_brought(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    await write(call, "a.txt", turn_id="turn_10")
    await call(f"# turn_1/files/b.txt\n{LIST}", turn_id="turn_2")
    assert await call.output() == "turn_1/files/b.txt\n"


async def test_path_that_an_escape_ends_brings_that_file_alone(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    response = await call(r'html = "<img src=\"turn_1/files/a.txt\">\n"', turn_id="turn_2")
    assert [line.physical_path for line in response.rehosted] == ["turn_1/files/a.txt"]
    gone = await call(r'html = "<img src=\"turn_1/files/gone.txt\">\n"', turn_id="turn_2")
    assert [notice["missing"] for notice in notices(gone)] == [["turn_1/files/gone.txt"]]


async def test_missing_path_of_another_turn_stops_the_call_before_anything_runs(call: Caller) -> None:
    await write(call, "a.txt")
    code = "open('turn_1/files/a.txt'); open('turn_1/files/gone.csv'); open('turn_0/attachments/x.png')"
    response = await call(code, ["out.txt"], turn_id="turn_2")
    missing = ["turn_1/files/gone.csv", "turn_0/attachments/x.png"]
    message = (
        f"the code refers to files that are not in the conversation: {', '.join(missing)}; the code was not run"
    )
    assert notices(response) == [
        {"code": "tool_call_error.pre_exec_missing_paths", "message": message, "missing": missing}
    ]
    assert response.report == f"Runtime error: pre_exec_missing_paths — {message}\nNothing was run."
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
    expected = ["turn_1/attachments/in.csv", "turn_1/files/a.txt", "turn_1/files/sub/b.txt"]
    assert (await call.output()).splitlines() == expected
    assert ledger(response) == [("workspace", "store", path) for path in sorted(expected, key=_by_namespace)]
    assert response.artifacts == []


def _by_namespace(path: str) -> tuple[str, ...]:
    return tuple(path.split("/"))


async def test_edit_of_a_file_of_the_turn_is_a_new_version_promised_or_not(call: Caller) -> None:
    await write(call, "a.txt", "b.txt")
    code = "open('files/a.txt', 'a').write(' +1'); open('turn_1/files/b.txt', 'a').write(' +1')"
    response = await call(code, ["a.txt"])
    assert response.report == (
        "Runtime error: none\nProduced files:\n- turn_1/files/a.txt\nNot in the contract: turn_1/files/b.txt"
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
        assert await call.output() == "turn_1/files/a.txt\nturn_1/files/b.txt\n"
        await write(call, "c.txt")
        response = await call(f"# turn_1/files/b.txt\n{LIST}")
        assert await call.output() == "turn_1/files/b.txt\n"
        assert notices(response) == [
            {
                "code": "workspace_truncated",
                "message": "the files of turn_1 are more than 2 or 67108864 bytes: only those that the code names "
                "were put into OUT_DIR",
                "left_out": ["turn_1/files/a.txt", "turn_1/files/c.txt"],
                "left_out_total": 2,
            }
        ]


async def test_inputs_that_do_not_fit_into_out_dir_are_told_and_nothing_runs(call: Caller) -> None:
    assert (await call("open('files/a.bin', 'wb').write(bytes(2_000_000))", ["a.bin"])).ok
    response = await call("print('ran')", limits={"out_dir_bytes": 1_000_000})
    assert response.report == (
        "Runtime error: disk_limit — the files that the call refers to are 2000000 bytes, OUT_DIR holds 1000000; "
        "nothing was run"
    )
    assert (response.sandbox, await call.output()) == (None, "")


# ---- citations ----


@pytest.mark.parametrize(
    ("token", "brought"),
    [
        ("[[S:1]]", "a"),
        ("[[S:1,3-4]]", "acd"),
        ("[[ S : 2 , 4 ]]", "bd"),
        ("[[s:3]]", "c"),
        ("[[S:2\u20133]]", "bc"),
        ("[[S:4-2]]", "bcd"),
        ("[[S:1-999999999]]", "abcd"),
        ("[[S:1]][[S:4]] and [[S:1]]", "ad"),
    ],
)
async def test_citation_in_any_form_brings_the_file_of_its_source(call: Caller, token: str, brought: str) -> None:
    await write(call, "a.txt", "b.txt", "c.txt", "d.txt")
    response = await call(f"TEXT = '''As shown {token}.'''\n{LIST}", turn_id="turn_2")
    assert (await call.output()).splitlines() == [f"turn_1/files/{name}.txt" for name in brought]
    assert {(line.source, line.asked[:4]) for line in response.rehosted} == {("store", "[[S:")}


async def test_cited_sources_that_the_pool_does_not_have_are_told_and_the_code_runs(call: Caller) -> None:
    await write(call, "a.txt")
    response = await call("print('[[S:1,7,9-12]]')", turn_id="turn_2")
    assert response.ok
    assert notices(response) == [
        {
            "code": "tool_call_warning.missing_sources",
            "message": "the code cites sources that are not in the sources pool",
            "missing_sids": [7, 9],
        }
    ]


async def test_rows_of_the_call_complete_the_pool(call: Caller) -> None:
    await write(call, "a.txt")
    await call.attach("b.csv", b"x\n")
    rows: list[dict[str, Any]] = [
        {"sid": 40, "source_type": "file", "artifact_path": "fi:turn_1.files/a.txt"},
        {"sid": 41, "source_type": "attachment", "physical_path": "turn_1/attachments/b.csv"},
        {"sid": 42, "source_type": "web", "url": "https://example.com/"},
    ]
    response = await call(f"# [[S:40-42]]\n{LIST}", turn_id="turn_2", sources_pool=rows)
    assert await call.output() == "turn_1/attachments/b.csv\nturn_1/files/a.txt\n"
    assert (response.ok, notices(response)) == (True, [])


async def test_cited_source_whose_file_is_gone_stops_the_call(call: Caller) -> None:
    rows = [{"sid": 5, "source_type": "file", "physical_path": "turn_0/files/gone.txt"}]
    response = await call("print('[[S:5]]')", sources_pool=rows)
    assert [notice["missing"] for notice in notices(response)] == [["turn_0/files/gone.txt"]]


async def test_row_that_gives_a_source_another_meaning_is_a_conflict(call: Caller) -> None:
    await write(call, "a.txt")
    rows = [{"sid": 1, "source_type": "web", "url": "https://example.com/"}]
    problem = await call.problem("print('ran')", sources_pool=rows)
    assert (problem.code, problem.status) == (ProblemCode.SID_CONFLICT, 409)
    # Nothing ran, so the same call may come again.
    again = await call("print('ran')", tool_call_id=call.last_id)
    assert (again.ok, await call.output()) == (True, "ran\n")


# ---- assets ----


async def test_assets_are_put_where_they_are_asked_for(call: Caller, asset_root: Path) -> None:
    place = asset_root / "logo 1.bin"
    await asyncio.to_thread(place.write_bytes, BYTES)
    assets = [
        {"physical_path": "turn_0/files/b.bin", "base64": base64.b64encode(BYTES).decode()},
        {"physical_path": "turn_0/attachments/t.txt", "text": "Grüße"},
        {"physical_path": "turn_0/files/u.bin", "uri": place.as_uri()},
        {"physical_path": "turn_1/files/own.txt", "text": "mine"},
    ]
    code = f"""
import hashlib, os
for path in ("turn_0/files/b.bin", "turn_0/attachments/t.txt", "turn_0/files/u.bin", "files/own.txt"):
    print(hashlib.sha256(open(path, "rb").read()).hexdigest() == {hashlib.sha256(BYTES).hexdigest()!r},
          os.path.getsize(path), os.access(path, os.W_OK))
"""
    response = await call(code, assets=assets)
    assert response.ok, response.report
    assert await call.output() == "True 10240 False\nFalse 7 False\nTrue 10240 False\nFalse 4 True\n"
    assert ledger(response) == [
        ("assets", "asset", "turn_0/files/b.bin"),
        ("assets", "asset", "turn_0/attachments/t.txt"),
        ("assets", "uri", "turn_0/files/u.bin"),
        ("assets", "asset", "turn_1/files/own.txt"),
    ]
    assert [line.size_bytes for line in response.rehosted] == [10240, 7, 10240, 4]


async def test_asset_wins_over_the_stored_file_of_its_path_and_is_not_stored(call: Caller) -> None:
    await write(call, "a.txt")
    assets = [{"physical_path": "turn_1/files/a.txt", "text": "from the caller"}]
    response = await call("print(open('turn_1/files/a.txt').read())", turn_id="turn_2", assets=assets)
    assert (await call.output(), ledger(response)) == (
        "from the caller\n",
        [("assets", "asset", "turn_1/files/a.txt")],
    )
    assert await call.stored("turn_1/files/a.txt") == b"a.txt"


async def test_own_hosted_uri_is_an_asset_also_in_another_conversation(call: Caller) -> None:
    hosted = (await write(call, "a.txt")).artifacts[0].hosted_uri
    assets = [{"physical_path": "turn_0/files/copy.txt", "uri": hosted}]
    response = await Caller(call.service)("print(open('turn_0/files/copy.txt').read())", assets=assets)
    assert (response.ok, ledger(response)) == (True, [("assets", "uri", "turn_0/files/copy.txt")])


async def test_uri_that_is_not_below_an_allowed_store_is_refused(call: Caller, asset_root: Path) -> None:
    def prepare() -> None:
        for name, target in (("link", "/etc/passwd"), ("folder_link", "/etc"), ("loop", "loop")):
            if not (asset_root / name).is_symlink():
                (asset_root / name).symlink_to(target)

    await asyncio.to_thread(prepare)
    uris = [
        "file:///etc/passwd",
        f"{asset_root.as_uri()}/../../../etc/passwd",
        f"{asset_root.as_uri()}/%2e%2e/secret",
        f"{asset_root.as_uri()}/link",
        f"{asset_root.as_uri()}/folder_link/passwd",
        f"{asset_root.as_uri()}/nothing",
        asset_root.as_uri(),
        f"{asset_root.as_uri()}/loop",
        f"{asset_root.as_uri()}/{'x' * 300}",
        f"{asset_root.as_uri()}/%00",
        "file://[",
        "",
        "http://127.0.0.1/a.txt",
        "s3://bucket/key",
        f"file://localhost{asset_root}/logo.bin",
    ]
    codes = {}
    for uri in uris:
        problem = await call.problem("print(1)", assets=[{"physical_path": "turn_0/files/x", "uri": uri}])
        codes[uri] = (problem.code, problem.status)
    assert codes == dict.fromkeys(uris, (ProblemCode.ASSET_REFUSED, 422))


async def test_hosted_uri_of_another_tenant_is_refused(call: Caller, service: Service) -> None:
    hosted = (await write(call, "a.txt")).artifacts[0].hosted_uri
    stranger = Principal("other", "reports", "registered", "u-17")
    body = call.body("print(1)", assets=[{"physical_path": "turn_0/files/x", "uri": hosted}])
    ticket = await service.calls.submit(
        stranger, ToolCallRequest.model_validate(body), idempotency_key=None, request_id="test", detached=False
    )
    answer = await ticket.answer()
    assert (answer.http_status, json.loads(answer.body)["code"]) == (422, "asset_refused")
