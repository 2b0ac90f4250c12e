"""Previews of real files, made by the programs in real sandboxes."""

import io
import json

import docx
import httpx
import openpyxl
import pptx
import pytest
from PIL import Image
from pptx.util import Inches

from proofbox.service.app.bootstrap import Service

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]
RED, WHITE = (255, 0, 0), (255, 255, 255)
_NUMBERS = iter(range(1, 10_000))


class Files:
    """Attachments of a conversation of its own."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._base = f"/v1/conversations/previews-{next(_NUMBERS)}"

    async def put(self, name: str, content: bytes) -> None:
        answer = await self._client.put(f"{self._base}/turns/turn_1/attachments/{name}", content=content)
        assert answer.is_success, answer.text

    async def get(self, kind: str, name: str, **query: int) -> httpx.Response:
        path = f"{self._base}/{kind}/fi:turn_1.user.attachments/{name}"
        return await self._client.get(path, params=query, timeout=120)

    async def picture(self, name: str, content: bytes, **query: int) -> tuple[Image.Image, httpx.Response]:
        await self.put(name, content)
        answer = await self.get("previews", name, **query)
        assert answer.status_code == 200, answer.text
        return Image.open(io.BytesIO(answer.content)).convert("RGB"), answer


@pytest.fixture
def files(http: httpx.AsyncClient) -> Files:
    return Files(http)


def png_of(colour: tuple[int, int, int], size: tuple[int, int] = (64, 32)) -> bytes:
    written = io.BytesIO()
    Image.new("RGB", size, colour).save(written, "PNG")
    return written.getvalue()


def has_colour(picture: Image.Image, colour: tuple[int, int, int]) -> bool:
    colours = picture.getcolors(picture.width * picture.height) or []
    return any(all(abs(a - b) < 8 for a, b in zip(found, colour, strict=True)) for _, found in colours)


def pdf_of(pages: int) -> bytes:
    written = io.BytesIO()
    first, *rest = [Image.new("RGB", (200, 280), RED) for _ in range(pages)]
    first.save(written, "PDF", save_all=True, append_images=rest)
    return written.getvalue()


def docx_of() -> bytes:
    document = docx.Document()
    document.add_heading("Report", 1)
    document.add_paragraph("First point", style="List Bullet")
    document.add_table(rows=1, cols=2).cell(0, 0).text = "cell"
    document.add_picture(io.BytesIO(png_of(RED)))
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def pptx_of() -> bytes:
    deck = pptx.Presentation()
    for title in ("One", "Two"):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = title
    slide.shapes.add_picture(io.BytesIO(png_of(RED)), Inches(1), Inches(3), Inches(4), Inches(2))
    written = io.BytesIO()
    deck.save(written)
    return written.getvalue()


def xlsx_of() -> bytes:
    book = openpyxl.Workbook()
    book.active.append(["month", "total"])
    book.active.append(["Jan", 12.5])
    book.active["C2"] = "=B2*2"
    book.create_sheet("Second").append(["x"])
    written = io.BytesIO()
    book.save(written)
    return written.getvalue()


async def test_pages_of_a_pdf_are_pictures_and_a_page_beyond_is_refused(files: Files) -> None:
    picture, answer = await files.picture("a.pdf", pdf_of(3), page=3)
    assert has_colour(picture, RED)
    assert (answer.headers["preview-page"], answer.headers["preview-pages"]) == ("3", "3")
    assert answer.headers["preview-layout"] == "exact"
    beyond = await files.get("previews", "a.pdf", page=4)
    assert (beyond.status_code, beyond.json()["code"]) == (422, "no_preview")
    assert "4 does not exist (the document has 3)" in beyond.json()["detail"]


@pytest.mark.parametrize(("name", "content", "pages"), [("a.docx", docx_of(), "1"), ("a.pptx", pptx_of(), "2")])
async def test_office_documents_are_pictures_of_a_similar_layout(
    files: Files, name: str, content: bytes, pages: str
) -> None:
    picture, answer = await files.picture(name, content, page=int(pages))
    assert has_colour(picture, RED)
    assert has_colour(picture, WHITE)
    assert (answer.headers["preview-pages"], answer.headers["preview-layout"]) == (pages, "similar")


async def test_html_is_a_picture_without_its_scripts_and_without_other_files(files: Files) -> None:
    page = """<body style="margin:0"><div style="background:red;width:400px;height:200px"></div>
    <script>document.body.innerHTML = ""</script>
    <img src="file:///etc/passwd"><img src="http://192.0.2.1/x.png"><iframe src="https://example.com"></iframe>"""
    picture, _ = await files.picture("a.html", page.encode())
    assert has_colour(picture, RED)


async def test_svg_and_pictures_are_pictures_on_white(files: Files) -> None:
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="alert(1)"><script>alert(1)</script>'
    )
    drawn, _ = await files.picture("a.svg", f'{svg}<rect width="10" height="20" fill="red"/></svg>'.encode())
    assert has_colour(drawn, RED)
    assert has_colour(drawn, WHITE)
    large, _ = await files.picture("b.png", png_of(RED, (4_000, 1_000)))
    assert large.size == (1_100, 275)


async def test_a_workbook_is_the_rows_of_a_sheet_with_formulas_that_have_no_value(files: Files) -> None:
    await files.put("a.xlsx", xlsx_of())
    first = (await files.get("previews", "a.xlsx")).json()
    assert first["sheets"] == ["Sheet", "Second"]
    assert first["rows"] == [["month", "total"], ["Jan", "12.5", "=B2*2"]]
    assert (first["rows_total"], first["columns_total"]) == (2, 3)
    assert (await files.get("previews", "a.xlsx", page=2)).json()["rows"] == [["x"]]
    assert (await files.get("previews", "a.xlsx", page=3)).status_code == 422


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("utf-16", "Müller"),
        ("utf-16-le", "Müller"),
        ("cp1252", "Müller"),
        ("cp1251", "Иванов"),
        ("cp932", "山田太郎"),
    ],
)
async def test_a_table_in_another_encoding_shows_its_words(files: Files, encoding: str, words: str) -> None:
    await files.put("k.csv", f"name;city\r\n{words};{words}\r\n".encode(encoding))
    table = (await files.get("previews", "k.csv")).json()
    assert table["rows"] == [["name", "city"], [words, words]]


async def test_a_long_csv_is_its_first_rows_and_how_many_there_are(files: Files) -> None:
    rows = [f"{number};text {number}" for number in range(10_000)]
    await files.put("a.csv", "\n".join(rows).encode())
    table = (await files.get("previews", "a.csv")).json()
    assert (len(table["rows"]), table["rows_total"], table["columns_total"]) == (200, 10_000, 2)
    assert table["rows"][199] == ["199", "text 199"]


@pytest.mark.parametrize(
    "name", ["damaged.pdf", "damaged.docx", "damaged.pptx", "damaged.xlsx", "damaged.png", "damaged.svg"]
)
async def test_a_damaged_file_is_a_message_that_names_the_way_out(files: Files, name: str) -> None:
    await files.put(name, b"PK\x03\x04 not what its name says")
    answer = await files.get("previews", name)
    assert (answer.status_code, answer.json()["code"]) == (422, "no_preview")
    assert answer.json()["detail"].endswith("download the file")


async def test_versions_of_a_text_differ_by_lines(files: Files) -> None:
    for content in (b"a\nb\nc\n", b"a\nB\nc\nd\n"):
        await files.put("a.txt", content)
    found = (await files.get("differences", "a.txt")).json()
    assert (found["from_version"], found["to_version"], found["added"], found["removed"]) == (1, 2, 2, 1)
    expected = "--- version 1\n+++ version 2\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n"
    assert found["text"] == expected


@pytest.mark.parametrize(
    ("name", "encoding", "changed"),
    [("zero.txt", "utf-8", "b\0c"), ("le.csv", "utf-16", "bü"), ("be.csv", "be", "bü")],
)
async def test_texts_with_zero_bytes_and_texts_in_utf_16_differ_by_lines(
    files: Files, name: str, encoding: str, changed: str
) -> None:
    for text in ("a\nb\n", f"a\n{changed}\n"):
        content = b"\xfe\xff" + text.encode("utf-16-be") if encoding == "be" else text.encode(encoding)
        await files.put(name, content)
    found = (await files.get("differences", name)).json()
    assert (found["added"], found["removed"]) == (1, 1)
    shown = changed.replace("\0", "\\u0000")
    assert found["text"].endswith(f"@@ -1,2 +1,2 @@\n a\n-b\n+{shown}\n")


async def test_versions_of_a_document_differ_by_the_lines_of_their_text(files: Files) -> None:
    for text in ("The total is 12.", "The total is 13."):
        document = docx.Document()
        document.add_paragraph("Summary")
        document.add_paragraph(text)
        written = io.BytesIO()
        document.save(written)
        await files.put("a.docx", written.getvalue())
    found = (await files.get("differences", "a.docx")).json()
    assert "-The total is 12." in found["text"]
    assert "+The total is 13." in found["text"]


async def test_the_status_counts_slots_and_waiting_containers(http: httpx.AsyncClient, service: Service) -> None:
    status = (await http.get("/v1/status")).json()
    assert status["engine_up"]
    assert status["running_max"] == service.settings.running_max
    assert {pool["flavour"] for pool in status["pool"]} == {"bare", "documents", "data", "science"}
    assert json.dumps(status).count("wanted") == 4
