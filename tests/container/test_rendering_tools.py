"""The rendering tools through the real service: blocks, notices, assets, sources, files that others open."""

import hashlib
import io
import itertools
import json
import re
import zipfile

import pypdf
import pypdfium2
import pytest
from docx import Document
from PIL import Image
from pptx import Presentation

from proofbox.contracts.paths import FilePath
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.errors import InvalidRequestError
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_text import rendered

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

REPORT = """\
# Quarterly report

Revenue grew **12 %**, see [[S:1]].

| Region | Q1 | Q2 |
|---|---:|---:|
| North | 120 | 134 |

## Method

- one
  - nested
- two

$$ \\sigma^2 = \\frac{1}{n} $$
"""
WORDS = ["Quarterly", "report", "Revenue", "grew", "Region", "North", "134", "Method", "one", "nested", "two"]
SOURCE = {"sid": 1, "source_type": "web", "title": "The figures", "url": "https://figures.example/q"}
_numbers = itertools.count(1)


class Renderer:
    """A conversation whose documents are rendered."""

    def __init__(self, service):
        self.service = service
        self.conversation = f"rendering-{next(_numbers)}"

    async def answer(self, output, content, path=None, request=None, **params):
        fields = {
            "tool_id": f"rendering_tools.write_{output}",
            "tool_call_id": f"render_{next(_numbers)}",
            "conversation_id": self.conversation,
            "turn_id": "turn_2",
            "params": {"path": path or f"report.{output}", "content": content, **params},
            **(request or {}),
        }
        ticket = await self.service.calls.submit(
            self.service.principal,
            ToolCallRequest.model_validate(fields),
            idempotency_key=None,
            request_id="test",
            detached=False,
        )
        return await ticket.answer()

    async def __call__(self, output, content, path=None, request=None, **params):
        answer = await self.answer(output, content, path, request, **params)
        assert not answer.is_problem, answer.body
        return ToolCallResponse.model_validate_json(answer.body)

    async def bytes_of(self, response):
        (artifact,) = response.artifacts
        store = self.service.artifacts
        scope = ConversationKey(self.service.principal, self.conversation)
        async with store.staging() as staging:
            local = await store.fetch_uri(scope, artifact.hosted_uri, staging)
            return local.read_bytes()


@pytest.fixture
def render(service):
    return Renderer(service)


def kinds(response):
    return [(block.type, block.mime, block.text is not None, block.base64 is not None) for block in response.blocks]


async def test_a_pdf_has_a_meta_block_and_a_binary_block_and_its_words(render):
    response = await render("pdf", REPORT, format="markdown", request={"sources_pool": [SOURCE], "notes": "n"})
    assert kinds(response) == [
        ("react.notes", "text/markdown", True, False),
        ("react.tool.call", "application/json", True, False),
        ("react.tool.result", "application/json", True, False),
        ("react.tool.result", "application/pdf", False, True),
    ]
    digest = json.loads(response.blocks[2].text)
    assert (digest["artifact_path"], digest["mime"], digest["sources_used"]) == (
        "fi:turn_2.files/report.pdf",
        "application/pdf",
        [1],
    )
    content = await render.bytes_of(response)
    text = pypdf.PdfReader(io.BytesIO(content)).pages[0].extract_text()
    assert [word for word in [*WORDS, "The", "figures"] if word not in text] == []
    assert len(pypdfium2.PdfDocument(content)) == 1


async def test_a_png_is_a_picture_of_the_document(render):
    response = await render("png", "<h1 style='color:red'>Hello</h1>", width=400, device_scale_factor=1)
    assert kinds(response)[-1] == ("react.tool.result", "image/png", False, True)
    with Image.open(io.BytesIO(await render.bytes_of(response))) as picture:
        picture.load()
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1_000_000)}
    assert any(red > 200 and green < 60 and blue < 60 for red, green, blue in colours)


