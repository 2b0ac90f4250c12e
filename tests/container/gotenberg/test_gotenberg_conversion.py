"""Pages to PDF: each field that is taken has its effect on the PDF."""

import hashlib
import io
import json
import logging
from pathlib import Path

import httpx
import pypdfium2
import pytest
from PIL import Image

from proofbox.service.app.bootstrap import Service
from tests.container.gotenberg.conftest import Post
from tests.container.gotenberg.made_pdfs import members_of, reader_of, texts_of

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

HTML = "chromium/convert/html"
THREE = (
    b"<html><head><title>Three</title><style>p + p { break-before: page }</style></head>"
    b"<body><p>One</p><p>Two</p><p>Three</p></body></html>"
)


def index(text: str | bytes) -> tuple[str, bytes]:
    return "index.html", text.encode() if isinstance(text, str) else text


def size_of(content: bytes) -> tuple[float, float]:
    box = reader_of(content).pages[0].mediabox
    return round(float(box.width), 1), round(float(box.height), 1)


def png(width: int, height: int, colour: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), colour).save(file, "PNG")
    return file.getvalue()


def colours_of(content: bytes, page: int = 0) -> set[tuple[int, ...]]:
    picture = pypdfium2.PdfDocument(content)[page].render(scale=0.5).to_pil().convert("RGB")
    return {colour for _, colour in picture.getcolors(1 << 20)}


async def test_a_page_is_an_attachment_of_letter_size(post: Post) -> None:
    answer = await post(HTML, index(THREE))
    assert answer.headers["Content-Type"] == "application/pdf"
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="result.pdf"')
    assert int(answer.headers["Content-Length"]) == len(answer.content)
    assert texts_of(answer.content) == ["One", "Two", "Three"]
    assert size_of(answer.content) == (612, 792)
    reader = reader_of(answer.content)
    assert reader.metadata is not None
    assert reader.metadata.title == "Three"
    assert reader.root_object["/MarkInfo"]["/Marked"]


async def test_assets_lie_beside_the_page(post: Post) -> None:
    page = (
        "<link rel=stylesheet href='style.css'><p class=x>Text</p>"
        "<img src='red.png' alt='red'><img src='./my blue.png'>"
    )
    assets = [
        ("style.css", b".x { color: #00ff00; background: #0f0; height: 100px }"),
        ("red.png", png(80, 80, "#ff0000")),
        ("my blue.png", png(80, 80, "#0000ff")),
    ]
    answer = await post(HTML, index(page), *assets)
    assert {(255, 0, 0), (0, 255, 0), (0, 0, 255)} <= colours_of(answer.content)


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({"paperWidth": "8.27", "paperHeight": "11.7"}, (595.4, 842.4)),
        ({"paperWidth": "210mm", "paperHeight": "29.7cm", "landscape": "true"}, (841.9, 595.3)),
        ({"paperWidth": "300pt", "paperHeight": "400px"}, (300, 300)),
        ({"paperWidth": "36pc", "paperHeight": "5in"}, (432, 360)),
    ],
)
async def test_paper_has_the_size_of_the_form(
    post: Post, fields: dict[str, str], size: tuple[float, float]
) -> None:
    answer = await post(HTML, index("<p>x"), **fields)
    assert size_of(answer.content) == pytest.approx(size, abs=0.2)


async def test_the_page_names_its_size_only_if_it_is_preferred(post: Post) -> None:
    page = index("<style>@page { size: 100mm 100mm }</style><p>x")
    assert size_of((await post(HTML, page)).content) == (612, 792)
    preferred = await post(HTML, page, preferCssPageSize="true")
    assert size_of(preferred.content) == pytest.approx((283.5, 283.5), abs=0.2)


async def test_margins_are_those_of_the_form(post: Post) -> None:
    margins = {"marginTop": "1in", "marginLeft": "2in", "marginRight": "0", "marginBottom": "0"}
    page = "<style>body { margin: 0; padding: 0 } div { background: #f00; height: 50px }</style><div></div>"
    answer = await post(HTML, index(page), **margins)
    picture = pypdfium2.PdfDocument(answer.content)[0].render(scale=1).to_pil().convert("RGB")
    red = [(x, y) for x in range(0, 612, 4) for y in range(0, 200, 4) if picture.getpixel((x, y)) == (255, 0, 0)]
    assert (min(x for x, _ in red), min(y for _, y in red)) == (144, 72)
    assert max(x for x, _ in red) == 608


