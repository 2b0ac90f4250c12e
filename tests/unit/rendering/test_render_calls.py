"""Rendering calls from the request to the stored answer, with a sandbox in memory."""

import json

import pytest

from proofbox.service.errors import StoreFullError
from proofbox.service.sandbox.port import Inspection, ProcessOutcome
from tests.support.pipeline import SCOPE, notices, verdicts

PDF = "rendering_tools.write_pdf"
PATH = "turn_1/files/a.pdf"
PARAMS = {"path": "a.pdf", "content": "# Title"}
ASSET = {"physical_path": "turn_1/attachments/a.png", "text": "a picture"}


CONTENT = b"%PDF" * 1_000


def rendered(**said):
    """A renderer that writes its target and prints a result."""

    def program(run):
        run.files[json.loads(run.job.code)["target"]] = CONTENT
        run.print(json.dumps({"ok": True, "warnings": [], "facts": {"pages": 1}, **said}) + "\n")

    return program


@pytest.fixture(autouse=True)
def renderer(pipeline):
    pipeline.engine.program = rendered()


async def test_a_document_is_rendered_and_stored_as_external(pipeline):
    answer = await pipeline.answer(PDF, PARAMS)
    assert (answer["ok"], answer["ret"], verdicts(answer)) == (
        True,
        {"warnings": [], "facts": {"pages": 1}},
        {PATH: "produced"},
    )
    assert await pipeline.stored(PATH) == CONTENT
    [row] = await pipeline.sources.rows(SCOPE)
    assert row.file.physical == PATH


async def test_the_renderer_gets_content_sources_and_what_is_missing(pipeline):
    params = {**PARAMS, "content": "![a](turn_0/files/gone.png) [[S:7]]"}
    row = {"sid": 7, "title": "A page", "url": "https://example.com", "source_type": "web"}
    answer = await pipeline.answer(PDF, params, sources_pool=[row])
    job = json.loads(pipeline.engine.jobs[0].code)
    assert (job["content"], job["missing"], [source["sid"] for source in job["sources"]]) == (
        params["content"],
        ["turn_0/files/gone.png"],
        [7],
    )
    assert [notice["missing"] for notice in notices(answer).values()] == [["turn_0/files/gone.png"]]
    line = await pipeline.audit()
    assert (line.missing, [source.sid for source in line.sources]) == (["turn_0/files/gone.png"], [7])


async def test_a_strict_call_with_a_missing_file_renders_nothing(pipeline):
    params = {**PARAMS, "content": "![a](turn_0/files/gone.png)", "strict": True}
    answer = await pipeline.answer(PDF, params)
    assert (answer["error"]["code"], pipeline.engine.jobs) == ("missing_assets", [])


async def test_a_blank_document_is_refused(pipeline):
    answer = await pipeline.answer(PDF, {**PARAMS, "content": " \n"})
    assert (answer["error"]["code"], answer["blocks"][1]["type"]) == ("empty_content", "react.notice")


@pytest.mark.parametrize(
    "name",
    [
        *("reprot.md", "files/reprot.md", "./files/reprot.md", "attachments/reprot.md", "turn_9/reprot.md"),
        *("files/my reprot.md", "files/reprot", "REPROT.MD", "reprot.docx\n", "files/../reprot.md"),
    ],
)
async def test_a_content_that_is_the_name_of_no_file_is_refused_with_near_names(pipeline, name):
    await pipeline.save("turn_0/files/report.md", b"# Report")
    answer = await pipeline.answer(PDF, {**PARAMS, "content": name})
    assert (answer["error"]["code"], pipeline.engine.jobs) == ("param_ref_not_visible", [])
    assert "report.md" in answer["text"] or ".." in name


async def test_a_content_that_is_the_name_of_no_text_is_refused(pipeline):
    await pipeline.save("turn_0/files/my chart.png", b"\x89PNG\r\n\x1a\n\xff")
    answer = await pipeline.answer(PDF, {**PARAMS, "content": "my chart.png"})
    assert (answer["error"]["code"], pipeline.engine.jobs) == ("param_ref_not_visible", [])


@pytest.mark.parametrize(
    "text",
    [
        *("Total 4.5", "Node.js", "The figures are in reprot.md", "# reprot.md", "https://example.com/page.html"),
        *("files/ has reports", "see a//b.md", "reprot.md\nis missing", "Report"),
    ],
)
async def test_a_line_that_is_no_name_is_rendered(pipeline, text):
    assert (await pipeline.answer(PDF, {**PARAMS, "content": text}))["ok"]
    assert json.loads(pipeline.engine.jobs[0].code)["content"] == text


async def test_a_content_given_by_its_path_decides_the_format(pipeline):
    await pipeline.save("turn_0/files/page.html", b"<p>by reference</p>")
    await pipeline.answer(PDF, {**PARAMS, "content": "turn_0/files/page.html"})
    job = json.loads(pipeline.engine.jobs[0].code)
    assert (job["content"], job["source_format"]) == ("<p>by reference</p>", "html")
    assert [used.param for used in (await pipeline.audit()).references] == ["content"]


async def test_an_error_of_the_renderer_is_the_answers(pipeline):
    def program(run):
        run.print(json.dumps({"ok": False, "error": {"code": "too_many_pages", "message": "over 100"}}))
        return ProcessOutcome(exit_code=1, output=tuple(run.printed))

    pipeline.engine.program = program
    answer = await pipeline.answer(PDF, PARAMS)
    assert (answer["ok"], answer["error"]["code"], answer["error"]["message"]) == (
        False,
        "too_many_pages",
        "over 100",
    )


async def test_a_document_that_fails_its_check_is_stored_with_a_warning(pipeline):
    pipeline.engine.inspections["a.pdf"] = Inspection(ok=False, mime="application/pdf", problem="it is cut")
    answer = await pipeline.answer(PDF, PARAMS)
    assert (await pipeline.stored(PATH), list(verdicts(answer))) == (None, [])
    assert answer["error"]["message"] == f"{PATH}: it is cut"


@pytest.mark.parametrize("step", ["put", "run", "collect"])
async def test_a_lost_sandbox_is_an_answer(pipeline, step):
    pipeline.engine.is_lost_at = step
    answer = await pipeline.answer(PDF, PARAMS)
    assert (answer["ok"], answer["error"]["code"], answer["sandbox"]["engine"]) == (False, "sandbox_failed", "fake")


async def test_a_path_of_another_turn_is_rewritten(pipeline):
    answer = await pipeline.answer(PDF, {**PARAMS, "path": "turn_0/files/a.pdf"})
    assert ("protocol_violation.path_rewritten" in notices(answer), await pipeline.stored(PATH)) == (True, CONTENT)


async def test_a_full_disk_at_an_asset_is_store_full(pipeline):
    pipeline.artifacts.full_names = ["asset-0"]
    answer = await pipeline.answer(PDF, PARAMS, assets=[ASSET])
    assert (answer["status"], answer["code"]) == (507, "store_full")


async def test_a_full_disk_at_the_document_is_store_full(pipeline):
    pipeline.artifacts.saves_nothing = StoreFullError("no space is left for the file")
    answer = await pipeline.answer(PDF, PARAMS)
    assert (answer["status"], answer["code"]) == (507, "store_full")