async def test_a_docx_has_a_meta_block_only_and_native_structure(render):
    response = await render("docx", REPORT, request={"sources_pool": [SOURCE]})
    assert [kind[0] for kind in kinds(response)] == ["react.tool.call", "react.tool.result"]
    document = Document(io.BytesIO(await render.bytes_of(response)))
    headings = [p.text for p in document.paragraphs if p.style.name.startswith("Heading")]
    assert headings[:2] == ["Quarterly report", "Method"]
    assert [cell.text for cell in document.tables[0].rows[1].cells] == ["North", "120", "134"]


async def test_a_pptx_has_native_titles_tables_and_notes(render):
    deck = "# First\n\n- one\n- two\n\n::: notes\nsay hello\n:::\n\n# Second\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    response = await render("pptx", deck, format="markdown")
    slides = list(Presentation(io.BytesIO(await render.bytes_of(response))).slides)
    titles = [slide.shapes.title.text for slide in slides if slide.shapes.title is not None]
    assert titles == ["First", "Second"]
    assert slides[0].notes_slide.notes_text_frame.text == "say hello"
    assert any(shape.has_table for shape in slides[1].shapes)


async def test_a_picture_of_an_earlier_turn_is_rehosted_and_shown(render, call):
    call.conversation = render.conversation
    await call(
        "from PIL import Image; Image.new('RGB', (40, 30), (0, 128, 0)).save('files/green.png')",
        ["green.png"],
        turn_id="turn_1",
    )
    response = await render("docx", "![green](turn_1/files/green.png)")
    assert [line.physical_path for line in response.rehosted] == ["turn_1/files/green.png"]
    with zipfile.ZipFile(io.BytesIO(await render.bytes_of(response))) as package:
        assert [name for name in package.namelist() if name.startswith("word/media/")] != []


async def test_the_logo_beside_a_theme_file_of_an_earlier_turn_is_rehosted_and_shown(render, call):
    call.conversation = render.conversation
    await call(
        "from PIL import Image; Image.new('RGB', (40, 30), (0, 128, 0)).save('files/logo.png'); "
        "open('files/house.yaml', 'w').write('logo: logo.png')",
        ["house.yaml", "logo.png"],
        turn_id="turn_1",
    )
    response = await render("docx", "# Title", theme="turn_1/files/house.yaml")
    assert [line.physical_path for line in response.rehosted] == [
        "turn_1/files/house.yaml",
        "turn_1/files/logo.png",
    ]
    with zipfile.ZipFile(io.BytesIO(await render.bytes_of(response))) as package:
        assert len([name for name in package.namelist() if name.startswith("word/media/")]) == 1


async def test_a_missing_picture_leaves_a_notice_and_a_placeholder_or_with_strict_an_error(render):
    content = "# Title\n\n![plan](turn_1/files/plan.png)"
    response = await render("pdf", content)
    assert response.ok
    notices = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert [(notice["code"], notice["missing"]) for notice in notices] == [
        ("tool_call_error.missing_assets", ["turn_1/files/plan.png"])
    ]
    text = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response))).pages[0].extract_text()
    assert "plan.png" in text
    strict = await render("pdf", content, strict=True)
    assert (strict.ok, strict.error.code, strict.sandbox) == (False, "missing_assets", None)


@pytest.mark.parametrize("spelled", ["lost.png", "turn_1/files/lost.png"])
async def test_a_picture_whose_stored_bytes_are_lost_is_missing_and_so_is_a_content(
    render, call, spelled, take_away
):
    call.conversation = render.conversation
    code = "from PIL import Image; Image.new('RGB', (41, 30)).save('lost.png'); open('d.md', 'w').write('# Lost')"
    made = await call(f"{code}\n# {spelled}", ["lost.png", "d.md"])
    for artifact in made.artifacts:
        for blob in call.service.settings.data_dir.joinpath("blobs").rglob(artifact.sha256):
            take_away(blob)
    response = await render("pdf", f"# Title\n\n![plan]({spelled})")
    [notice] = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert (notice["code"], notice["missing"]) == ("tool_call_error.missing_assets", ["turn_1/files/lost.png"])
    assert "the stored bytes of turn_1/files/lost.png are missing or damaged" in response.text
    refused = await render("pdf", "d.md")
    assert refused.error.code == "param_ref_not_visible"
    assert "its stored bytes are missing or damaged" in refused.text


