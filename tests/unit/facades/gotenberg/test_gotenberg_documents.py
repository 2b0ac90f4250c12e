"""Pages before they are rendered: decoding, Markdown templates, headers and footers."""

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar

import pytest

from proofbox.service.facades.gotenberg import documents
from proofbox.service.facades.gotenberg.conversion import page_of
from proofbox.service.facades.gotenberg.errors import RequestRefusedError
from proofbox.service.facades.gotenberg.fields import FieldReader
from proofbox.service.facades.gotenberg.form import Form, FormFile


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("ä€".encode(), "ä€"),
        (b"\xef\xbb\xbf" + "ä".encode(), "ä"),
        (b"\xe4\x80", "ä€"),
        (b'<meta charset="iso-8859-15">\xa4', '<meta charset="iso-8859-15">€'),
        (b'<meta charset="no-such">\xc3\xa4', '<meta charset="no-such">ä'),
        ("ä".encode("utf-16"), "ä"),
    ],
)
def test_a_page_is_decoded_as_a_browser_does(tmp_path: Path, raw: bytes, text: str) -> None:
    path = tmp_path / "page"
    path.write_bytes(raw)
    assert documents.read_html(path, "index.html") == text


def test_a_page_beyond_the_bound_is_413(tmp_path: Path) -> None:
    path = tmp_path / "page"
    path.write_bytes(b"x" * 11)
    with pytest.raises(RequestRefusedError, match=r"index\.html: has 11 bytes \(limit 10\)") as caught:
        documents.read_html(path, "index.html", 10)
    assert caught.value.status == 413


def test_a_template_names_its_markdown_files() -> None:
    text = '<p>{{ toHTML "a.md" }}</p>{{toHTML `b.md`}}.'
    assert documents.split_template(text, {"a.md", "b.md"}) == [
        "<p>", {"markdown": "a.md"}, "</p>", {"markdown": "b.md"}, ".",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{{ toHTML "x.md" }}', "Markdown file(s) not found: 'x.md'"),
        ('{{ toHTML "a.md" }}{{ range .X }}', "only {{ toHTML"),
        ("{{ toHTML .Name }}", "only {{ toHTML"),
        ("<p>none</p>", "names no Markdown file"),
        ('{{ toHTML "a.md" }}' * 500_000, "names Markdown files more than 1000 times"),
    ],
    ids=lambda value: value[:40],
)
def test_other_templates_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(RequestRefusedError) as caught:
        documents.split_template(text, {"a.md"})
    assert sentence in caught.value.message


def test_a_template_names_each_file_as_often_as_the_bound_allows() -> None:
    pieces = documents.split_template('{{ toHTML "a.md" }}' * 1_000, {"a.md"})
    assert pieces.count({"markdown": "a.md"}) == 1_000


def test_of_many_missing_files_ten_are_named() -> None:
    with pytest.raises(RequestRefusedError) as caught:
        documents.split_template("".join(f'{{{{toHTML "{number}.md"}}}}' for number in range(900)), set())
    assert caught.value.message.endswith("'9.md'; …")


@pytest.mark.parametrize(
    "opening", ["{", "{{ ", "{{ toHTML ", '{{ toHTML "', "{{ toHTML `", '{{ toHTML "a"', "{{\t\n"]
)
def test_a_template_of_openings_is_scanned_once(opening: str) -> None:
    with pytest.raises(RequestRefusedError, match="other template syntax"):
        documents.split_template(opening * (documents.DOCUMENT_BYTES_MAX // len(opening)), {"a.md"})


class _WatchedName(str):
    """A name that notes which threads compare it."""

    __slots__ = ()

    threads: ClassVar[set[int]] = set()

    def __eq__(self, other: object) -> bool:
        self.threads.add(threading.get_ident())
        return str(self) == other

    __hash__ = str.__hash__


async def test_a_template_is_split_in_a_thread(tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text('{{ toHTML "a.md" }}{{ end }}')
    form = Form(files=[FormFile("files", "index.html", page), FormFile("files", _WatchedName("a.md"), page)])
    with pytest.raises(RequestRefusedError, match="other template syntax"):
        await page_of(None, FieldReader(form), "markdown")  # type: ignore[arg-type]  # it is refused before
    assert _WatchedName.threads
    assert threading.get_ident() not in _WatchedName.threads


@pytest.mark.parametrize(
    ("page", "whole"),
    [
        ("<html><body class='a'><p>", "<html><body class='a'>+<p>"),
        ("<!-- <body> --><body><p>", "<!-- <body> --><body>+<p>"),
        ("<head></head><p>", "<head></head>+<p>"),
        ("<!doctype html><p>", "<!doctype html>+<p>"),
        ("<p>", "+<p>"),
    ],
)
def test_a_fragment_is_put_at_the_start_of_the_body(page: str, whole: str) -> None:
    assert documents.insert_at_start(page, "+") == whole


def test_the_styles_of_a_header_do_not_reach_the_document() -> None:
    source = (
        "<html><head><style>body { color: red } p, html { margin: 0 }</style></head><body><p>x</p></body></html>"
    )
    assert documents.running_fragment("header", source) == (
        "<style>.pbx-header { .pbx-page { color: red } p, .pbx-page { margin: 0 } }</style>"
        '<div class="pbx-header"><div class="pbx-page"><div id="header"><p>x</p></div></div></div>'
    )


def test_the_classes_of_a_footer_are_filled_in() -> None:
    css = documents.running_css(
        ["footer"], {"left": 10, "right": 5}, 'a "b"', datetime(2026, 11, 26, 0, 5, tzinfo=UTC)
    )
    assert "@bottom-center { content: element(pbx-footer)" in css
    assert ".pbx-footer .pageNumber::before { content: counter(page) }" in css
    assert '.title::before { content: "a \\22 b\\22 " }' in css
    assert '.date::before { content: "11/26/26, 12:05 AM" }' in css
    assert "margin: 0 -5mm 0 -10mm" in css
