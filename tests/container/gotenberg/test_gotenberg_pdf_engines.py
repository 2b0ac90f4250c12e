"""Operations on PDFs: merge, split, rotate, encrypt, metadata, bookmarks, embedded files, flattening."""

import json

import pytest

from tests.container.gotenberg.conftest import Post
from tests.container.gotenberg.made_pdfs import encrypted, form_pdf, members_of, pdf_of, reader_of, texts_of

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

THREE = ("pages_3.pdf", pdf_of("Page 1", "Page 2", "Page 3"))


async def test_pdfs_are_merged_in_the_order_of_their_names(post: Post) -> None:
    files = [(f"part_{number}.pdf", pdf_of(f"Part {number}")) for number in (10, 2, 1)]
    answer = await post("pdfengines/merge", *files, headers={"Gotenberg-Output-Filename": "all"})
    assert texts_of(answer.content) == ["Part 1", "Part 2", "Part 10"]
    assert answer.headers["Content-Type"] == "application/pdf"
    assert 'filename="all.pdf"' in answer.headers["Content-Disposition"]


async def test_a_merge_sets_metadata_bookmarks_and_a_password(post: Post) -> None:
    bookmarks = {"a.pdf": [{"title": "A", "page": 1}], "b.pdf": [{"title": "B", "page": 2}]}
    files = [("a.pdf", pdf_of("A1", "A2")), ("b.pdf", pdf_of("B1", "B2"))]
    metadata = json.dumps({"Title": "Both"})
    answer = await post(
        "pdfengines/merge",
        *files,
        bookmarks=json.dumps(bookmarks),
        metadata=metadata,
        userPassword="u",
        ownerPassword="o",
    )
    reader = reader_of(answer.content)
    assert reader.decrypt("u")
    assert reader.metadata is not None
    assert reader.metadata.title == "Both"
    assert [(entry.title, reader.get_destination_page_number(entry)) for entry in reader.outline] == [
        ("A", 0),
        ("B", 3),
    ]


@pytest.mark.parametrize(
    ("fields", "pages"),
    [
        ({"splitMode": "intervals", "splitSpan": "2"}, [["Page 1", "Page 2"], ["Page 3"]]),
        ({"splitMode": "pages", "splitSpan": "2-"}, [["Page 2"], ["Page 3"]]),
    ],
)
async def test_a_pdf_is_split_into_an_archive(post: Post, fields: dict[str, str], pages: list[list[str]]) -> None:
    answer = await post("pdfengines/split", THREE, **fields)
    assert answer.headers["Content-Type"] == "application/zip"
    members = members_of(answer.content)
    assert list(members) == ["pages_3_0.pdf", "pages_3_1.pdf"]
    assert [texts_of(content) for content in members.values()] == pages


@pytest.mark.parametrize(
    ("span", "pages"), [("2-", ["Page 2", "Page 3"]), ("2-z", ["Page 2", "Page 3"]), ("3,1", ["Page 3", "Page 1"])]
)
async def test_chosen_pages_may_stay_together(post: Post, span: str, pages: list[str]) -> None:
    answer = await post("pdfengines/split", THREE, splitMode="pages", splitSpan=span, splitUnify="true")
    assert texts_of(answer.content) == pages
    assert 'filename="pages_3.pdf"' in answer.headers["Content-Disposition"]


@pytest.mark.parametrize("span", ["foo", "4-9", "0", "1--2"])
async def test_a_span_of_no_pages_is_refused(post: Post, span: str) -> None:
    answer = await post("pdfengines/split", THREE, splitMode="pages", splitSpan=span, status=400)
    assert answer.text.startswith("splitSpan: ")


async def test_pages_are_rotated(post: Post) -> None:
    answer = await post("pdfengines/rotate", THREE, rotateAngle="90", rotatePages="1,3")
    assert [page.rotation for page in reader_of(answer.content).pages] == [90, 0, 90]
    answer = await post("pdfengines/rotate", THREE, ("b.pdf", pdf_of("B")), rotateAngle="180")
    members = members_of(answer.content)
    assert sorted(members) == ["b.pdf", "pages_3.pdf"]
    assert reader_of(members["b.pdf"]).pages[0].rotation == 180