async def test_sources_that_nobody_knows_are_told(render):
    response = await render("pdf", "As [[S:7]] says.")
    notices = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert [(notice["code"], notice["missing_sids"]) for notice in notices] == [
        ("tool_call_warning.missing_sources", [7])
    ]


async def test_a_long_content_is_shortened_in_the_call_block(render):
    response = await render("pdf", "# Long\n\n" + "word " * 200)
    (call_block,) = [block for block in response.blocks if block.type == "react.tool.call"]
    content = json.loads(call_block.text)["params"]["content"]
    assert content == ("# Long\n\n" + "word " * 200)[:100] + "... [see fi:turn_2.files/report.pdf]"


async def test_a_second_rendering_of_a_path_is_an_edit(render):
    await render("docx", "one")
    response = await render("docx", "two")
    assert json.loads(response.blocks[-1].text)["edited"] is True


@pytest.mark.parametrize(
    ("path", "code"),
    [("../up.pdf", "unsafe_path"), ("/etc/x.pdf", "unsafe_path"), ("table.xlsx", "invalid_filename")],
)
async def test_a_path_that_cannot_be_is_refused_and_nothing_is_rendered(render, path, code):
    response = await render("pdf", "x", path)
    assert (response.ok, response.error.code, response.sandbox) == (False, code, None)


async def test_a_path_of_another_turn_is_rewritten_with_a_notice(render):
    response = await render("pdf", "x", "turn_1/files/old.pdf")
    notices = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert [(n["code"], n["original"], n["rewritten"]) for n in notices] == [
        ("protocol_violation.path_rewritten", "turn_1/files/old.pdf", "turn_2/files/old.pdf")
    ]
    assert response.artifacts[0].physical_path == "turn_2/files/old.pdf"


async def test_nothing_of_the_machine_or_the_network_gets_into_a_document(render):
    hostile = (
        "<base href='file:///etc/'><h1>x</h1><img src='file:///etc/passwd'><img src='http://203.0.113.5/a.png'>"
        "<link rel=attachment href='file:///etc/passwd'><style>@import url(http://203.0.113.5/a.css);"
        "body{background:url(file:///etc/hosts)}</style><iframe src='/proc/self/environ'></iframe>"
    )
    response = await render("pdf", hostile, format="html")
    assert response.ok
    content = await render.bytes_of(response)
    reader = pypdf.PdfReader(io.BytesIO(content))
    text = "".join(page.extract_text() for page in reader.pages)
    assert ("root:" in text, "PATH=" in text, list(reader.attachments)) == (False, False, [])
    assert b"root:x:0" not in content


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"format": "rtf"}, "params.format"),
        ({"colour": "red"}, "params.colour"),
        ({"content": "\u00e9" * (5 * 1024 * 1024 + 1)}, "params.content"),
        ({"margins": {"top": "wide"}}, "params.margins.top"),
        ({"pdf_variant": "pdf/x-4"}, "params.pdf_variant"),
    ],
)
async def test_a_parameter_that_is_not_in_the_schema_is_a_mistake_of_the_model(render, params, field):
    response = await render("pdf", params.pop("content", "x"), **params)
    assert (response.ok, response.error.code, response.sandbox) == (False, "invalid_params", None)
    [notice] = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert [error["field"] for error in notice["errors"]] == [field]


async def test_a_document_of_the_largest_size_is_answered_by_the_renderer_whatever_json_makes_of_it(render):
    response = await render("docx", '"' * (10 * 1024 * 1024), format="markdown")
    assert (response.ok, response.error.code) == (False, "content_too_large")


