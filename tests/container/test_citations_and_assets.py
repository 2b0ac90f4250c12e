"""What a call cites, and what its caller hands over, is in OUT_DIR before its program starts."""

import asyncio
import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.app.bootstrap import Service
from proofbox.service.identity import Principal
from tests.container.calling import Caller
from tests.container.rehosted import LIST, ledger, notices, write

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

BYTES = bytes(range(256)) * 40

# ---- citations ----


@pytest.mark.parametrize(
    ("token", "brought"),
    [
        ("[[S:10001]]", "a"),
        ("[[S:10001,10003-10004]]", "acd"),
        ("[[ S : 10002 , 10004 ]]", "bd"),
        ("[[s:10003]]", "c"),
        ("[[S:10002\u201310003]]", "bc"),
        ("[[S:10004-10002]]", "bcd"),
        ("[[S:1-999999999]]", "abcd"),
        ("[[S:10001]][[S:10004]] and [[S:10001]]", "ad"),
    ],
)
async def test_citation_in_any_form_brings_the_file_of_its_source(call: Caller, token: str, brought: str) -> None:
    await write(call, "a.txt", "b.txt", "c.txt", "d.txt")
    response = await call(f"TEXT = '''As shown {token}.'''\n{LIST}", turn_id="turn_2")
    cited = [line for line in response.rehosted if line.asked.startswith("[[S:")]
    assert sorted(line.physical_path for line in cited) == [f"turn_1/files/{name}.txt" for name in brought]
    assert {line.source for line in response.rehosted} == {"store"}
    assert (await call.output()).split() == ["a.txt", "b.txt", "c.txt", "d.txt"]


async def test_text_cites_no_source_that_it_becomes_itself(call: Caller) -> None:
    cites = "open('files/{}', 'w').write('As shown [[S:10001]].')"
    first = await call(cites.format("a.md"), ["a.md"])
    second = await call(cites.format("b.md"), ["b.md"], turn_id="turn_2")
    assert [used(first), used(second)] == [[None], [[10_001]]]


def used(response: ToolCallResponse) -> list[list[int] | None]:
    """The sources that the texts of a call cite, by their digests."""
    digests = [json.loads(block.meta["digest"]) for block in response.blocks if "digest" in block.meta]
    return [digest.get("sources_used") for digest in digests]


async def test_cited_sources_that_the_pool_does_not_have_are_told_and_the_code_runs(call: Caller) -> None:
    await write(call, "a.txt")
    response = await call("print('[[S:10001,7,9-12,20000-29999]]')", turn_id="turn_2")
    assert response.ok
    assert notices(response) == [
        {
            "code": "tool_call_warning.missing_sources",
            "message": "sources are cited that are not in the sources pool",
            "missing_sids": [7, 9, 10, 11, 12, "20000-29999"],
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
    assert (await call.output()).split() == ["a.txt", "b.csv"]
    assert (response.ok, notices(response)) == (True, [])


async def test_cited_source_whose_file_is_gone_stops_the_call(call: Caller) -> None:
    rows = [{"sid": 5, "source_type": "file", "physical_path": "turn_0/files/gone.txt"}]
    response = await call("print('[[S:5]]')", sources_pool=rows)
    assert [notice["missing"] for notice in notices(response)] == [["turn_0/files/gone.txt"]]


async def test_row_that_gives_a_source_another_meaning_is_a_conflict(call: Caller) -> None:
    await write(call, "a.txt")
    rows = [{"sid": 10_001, "source_type": "web", "url": "https://example.com/"}]
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
