"""The blocks of exec calls, block for block as committed in ``golden/``, and what a content block carries.

``PROOFBOX_TEST_GOLDEN=write`` writes the committed files anew; read the difference before you commit it.
"""

import asyncio
import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.app.bootstrap import Service
from proofbox.service.timeline.block_text import rendered
from tests.container.calling import Caller
from tests.container.normalising import normalised, normalised_view

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

GOLDEN = Path(__file__).parent / "golden"
TRUNCATED = "\n...[truncated]"

WRITE_PDF = """\
from pypdf import PdfWriter

pdf = PdfWriter()
pdf.add_metadata({"/Title": "Quarterly summary", "/Subject": "x" * 400})
pdf.add_blank_page(595, 842)
pdf.write("files/summary.pdf")
"""
WRITE_XLSX = """\
from openpyxl import Workbook

book = Workbook()
book.active.append(["month", "sales"])
book.active.append(["May", 12])
book.save("files/data.xlsx")
"""
WRITE_TEXT = """\
with open("files/notes.txt", "w") as notes:
    notes.write("Grüße — 12 rows\\n")
"""
PDF = {"filename": "summary.pdf", "description": "the summary"}
XLSX = {"filename": "files/data.xlsx", "description": "the numbers"}
TEXT = {"filename": "turn_1/files/notes.txt", "description": "the notes"}
FAIL = 'print("all is written")\nraise ValueError("the numbers do not add up")\n'