async def test_a_pdf_has_the_pages_lines_attachments_and_standard_that_were_asked_for(render, call):
    call.conversation = render.conversation
    await call("open('files/figures.csv', 'w').write('a,b\\n1,2\\n')", ["figures.csv"], turn_id="turn_1")
    response = await render(
        "pdf",
        "# One\n\n<div class='page-break'></div>\n\n# Two\n\n<div class='page-break'></div>\n\n# Three\n",
        title="Plan",
        page_size="100mm 80mm",
        margins={"top": "15mm", "bottom": "15mm"},
        header={"right": "{title}, {page} of {pages}"},
        footer="kept",
        pages="2-3",
        attachments=["turn_1/files/figures.csv"],
        pdf_variant="pdf/a-3b",
        numbered_sections=True,
    )
    reader = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response)))
    texts = [" ".join(page.extract_text().split()) for page in reader.pages]
    assert [("Plan, 2 of 3" in texts[0], "Plan, 3 of 3" in texts[1]), "kept" in texts[0]] == [(True, True), True]
    assert ("2 Two" in texts[0], "3 Three" in texts[1]) == (True, True)
    assert [round(float(side)) for side in reader.pages[0].mediabox[2:]] == [283, 227]
    assert dict(reader.attachments) == {"figures.csv": [b"a,b\n1,2\n"]}
    assert b"pdfaid:part" in reader.trailer["/Root"]["/Metadata"].get_data()


async def test_a_locked_pdf_is_checked_with_its_password(render):
    response = await render("pdf", REPORT, password="s3cret", permissions="print", watermark="DRAFT")
    assert (response.ok, str(response.artifacts[0].verdict)) == (True, "produced"), response.report
    written = await render.bytes_of(response)
    with pytest.raises(pypdfium2.PdfiumError, match=r"[Pp]assword"):
        pypdfium2.PdfDocument(written)
    text = pypdfium2.PdfDocument(written, password="s3cret")[0].get_textpage().get_text_bounded()
    assert "Revenue" in text


async def test_title_subtitle_author_and_date_stand_on_a_cover(render):
    cover = {"title": "Plan", "subtitle": "Three steps", "author": "Ada", "date": "May 2026", "cover": True}
    response = await render("pdf", "## One\n\ntext", **cover, css="h2{color:#c01234}")
    reader = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response)))
    assert [page.extract_text().split()[0] for page in reader.pages] == ["Plan", "One"]
    assert all(words in reader.pages[0].extract_text() for words in ("Three steps", "May 2026"))
    written = await render("docx", "## One\n\ntext", **cover)
    names = [paragraph.style.name for paragraph in Document(io.BytesIO(await render.bytes_of(written))).paragraphs]
    assert names[:3] == ["Cover Title", "Subtitle", "Byline"]


async def test_a_page_without_its_format_is_read_as_html(render):
    page = "<!DOCTYPE html>\n<html>\n<body>\n\n    <h1>Title</h1>\n\n    <p>Words</p>\n</body>\n</html>"
    response = await render("docx", page)
    assert [warning["code"] for warning in response.ret["warnings"]] == ["format_recognised"]
    paragraphs = Document(io.BytesIO(await render.bytes_of(response))).paragraphs
    assert [(paragraph.style.name, paragraph.text) for paragraph in paragraphs] == [
        ("Heading 1", "Title"),
        ("Normal", "Words"),
    ]


async def test_strict_also_fails_for_a_cited_source_whose_file_is_gone(render):
    row = {"sid": 3, "source_type": "file", "title": "Lost", "physical_path": "turn_1/files/lost.png"}
    response = await render("pdf", "As [[S:3]] shows.", strict=True, request={"sources_pool": [row]})
    assert (response.ok, response.error.code, response.sandbox) == (False, "missing_assets", None)
    assert "turn_1/files/lost.png" in response.error.message


async def test_a_rendering_tool_takes_no_code(render):
    with pytest.raises(InvalidRequestError) as refused:
        await render("pdf", "x", request={"code": "print(1)"})
    assert refused.value.message.startswith("code:")


# ---- what went wrong is in a block that a model reads ----