async def test_ranges_choose_pages(post: Post) -> None:
    answer = await post(HTML, index(THREE), nativePageRanges="1,3")
    assert texts_of(answer.content) == ["One", "Three"]
    refused = await post(HTML, index(THREE), nativePageRanges="7-9", status=400)
    assert "3 pages" in refused.text


async def test_a_scale_changes_the_content_and_not_the_paper(post: Post) -> None:
    page = "<style>body { margin: 0 } div { background: #f00; width: 100px; height: 100px }</style><div></div>"
    margins = dict.fromkeys(("marginTop", "marginLeft", "marginRight", "marginBottom"), "0")
    answer = await post(HTML, index(page), scale="0.5", **margins)
    assert size_of(answer.content) == pytest.approx((612, 792), abs=0.5)
    picture = pypdfium2.PdfDocument(answer.content)[0].render(scale=1).to_pil().convert("RGB")
    assert picture.getpixel((30, 30)) == (255, 0, 0)
    assert picture.getpixel((45, 45)) == (255, 255, 255)


async def test_a_single_page_is_as_tall_as_its_content(post: Post) -> None:
    page = "".join(f"<p style='break-after: avoid'>line {number}</p>" for number in range(100))
    answer = await post(HTML, index(page), singlePage="true")
    [text] = texts_of(answer.content)
    assert "line 0" in text
    assert "line 99" in text
    width, height = size_of(answer.content)
    assert width == 612
    assert 1500 < height < 5000
    short = await post(HTML, index("<p>short"), singlePage="true")
    assert size_of(short.content)[1] < 200


async def test_a_header_and_a_footer_stand_on_each_page(post: Post) -> None:
    header = (
        b"<html><head><style>body { font-size: 10px } .left { color: #f00 }</style></head><body>"
        b"<div style='display: flex; justify-content: space-between; width: 100%'>"
        b"<span class='left'>ACME</span><span class='title'></span></div></body></html>"
    )
    footer = (
        b"<p style='font-size: 9px; text-align: center'>Page <span class='pageNumber'></span> of "
        b"<span class='totalPages'></span>, <span class='date'></span></p>"
    )
    files = [index(THREE), ("header.html", header), ("footer.html", footer)]
    answer = await post(HTML, *files, marginTop="1", marginBottom="1")
    first, second, _ = texts_of(answer.content)
    assert "ACME" in first
    assert "Three" in first
    assert "Page 1 of 3, " in first
    assert "Page 2 of 3, " in second
    assert "Two" in second


async def test_the_styles_of_a_header_stay_in_it(post: Post) -> None:
    header = b"<style>p { color: #ff0000; background: #ff0000 }</style><span>plain</span>"
    answer = await post(HTML, index("<p>Text"), ("header.html", header), marginTop="1")
    assert (255, 0, 0) not in colours_of(answer.content)


@pytest.mark.parametrize(
    ("fields", "part"), [({"pdfa": "PDF/A-2b"}, "2"), ({"pdfa": "PDF/A-3b"}, "3"), ({"pdfua": "true"}, None)]
)
async def test_a_standard_stands_in_the_metadata(post: Post, fields: dict[str, str], part: str | None) -> None:
    answer = await post(HTML, index("<html lang=en><title>T</title><h1>x</h1>"), **fields)
    xmp = reader_of(answer.content).root_object["/Metadata"].get_data().decode()
    if part is None:
        assert "pdfuaid" in xmp
    else:
        assert f"<pdfaid:part>{part}" in xmp or f'pdfaid:part="{part}"' in xmp


async def test_metadata_are_those_of_the_form(post: Post) -> None:
    rendered = {"Title": "Report", "Author": "Ann", "Subject": "S", "Keywords": ["a", "b"]}
    given = {**rendered, "Creator": "Loop", "Copyright": "ACME", "CreateDate": "2006-09-18T16:27:50-04:00"}
    answer = await post(HTML, index("<title>other</title><p>x"), metadata=json.dumps(given))
    info = reader_of(answer.content).metadata
    assert info is not None
    assert (info["/Title"], info["/Author"], info["/Subject"], info["/Creator"]) == ("Report", "Ann", "S", "Loop")
    assert info["/Keywords"] == "a, b"
    assert info["/Copyright"] == "ACME"
    assert info["/CreationDate"] == "D:20060918162750-04'00'"


async def test_files_are_embedded(post: Post) -> None:
    answer = await post(HTML, index("<p>x"), embeds=[("data.xml", b"<a/>")], pdfa="PDF/A-3b")
    assert reader_of(answer.content).attachments == {"data.xml": [b"<a/>"]}


