"""Hostile uploads: pages that ask for files and networks, broken and exploding PDFs, many files."""

import io
import zlib

import pytest
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, NameObject

from tests.container.gotenberg.conftest import Post
from tests.container.gotenberg.made_pdfs import encrypted, pdf_of, reader_of, texts_of

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

HTML = "chromium/convert/html"


async def test_a_page_reads_no_files_of_the_machine(post: Post) -> None:
    page = (
        b"<p>safe</p><iframe src='file:///etc/passwd'></iframe><object data='file:///etc/passwd'></object>"
        b"<img src='file:///etc/hostname'><link rel=stylesheet href='file:///etc/passwd'><a href='file:///etc/passwd'>l</a>"
        b"<link rel=attachment href='file:///etc/passwd'>"
        b"<style>@import 'file:///etc/passwd'; p { background: url(file:///etc/passwd) }</style>"
    )
    answer = await post(HTML, ("index.html", page))
    reader = reader_of(answer.content)
    assert "safe" in reader.pages[0].extract_text()
    assert "root:" not in answer.text
    assert "root:" not in reader.pages[0].extract_text()
    assert reader.attachments == {}


async def test_a_page_fetches_nothing(post: Post) -> None:
    page = (
        b"<p>safe</p><img src='http://127.0.0.1:1/a.png'><script>fetch('http://127.0.0.1:1')</script>"
        b"<link rel=stylesheet href='//127.0.0.1:1/a.css'>"
    )
    answer = await post(HTML, ("index.html", page))
    assert "safe" in texts_of(answer.content)[0]
    assert "remote_refused" in answer.headers["Warning"]


async def test_fifty_files_lie_beside_a_page(post: Post) -> None:
    page = "".join(f"<link rel=stylesheet href='s{number}.css'>" for number in range(49)) + "<p class=x>x</p>"
    assets = [(f"s{number}.css", f".x {{ content: '{number}' }}".encode()) for number in range(49)]
    answer = await post(HTML, ("index.html", page.encode()), *assets)
    assert texts_of(answer.content) == ["x"]


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"%PDF-1.7\n", pdf_of("x")[:400], b"%PDF-1.7\n" + bytes(range(256)) * 40, b"\x89PNG\r\n"],
    ids=["empty", "text", "head", "cut", "noise", "picture"],
)
async def test_what_is_no_pdf_is_refused_by_name(post: Post, content: bytes) -> None:
    answer = await post("pdfengines/merge", ("good.pdf", pdf_of("x")), ("wrong.pdf", content), status=400)
    assert answer.text.startswith("wrong.pdf: ")


async def test_an_encrypted_pdf_is_refused_by_name(post: Post) -> None:
    answer = await post("pdfengines/flatten", ("locked.pdf", encrypted(pdf_of("x"), "u", "o")), status=400)
    assert answer.text == "locked.pdf: is encrypted; remove its password first"


def bomb_in_a_page(size_bytes: int) -> bytes:
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of("x")))
    stream = DecodedStreamObject()
    stream.set_data(zlib.compress(b" " * size_bytes, 9))
    stream[NameObject("/Filter")] = NameObject("/FlateDecode")
    writer.pages[0][NameObject("/Contents")] = writer._add_object(stream)
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


@pytest.mark.slow
async def test_a_page_that_explodes_is_merged_unopened(post: Post) -> None:
    bomb = bomb_in_a_page(400_000_000)
    merged = await post("pdfengines/merge", ("bomb.pdf", bomb), ("b.pdf", pdf_of("B")))
    assert len(reader_of(merged.content).pages) == 2
    assert len(merged.content) < 4_000_000


def stream_object(number: int, fields: bytes, body: bytes) -> bytes:
    head = b"%d 0 obj\n<< %b /Filter /FlateDecode /Length %d >>\nstream\n" % (number, fields, len(body))
    return head + body + b"\nendstream\nendobj\n"


async def test_an_object_stream_that_explodes_is_refused(post: Post) -> None:
    body = zlib.compress(b"2 0 " + b" " * 400_000_000, 9)
    first = b"%PDF-1.5\n" + stream_object(1, b"/Type /ObjStm /N 1 /First 4", body)
    places = ((0, 0, 0), (1, 9, 0), (2, 1, 0), (1, len(first), 0))
    rows = b"".join(bytes([kind]) + at.to_bytes(4) + bytes([index]) for kind, at, index in places)
    table = stream_object(3, b"/Type /XRef /W [1 4 1] /Size 4 /Root 2 0 R", zlib.compress(rows))
    end = b"startxref\n%d\n%%%%EOF" % len(first)
    answer = await post("pdfengines/merge", ("bomb.pdf", first + table + end), status=400)
    assert "bomb.pdf" in answer.text or "out_of_memory" in answer.text


async def test_a_split_into_too_many_files_is_refused(post: Post) -> None:
    pages = pdf_of(*map(str, range(2_001)))
    answer = await post("pdfengines/split", ("a.pdf", pages), splitMode="intervals", splitSpan="1", status=400)
    assert answer.text.startswith("splitSpan: ")


async def test_a_name_with_folders_stays_a_name(post: Post) -> None:
    answer = await post("pdfengines/flatten", ("../../x.pdf", pdf_of("x")))
    assert 'filename="x.pdf"' in answer.headers["Content-Disposition"]


async def test_an_output_name_cannot_break_the_header(post: Post) -> None:
    headers = {"Gotenberg-Output-Filename": 'a%0d%0aX-Evil: 1/..\\"q"'}
    answer = await post("pdfengines/flatten", ("x.pdf", pdf_of("x")), headers=headers)
    assert "X-Evil" not in answer.headers
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