@pytest.mark.parametrize(
    ("output", "content", "params", "code"),
    [
        ("png", "graph TD; A--", {"format": "mermaid"}, "diagram_failed"),
        ("pdf", "# T\n\n![x](https://img.example/a.png)", {}, "remote_refused"),
        ("docx", "# T\n\n![x](nowhere.png)", {}, "missing_asset"),
        ("pdf", "<script>draw()</script><p>x</p>", {"format": "html"}, "script_ignored"),
        ("docx", "```chart\n{]\n```", {}, "chart_failed"),
        ("pptx", "# T\n\n" + "- a long point of the list\n" * 60, {"format": "markdown"}, "slide_split"),
        ("pdf", "<!-- nothing -->", {}, "blank_document"),
        ("pdf", "<p style='position:absolute;top:2000px'>below</p>", {"format": "html"}, "content_lost"),
    ],
)
async def test_a_warning_of_the_renderer_is_in_the_result_block_that_a_model_reads(
    render, output, content, params, code
):
    response = await render(output, content, **params)
    assert response.ok
    said = [warning for warning in response.ret["warnings"] if warning["code"] == code]
    assert said != [], response.ret
    [report] = [block for block in response.blocks if block.mime == "text/markdown"]
    assert (report.type, report.path) == ("react.tool.result", f"tc:turn_2.{report.call_id}.result")
    lines = report.text.splitlines()
    assert lines[:3] == ["ok", f"- turn_2/files/report.{output}", "Warnings:"]
    assert f"- {code}: {said[0]['message']}"[:400] in lines
    view = rendered(response.blocks)
    call_id = response.blocks[0].call_id
    assert view.count(f"[TOOL RESULT {call_id}].summary rendering_tools.write_{output}") == 1
    assert f"- {code}: " in view
    assert "hosted_uri" not in view


async def test_a_rendering_without_warnings_has_no_report_block(render):
    response = await render("docx", REPORT, request={"sources_pool": [SOURCE]})
    assert (response.ret["warnings"], len(response.blocks)) == ([], 2)


async def test_of_many_warnings_the_block_has_some_and_their_number(render):
    pictures = "\n\n".join(f"![x](https://img.example/{number}.png)" for number in range(30))
    response = await render("docx", pictures)
    [report] = [block for block in response.blocks if block.mime == "text/markdown"]
    assert len(report.text.splitlines()) == 3 + 20 + 1
    assert report.text.endswith(f"\n- and {len(response.ret['warnings']) - 20} more")


@pytest.mark.parametrize("content", ["", " \n\t"])
async def test_a_blank_content_is_a_mistake_of_the_model(render, content):
    response = await render("pdf", content)
    assert (response.ok, response.error.code, response.sandbox) == (False, "empty_content", None)
    [notice] = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert (notice["code"], notice["error"]) == ("tool_call_error", "empty_content")


async def test_what_is_not_a_drawing_is_no_svg(render):
    response = await render("png", "not svg", format="svg")
    assert (response.ok, response.error.code) == (False, "invalid_svg")


# ---- content by reference ----


async def test_a_file_is_rendered_by_its_path_and_the_call_block_keeps_the_path(render, call):
    call.conversation = render.conversation
    await call(f"open('files/rep.md', 'w').write({REPORT!r})", ["rep.md"], turn_id="turn_1")
    response = await render("pdf", "fi:turn_1.files/rep.md", request={"sources_pool": [SOURCE]})
    assert response.ok, response.report
    text = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response))).pages[0].extract_text()
    assert [word for word in [*WORDS, "figures"] if word not in text] == []
    assert "fi:turn_1" not in text
    assert json.loads(response.blocks[0].text)["params"]["content"] == "fi:turn_1.files/rep.md"
    assert json.loads(response.blocks[1].text)["sources_used"] == [1]