async def test_a_pdf_is_encrypted_with_its_permissions(post: Post) -> None:
    answer = await post("pdfengines/encrypt", THREE, userPassword="open", allowCopying="false")
    reader = reader_of(answer.content)
    assert reader.is_encrypted
    assert not reader.decrypt("wrong")
    assert reader.decrypt("open").name == "USER_PASSWORD"
    permissions = reader.user_access_permissions
    assert permissions is not None
    assert "EXTRACT" not in {flag.name for flag in permissions}
    assert "PRINT" in {flag.name for flag in permissions}
    assert texts_of_reader(reader) == ["Page 1", "Page 2", "Page 3"]


def texts_of_reader(reader) -> list[str]:
    return [page.extract_text().strip() for page in reader.pages]


async def test_metadata_are_written_and_read(post: Post) -> None:
    given = {
        "Author": "Ann", "CreateDate": "2006-09-18T16:27:50-04:00", "Keywords": ["first", "second"], "Title": "T",
        "Trapped": "Unknown", "Copyright": "C",
    }  # fmt: skip
    written = await post("pdfengines/metadata/write", THREE, metadata=json.dumps(given))
    answer = await post("pdfengines/metadata/read", ("foo.pdf", written.content), ("b.pdf", pdf_of("B", title="B")))
    assert answer.headers["Content-Type"] == "application/json"
    shown = answer.json()
    assert shown["b.pdf"]["Title"] == "B"
    expected = {**given, "CreateDate": "2006:09:18 16:27:50-04:00", "PageCount": 3}
    assert {name: shown["foo.pdf"][name] for name in expected} == expected
    refused = await post("pdfengines/metadata/write", THREE, metadata='{"CreateDate": "soon"}', status=400)
    assert "CreateDate" in refused.text


async def test_metadata_of_a_tagged_pdf_agree_in_both_places(post: Post) -> None:
    made = await post("chromium/convert/html", ("index.html", b"<title>Old</title><p>x"))
    written = await post("pdfengines/metadata/write", ("a.pdf", made.content), metadata='{"Title": "New"}')
    reader = reader_of(written.content)
    assert reader.metadata is not None
    assert reader.metadata.title == "New"
    assert reader.xmp_metadata is not None
    assert reader.xmp_metadata.dc_title == {"x-default": "New"}


async def test_bookmarks_are_written_and_read(post: Post) -> None:
    rows = [{"title": "Index", "page": 1, "children": [{"title": "Sub", "page": 2}]}, {"title": "End", "page": 3}]
    written = await post("pdfengines/bookmarks/write", THREE, bookmarks=json.dumps(rows))
    answer = await post("pdfengines/bookmarks/read", ("foo.pdf", written.content), ("none.pdf", pdf_of("x")))
    assert answer.json() == {"foo.pdf": rows, "none.pdf": []}
    refused = await post("pdfengines/bookmarks/write", THREE, bookmarks='[{"title": "x", "page": 9}]', status=400)
    assert "has 3 pages" in refused.text


async def test_files_are_embedded_into_each_pdf(post: Post) -> None:
    answer = await post("pdfengines/embed", THREE, embeds=[("data.xml", b"<a/>"), ("pages_3.pdf", b"other")])
    assert reader_of(answer.content).attachments == {"data.xml": [b"<a/>"], "pages_3.pdf": [b"other"]}


async def test_form_fields_become_a_part_of_the_page(post: Post) -> None:
    filled = form_pdf("Ann Example")
    assert reader_of(filled).get_fields()
    answer = await post("pdfengines/flatten", ("form.pdf", filled))
    reader = reader_of(answer.content)
    assert not reader.get_fields()
    assert "/Annots" not in reader.pages[0] or not reader.pages[0]["/Annots"]
    assert "Ann Example" in reader.pages[0].extract_text()


async def test_a_pdf_without_an_opening_password_is_read(post: Post) -> None:
    answer = await post("pdfengines/merge", ("a.pdf", encrypted(THREE[1], "", "owner")))
    assert texts_of(answer.content) == ["Page 1", "Page 2", "Page 3"]