CASES: dict[str, tuple[str, list[dict[str, str]]]] = {
    "a_all_produced_runtime_error": (WRITE_PDF + WRITE_TEXT + FAIL, [PDF, TEXT]),
    "b_partial_no_runtime_error": (WRITE_PDF, [XLSX, PDF]),
    "c_partial_runtime_error": (WRITE_TEXT + FAIL + WRITE_XLSX, [TEXT, XLSX]),
    "mixed_pdf_text_xlsx": (WRITE_PDF + WRITE_TEXT + WRITE_XLSX, [PDF, TEXT, XLSX]),
    "refused_contract": (WRITE_TEXT, [{**TEXT, "filename": "../notes.txt"}]),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def run_case(service: Service, case: str, view: str) -> ToolCallResponse:
    # A conversation of its own: nothing is edited, and the keys are the same each time.
    call = Caller(service, conversation=f"golden-{view}-{case}")
    code, contract = CASES[case]
    notes = "I write the report and check it."
    return await call(code, contract, tool_call_id="tc_1", prog_name="report", notes=notes)


def committed(name: str, actual: str) -> str:
    path = GOLDEN / name
    if os.environ.get("PROOFBOX_TEST_GOLDEN") == "write":
        path.write_text(actual, encoding="utf-8")
    return path.read_text(encoding="utf-8")


async def test_response_is_the_committed_one(service: Service, case: str) -> None:
    response = await run_case(service, case, "blocks")
    actual = json.dumps(normalised(response), ensure_ascii=False, indent=2) + "\n"
    assert actual == committed(f"{case}.json", actual)


async def test_rendered_view_is_the_committed_one_and_holds_no_hosting_field(service: Service, case: str) -> None:
    response = await run_case(service, case, "view")
    view = rendered(response.blocks)
    hosting = [v for artifact in response.artifacts for v in (artifact.hosted_uri, artifact.rn, artifact.key) if v]
    assert [value for value in [*hosting, "hosted_uri", '"rn"', '"key"'] if value in view] == []
    actual = normalised_view(view, response)
    assert actual == committed(f"{case}.txt", actual)


async def test_failed_program_is_http_200_and_its_replay_is_the_same_answer_without_a_second_run(
    http: httpx.AsyncClient, call: Caller
) -> None:
    body = call.body("open('files/notes.txt', 'w').write('x')\nraise ValueError", [TEXT])
    first = await http.post("/v1/tool-calls", json=body)
    again = await http.post("/v1/tool-calls", json=body)
    assert (first.status_code, first.json()["ok"], first.json()["error"]["code"]) == (200, False, "nonzero_exit")
    assert (again.status_code, again.headers["Idempotent-Replayed"], again.text) == (200, "true", first.text)
    path = FilePath.from_physical("turn_1/files/notes.txt")
    stored = await call.service.artifacts.latest(call.scope, path)
    assert stored is not None
    assert stored.version == 1


async def test_times_of_blocks_are_utc_with_milliseconds_and_never_go_back(call: Caller) -> None:
    response = await call(WRITE_TEXT, [TEXT], notes="n")
    times = [block.ts for block in response.blocks]
    assert [len(time) for time in times] == [24] * 6
    assert times == sorted(times)


def contents(response: ToolCallResponse) -> dict[str, Any]:
    """The content blocks by path."""
    return {block.path: block for block in response.blocks if "digest" in block.meta}


def artifact_of(response: ToolCallResponse, rel: str) -> ArtifactResult:
    [found] = [a for a in response.artifacts if a.physical_path == f"turn_1/files/{rel}"]
    return found


@pytest.mark.parametrize(
    ("written", "carried"),
    [
        ("a" * 20_480, "a" * 20_480),
        ("a" * 20_481, "a" * 20_480 + TRUNCATED),
        ("a" * 20_479 + "é" + "b", "a" * 20_479 + TRUNCATED),
        ("a" * 20_478 + "é" + "b", "a" * 20_478 + "é" + TRUNCATED),
        ("a" * 20_477 + "\U0001f600" * 3, "a" * 20_477 + TRUNCATED),
        ("a" * 20_476 + "\U0001f600" * 3, "a" * 20_476 + "\U0001f600" + TRUNCATED),
    ],
    ids=["fits", "one_more", "two_bytes_across", "two_bytes_before", "four_bytes_across", "four_bytes_before"],
)
async def test_text_is_cut_at_20480_bytes_at_a_character_boundary(call: Caller, written: str, carried: str) -> None:
    code = f"open('files/long.txt', 'w', encoding='utf-8').write({written!r})"
    response = await call(code, ["long.txt"])
    assert response.ok, response.report
    assert contents(response)["fi:turn_1.files/long.txt"].text == carried
    assert await call.text("long.txt") == written


async def test_base64_is_carried_for_pdf_and_images_only(call: Caller) -> None:
    code = f"""{WRITE_PDF}{WRITE_XLSX}
from PIL import Image
Image.effect_noise((40, 30), 50).save("files/noise.png")
import zipfile
zipfile.ZipFile("files/pack.zip", "w").writestr("a.txt", "a")
open("files/table.csv", "w").write("a,b\\n1,2\\n")
"""
    names = ["summary.pdf", "data.xlsx", "noise.png", "pack.zip", "table.csv"]
    response = await call(code, names)
    assert response.ok, response.report
    carried = {path: (b.mime, b.text is not None, b.base64 is not None) for path, b in contents(response).items()}
    sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    assert carried == {
        "fi:turn_1.files/summary.pdf": ("application/pdf", False, True),
        "fi:turn_1.files/data.xlsx": (sheet, False, False),
        "fi:turn_1.files/noise.png": ("image/png", False, True),
        "fi:turn_1.files/pack.zip": ("application/zip", False, False),
        "fi:turn_1.files/table.csv": ("text/csv", True, False),
    }
    png = base64.b64decode(contents(response)["fi:turn_1.files/noise.png"].base64)
    assert hashlib.sha256(png).hexdigest() == artifact_of(response, "noise.png").sha256


async def test_internal_file_has_blocks_but_no_hosting_field(call: Caller) -> None:
    response = await call(WRITE_TEXT, [{**TEXT, "visibility": "internal"}])
    block = contents(response)["fi:turn_1.files/notes.txt"]
    assert sorted(block.meta) == ["digest", "physical_path", "tool_call_id"]
    assert json.loads(block.meta["digest"])["visibility"] == "internal"
    artifact = artifact_of(response, "notes.txt")
    assert (artifact.hosted_uri, artifact.rn, artifact.key) == (None, None, None)
    assert await call.text("notes.txt") == "Grüße — 12 rows\n"


async def test_external_file_is_hosted_where_its_block_says(call: Caller, service: Service) -> None:
    response = await call(WRITE_TEXT, [TEXT])
    block = contents(response)["fi:turn_1.files/notes.txt"]
    artifact = artifact_of(response, "notes.txt")
    hosted = (block.meta["hosted_uri"], block.meta["rn"], block.meta["key"])
    assert hosted == (artifact.hosted_uri, artifact.rn, artifact.key)
    place = service.settings.data_dir / block.meta["hosted_uri"].removeprefix("file://proofbox/")
    assert await asyncio.to_thread(place.read_text) == "Grüße — 12 rows\n"


async def test_digest_of_content_block_is_the_text_of_its_meta_block(call: Caller) -> None:
    response = await call(WRITE_TEXT + WRITE_PDF, [TEXT, PDF])
    results = [block for block in response.blocks if block.type == "react.tool.result"]
    pairs = list(zip(results[1::2], results[2::2], strict=True))
    assert [meta.text for meta, _ in pairs] == [content.meta["digest"] for _, content in pairs]


async def test_file_that_is_not_in_the_contract_is_reported_kept_internal_and_has_no_block(call: Caller) -> None:
    code = f"{WRITE_TEXT}\nopen('files/scratch.txt', 'w').write('x')"
    response = await call(code, [TEXT])
    assert response.ok
    assert response.report == (
        "Runtime error: none\n"
        "Produced files:\n"
        "- turn_1/files/notes.txt\n"
        "Not in the contract: turn_1/files/scratch.txt"
    )
    scratch = artifact_of(response, "scratch.txt")
    hosting = (scratch.hosted_uri, scratch.rn, scratch.key)
    assert (scratch.visibility, scratch.message, hosting) == ("internal", "not in the contract", (None, None, None))
    assert list(contents(response)) == ["fi:turn_1.files/notes.txt"]
    assert await call.text("scratch.txt") == "x"


@pytest.mark.parametrize(
    ("workspace", "what_becomes"),
    [
        ("full", "only in the working directory of later calls, where no other tool sees them"),
        ("none", "not kept"),
    ],
)
async def test_of_many_files_without_promise_50_are_listed_500_stored_and_the_rest_is_told(
    call: Caller, workspace: str, what_becomes: str
) -> None:
    code = f"{WRITE_TEXT}\nfor n in range(510): open(f's{{n:03}}.txt', 'w').write('x')"
    response = await call(code, [TEXT], workspace=workspace)
    listed = response.report.splitlines()[-1]
    shown = ", ".join(f"turn_1/files/s{n:03}.txt" for n in range(50))
    assert listed == f"Not in the contract: {shown} and 460 more, 10 of them {what_becomes}"
    assert (len(response.artifacts), len(contents(response))) == (501, 1)
    assert await call.stored("turn_1/files/s499.txt") == b"x"
    assert await call.stored("turn_1/files/s500.txt") is None


async def test_second_version_of_a_path_is_edited_and_the_first_is_not(call: Caller) -> None:
    first = await call("open('files/notes.txt', 'w').write('one')", [TEXT])
    second = await call("open('files/notes.txt', 'a').write(' two')", [TEXT])
    digests = [json.loads(contents(r)["fi:turn_1.files/notes.txt"].meta["digest"]) for r in (first, second)]
    assert [digest.get("edited") for digest in digests] == [None, True]
    assert contents(second)["fi:turn_1.files/notes.txt"].text == "one two"
    assert await call.text("notes.txt") == "one two"


async def test_path_that_the_callers_own_timeline_holds_is_edited(call: Caller) -> None:
    first = await call(WRITE_TEXT, [TEXT])
    elsewhere = Caller(call.service)
    timeline = [block.model_dump(exclude_none=True) for block in first.blocks]
    second = await elsewhere(WRITE_TEXT, [TEXT], timeline=timeline)
    digest = json.loads(contents(second)["fi:turn_1.files/notes.txt"].meta["digest"])
    assert digest["edited"] is True