async def test_pictures_that_a_referenced_text_names_are_rehosted(render, call):
    call.conversation = render.conversation
    code = "from PIL import Image; Image.new('RGB', (40, 30), (0, 128, 0)).save('files/green.png')\n"
    code += "open('files/rep.md', 'w').write('# T\\n\\n![g](turn_1/files/green.png)')"
    await call(code, ["green.png", "rep.md"], turn_id="turn_1")
    response = await render("docx", "ref:fi:turn_1.files/rep.md")
    assert [line.physical_path for line in response.rehosted] == ["turn_1/files/green.png"]
    assert response.ret["warnings"] == []


@pytest.mark.parametrize(
    ("name", "output", "given", "source_format"),
    [
        ("deck.md", "pptx", {}, "markdown"),
        ("page.html", "pdf", {}, "html"),
        ("flow.mmd", "png", {}, "mermaid"),
        ("logo.svg", "png", {}, "svg"),
        ("deck.md", "pptx", {"format": "html"}, "html"),
        ("flow.mmd", "docx", {}, "markdown"),
    ],
)
async def test_the_extension_of_a_referenced_file_gives_the_format_unless_the_call_does(
    render, call, name, output, given, source_format
):
    texts = {
        "deck.md": "# Title\n\n- one\n",
        "page.html": "<h1>Title</h1>",
        "flow.mmd": "graph TD; A-->B",
        "logo.svg": "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><rect width='9' height='9'/></svg>",
    }
    call.conversation = render.conversation
    await call(f"open('files/{name}', 'w').write({texts[name]!r})", [name], turn_id="turn_1")
    by_path = await render(output, f"fi:turn_1.files/{name}", "by_path." + output, **given)
    by_text = await render(output, texts[name], "by_text." + output, format=source_format)
    assert (by_path.ok, by_path.ret["warnings"]) == (True, by_text.ret["warnings"])
    facts = [{**each.ret["facts"], "bytes": 0} for each in (by_path, by_text)]
    assert facts[0] == facts[1]
    if output == "pptx":
        decks = [Presentation(io.BytesIO(await render.bytes_of(each))) for each in (by_path, by_text)]
        said = [[s.text_frame.text for s in deck.slides[0].shapes if s.has_text_frame] for deck in decks]
        assert said[0] == said[1]


@pytest.mark.parametrize(
    "content",
    [
        "fi:turn_1.files/none.md",
        "ref:fi:turn_1.files/none.md",
        "turn_1/files/none.md",
        "fi:turn_1/files/wrong-form.md",
        "ar:turn_1.user.prompt",
        "so:sources_pool[1]",
    ],
)
async def test_a_path_that_leads_to_no_text_is_refused_and_nothing_is_rendered(render, content):
    response = await render("pdf", content)
    assert (response.ok, response.error.code, response.sandbox) == (False, "param_ref_not_visible", None)
    [notice] = [json.loads(block.text) for block in response.blocks if block.type == "react.notice"]
    assert (notice["code"], notice["error"], notice["param"], notice["ref"]) == (
        "protocol_violation.param_ref_not_visible",
        "param_ref_not_visible",
        "content",
        content.removeprefix("ref:"),
    )


async def test_a_document_that_mentions_a_path_among_other_words_stands_for_itself(render):
    response = await render("pdf", "See\nfi:turn_1.files/none.md")
    assert response.ok


# ---- names ----

SPELLINGS = (
    "own chart (1).png", "./own chart (1).png", "files/own chart (1).png", "/mnt/data/own chart (1).png",
    "sandbox:/mnt/data/own chart (1).png", "attachments/own chart (1).png", "turn_2/files/own chart (1).png",
    "fi:turn_2.files/own chart (1).png", "own%20chart%20(1).png", "turn_1/attachments/own chart (1).png",
    "[[S:10002]]",
)  # fmt: skip


def _picture(colour):
    sink = io.BytesIO()
    Image.new("RGB", (40, 30), colour).save(sink, "PNG")
    return sink.getvalue()


async def _save(render, physical, data, mime="image/png"):
    service, path = render.service, FilePath.from_physical(physical)
    sha256 = hashlib.sha256(data).hexdigest()
    new = NewArtifact(path, FileContent(data), len(data), sha256, mime, "external", "chart", "made")
    await service.artifacts.save(ConversationKey(service.principal, render.conversation), [new])


