"""Title, subtitle, author and date stand where a reader looks for them: above the text, or on a cover."""

import pypdf
import pytest
from docx_reading import Metadata, opened_source, png, written
from page_looks import page_words, rendered, shows
from render.frontend.element_tree import body_of, text_of
from render.frontend.headings import entries_of
from render.frontend.pipeline import open_document
from render.model import RenderRequest

FRONT = "---\ntitle: Market Entry\nsubtitle: Three regions\nauthor: [Ada, Grace]\ndate: 2026-11-26\n---\n\n"
BLOCK = ["Market Entry", "Three regions", "Ada, Grace \u00b7 2026-11-26"]


def shown(source, tmp_path, **request):
    body = body_of(opened_source(source, tmp_path, **request).tree)
    return [text_of(item) for part in body for item in (part if part.tag == "header" else [part])]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{FRONT}# Summary\n\ntext", [*BLOCK, "Summary", "text"]),
        (f"{FRONT}text", [*BLOCK, "text"]),
        (f"{FRONT}# Market  entry\n\ntext", ["Market entry", *BLOCK[1:], "text"]),
        ("---\nauthor: Ada\n---\n\n# One\n\ntext", ["One", "Ada", "text"]),
        ("---\ndate: 2026-11-26\n---\n\ntext\n\n# One", ["2026-11-26", "text", "One"]),
        ("---\ntitle: T\nlang: de\n---\n\n# One", ["T", "One"]),
        ("---\nmarp: true\ntitle: T\nauthor: Ada\n---\n\n# One", ["One"]),
    ],
)
def test_front_matter_is_shown_and_no_title_twice(tmp_path, source, expected):
    assert shown(source, tmp_path) == expected


@pytest.mark.parametrize(
    ("source", "request_", "expected"),
    [
        ("text", {}, ["T", "Ada", "text"]),
        ("## Two\n\ntext", {}, ["T", "Ada", "Two", "text"]),
        ("# One\n\ntext", {}, ["One", "text"]),
        ("# One\n\ntext", {"options": {"subtitle": "S"}}, ["One", "S", "Ada", "text"]),
        ("<p>text", {"source_format": "html"}, ["text"]),
        ("<h1>One</h1><p>text", {"source_format": "html", "options": {"subtitle": "S"}}, ["One", "text"]),
        ("<p>text", {"source_format": "html", "options": {"cover": True}}, ["T", "Ada", "text"]),
        ("# t\n\ntext", {"options": {"cover": True}}, ["T", "Ada", "text"]),
        ("# One\n\ntext", {"options": {"cover": True}}, ["T", "Ada", "One", "text"]),
    ],
)
def test_the_request_s_title_heads_a_text_that_has_none(tmp_path, source, request_, expected):
    assert shown(source, tmp_path, metadata=Metadata(title="T", author="Ada"), **request_) == expected


def test_the_title_is_no_section(tmp_path):
    document = opened_source(f"{FRONT}# One\n\n## Two", tmp_path, options={"numbered_sections": True, "toc": True})
    assert [entry.text for entry in entries_of(document.tree)] == ["1 One", "1.1 Two"]
    assert [item.tag for item in body_of(document.tree)][:3] == ["header", "nav", "h1"]


def test_a_docx_has_its_title_in_the_styles_for_it(tmp_path):
    made = written(f"{FRONT}# Summary\n\ntext", tmp_path, options={"toc": True})
    assert made.styles()[:3] == list(zip(["Title", "Subtitle", "Byline"], BLOCK, strict=True))
    assert [text for style, text in made.styles() if style.startswith("toc")] == ["Summary\t1"]
    assert written("# One\n\ntext", tmp_path).styles()[0] == ("Heading 1", "One")


def test_a_cover_is_a_page_of_its_own_with_a_logo_and_no_running_lines(tmp_path):
    (tmp_path / "logo.png").write_bytes(png(40, 20))
    (tmp_path / "house.yaml").write_text("logo: logo.png")
    options = {"cover": True, "header": "running", "toc": True}
    _, file = rendered(tmp_path, f"{FRONT}# One", source_format="markdown", theme="house.yaml", options=options)
    first, second = (page.extract_text() for page in pypdf.PdfReader(file).pages)
    assert ("running" in first, "/ 2" in first, "Contents" in first) == (False, False, False)
    assert ("running" in second, "2 / 2" in second, "Contents" in second) == (True, True, True)
    assert shows(file, "#3366aa")
    assert page_words(file)[:2] == ["Market", "Entry"]


def test_a_cover_of_a_docx_ends_its_page_and_has_no_running_lines(tmp_path):
    made = written(f"{FRONT}# One", tmp_path, options={"cover": True, "header": "running"})
    assert [style for style, _ in made.styles()][:3] == ["Cover Title", "Subtitle", "Byline"]
    assert (len(list(made.body.iter("{*}titlePg"))), len(list(made.body.iter("{*}pageBreakBefore")))) == (1, 1)
    assert list(written(f"{FRONT}# One", tmp_path).body.iter("{*}titlePg")) == []


@pytest.mark.parametrize("output", ["pdf", "docx", "png"])
def test_a_date_of_the_request_adds_nothing_to_a_page_of_html(tmp_path, output):
    request = RenderRequest(output, "html", "<h1>One</h1><p>text", str(tmp_path), "x", Metadata(date="2026-11-26"))
    assert text_of(body_of(open_document(request).tree)) == "Onetext"