async def test_a_conversion_is_split_rotated_and_encrypted(post: Post) -> None:
    answer = await post(
        HTML, index(THREE), splitMode="intervals", splitSpan="2", rotateAngle="90", userPassword="secret"
    )
    members = members_of(answer.content)
    assert sorted(members) == ["document_0.pdf", "document_1.pdf"]
    reader = reader_of(members["document_0.pdf"])
    assert reader.is_encrypted
    assert reader.decrypt("secret")
    assert [page.rotation for page in reader.pages] == [90, 90]


async def test_the_output_has_the_name_of_the_header(post: Post) -> None:
    answer = await post(HTML, index("<p>x"), headers={"Gotenberg-Output-Filename": "/tmp/my report"})
    assert answer.headers["Content-Disposition"].startswith('attachment; filename="my report.pdf"')


async def test_markdown_is_put_into_its_template(post: Post) -> None:
    page = (
        '<html><head><title>M</title></head><body><h1>T</h1>{{ toHTML "a.md" }}<hr>{{toHTML "b.md"}}</body></html>'
    )
    files = [index(page), ("a.md", b"# Head\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~old~~"), ("b.md", b"* item\n")]
    [text] = texts_of((await post("chromium/convert/markdown", *files)).content)
    for word in ("Head", "1", "2", "old", "item"):
        assert word in text
    assert "#" not in text
    assert "|" not in text
    assert "~~" not in text
    refused = await post("chromium/convert/markdown", index('{{ toHTML "x.md" }}'), ("a.md", b""), status=400)
    assert refused.text == "Markdown file(s) not found: 'x.md'"


async def test_what_has_no_effect_is_accepted_with_a_warning(post: Post) -> None:
    fields = {"waitDelay": "1s", "skipNetworkIdleEvent": "false", "printBackground": "true", "newField": "1"}
    defaults = {"failOnHttpStatusCodes": "[499,599]", "generateTaggedPdf": "true", "emulatedMediaType": "print"}
    answer = await post(HTML, index("<p>x"), **fields, **defaults)
    assert "waitDelay" in answer.headers["Warning"]
    assert "newField" in answer.headers["Warning"]


async def test_a_resource_that_cannot_be_loaded_fails_if_that_is_asked(post: Post) -> None:
    page = index("<p>x<img src='gone.png'><img src='https://example.org/a.png'>")
    answer = await post(HTML, page)
    assert "missing_asset" in answer.headers["Warning"]
    refused = await post(HTML, page, failOnResourceLoadingFailed="true", status=409)
    assert "gone.png" in refused.text
    assert "example.org" in refused.text


def files_below(folder: Path) -> set[Path]:
    """The files of the service, without those of its database and its signatures."""
    return {path for path in folder.rglob("*") if path.suffix != ".jsonl" and not path.name.startswith("proofbox.")}


async def test_nothing_of_a_request_stays_but_an_audit_line(
    post: Post, http: httpx.AsyncClient, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    before = files_below(service.settings.data_dir)
    with caplog.at_level(logging.INFO, "proofbox.audit"):
        answer = await post(HTML, index("<p>x"), headers={"X-Request-ID": "audited-request"})
    assert answer.headers["Gotenberg-Trace"] == "audited-request"
    assert files_below(service.settings.data_dir) == before
    [line] = [json.loads(record.getMessage()) for record in caplog.records if record.name == "proofbox.audit"]
    assert line["call"]["request_id"] == "audited-request"
    assert line["call"]["tool_id"] == "rendering_tools.write_pdf"
    assert line["outcome"]["code"] == "ok"
    [output] = line["outputs"]
    assert output["sha256"] == hashlib.sha256(answer.content).hexdigest()
    listed = (await http.get("/v1/conversations")).json()["conversations"]
    assert line["call"]["conversation_id"] not in {row["conversation_id"] for row in listed}


async def test_each_step_in_a_sandbox_has_an_audit_line(post: Post, caplog: pytest.LogCaptureFixture) -> None:
    files = [index('{{ toHTML "a.md" }}'), ("a.md", b"# x")]
    with caplog.at_level(logging.INFO, "proofbox.audit"):
        answer = await post("chromium/convert/markdown", *files, rotateAngle="90")
    lines = [json.loads(record.getMessage()) for record in caplog.records if record.name == "proofbox.audit"]
    steps = [line["call"]["tool_id"] for line in lines]
    assert steps == ["gotenberg.markdown", "rendering_tools.write_pdf", "gotenberg.pdf"]
    assert lines[-1]["outputs"][0]["sha256"] == hashlib.sha256(answer.content).hexdigest()
    assert lines[-1]["inputs"][0]["sha256"] == lines[1]["outputs"][0]["sha256"]