def _check_pictures(content, output, count):
    """A document has so many pictures, all of them blue."""
    if output == "pdf":
        kinds = [pypdfium2.raw.FPDF_PAGEOBJ_IMAGE]
        pages = pypdfium2.PdfDocument(content)
        found = [each.get_bitmap().to_pil() for page in pages for each in page.get_objects(filter=kinds)]
    elif output == "docx":
        document = Document(io.BytesIO(content))
        ids = re.findall(r'r:embed="([^"]+)"', document.element.xml)
        found = [Image.open(io.BytesIO(document.part.related_parts[each].blob)) for each in ids]
    else:
        shapes = [shape for slide in Presentation(io.BytesIO(content)).slides for shape in slide.shapes]
        found = [Image.open(io.BytesIO(shape.image.blob)) for shape in shapes if hasattr(shape, "image")]
    assert [picture.convert("RGB").getpixel((5, 5)) for picture in found] == [(0, 0, 255)] * count


@pytest.mark.parametrize("output", ["pdf", "docx", "pptx"])
async def test_a_document_shows_the_newest_picture_of_a_name_in_any_spelling(render, output):
    await _save(render, "turn_1/files/own chart (1).png", _picture("red"))
    await _save(render, "turn_1/attachments/own chart (1).png", _picture("blue"))
    pictures = [f"![chart]({spelling})" for spelling in SPELLINGS]
    pictures += ["[[S:10002]]", "<img src='[[S:10002]]' alt='c'>", '<img src="own chart (1).png" alt="c">']
    pictures += ['![titled](own chart (1).png "A title")', "![far][logo]"]
    separator = "\n\n---\n\n" if output == "pptx" else "\n\n"
    content = separator.join(pictures) + "\n\n[logo]: own chart (1).png\n"
    response = await render(output, content, format="markdown", strict=True)
    assert response.ok, response.report
    assert [block.type for block in response.blocks if block.type == "react.notice"] == []
    assert "missing" not in response.report
    _check_pictures(await render.bytes_of(response), output, len(pictures))


async def test_links_and_prose_in_parentheses_are_read_as_they_are_meant(render):
    await _save(render, "turn_1/files/own list.csv", b"a\n1\n", "text/csv")
    content = (
        "[data](turn_1/files/own list.csv) and [more](own list.csv) and [box](sandbox:/mnt/data/own%20list.csv)\n\n"
        "See [1] (as in fig. 3), [note](of page 3.5 here), `![x](own list.csv)`.\n"
    )
    response = await render("pdf", content)
    assert "Warnings" not in response.report
    text = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response))).pages[0].extract_text()
    assert "data and more and box" in " ".join(text.split())
    assert "[note](of page 3.5 here), ![x](own list.csv)" in " ".join(text.split())


@pytest.mark.parametrize("content", ["report.md", "files/report.md", "/mnt/data/report.md", "ref:report.md"])
async def test_what_is_given_by_name_is_the_newest_and_in_its_own_encoding(render, content):
    await _save(render, "turn_1/files/report.md", b"# Old", "text/markdown")
    await _save(render, "turn_1/attachments/report.md", "# Größe".encode("cp1252"), "text/markdown")
    await _save(render, "turn_1/files/more.md", "Köln ist groß.".encode("utf-16"), "text/markdown")
    await _save(render, "turn_1/files/look.yaml", b"colours: {text: '#ff0000'}\n", "application/yaml")
    response = await render("pdf", content, merge=["more.md"], theme="look.yaml", attachments=["more.md"])
    assert response.ok, response.report
    reader = pypdf.PdfReader(io.BytesIO(await render.bytes_of(response)))
    text = "\n".join(page.extract_text() for page in reader.pages)
    assert ("Größe" in text, "Köln ist groß." in text, list(reader.attachments)) == (True, True, ["more.md"])
