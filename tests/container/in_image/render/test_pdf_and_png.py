"""PDF and PNG files, looked at with other libraries than those that wrote them."""

import json
import subprocess
import sys
from pathlib import Path

import pypdf
import pytest
from PIL import Image

PROGRAMS = Path("/opt/proofbox")

from render.__main__ import render  # noqa: E402
from render.request import request_of  # noqa: E402


def write(tmp_path: Path, content: str, output="pdf", source_format="markdown", **fields):
    target = f"turn_1/files/a.{output}"
    request = {
        "output": output,
        "source_format": source_format,
        "content": content,
        "root": str(tmp_path),
        "target": target,
    }
    answer = render(request_of({**request, **fields}))
    return answer, tmp_path / target


def test_a_pdf_is_tagged_and_has_title_language_and_outline(tmp_path):
    answer, file = write(tmp_path, "# Report\n\n## Part one\n\ntext", metadata={"title": "T", "language": "fr"})
    reader = pypdf.PdfReader(file)
    root = reader.trailer["/Root"]
    assert (answer["ok"], answer["facts"]["pages"]) == (True, 1)
    assert (reader.metadata.title, root["/Lang"], root["/MarkInfo"]["/Marked"]) == ("T", "fr", True)
    assert reader.outline[0].title == "Report"
    assert b"pdfuaid" in root["/Metadata"].get_data()


def tags_of(element, above=""):
    """The structure elements of a PDF as parent/child names, in order."""
    element = element.get_object()
    if not isinstance(element, dict) or "/S" not in element:
        return []
    kids = element.get("/K", [])
    name = element["/S"][1:]
    inner = [tags_of(kid, name) for kid in (kids if isinstance(kids, list) else [kids])]
    return [f"{above}/{name}", *(tag for tags in inner for tag in tags)]


def test_heading_tags_skip_no_level_and_list_items_hold_labels_and_bodies_only(tmp_path):
    _, file = write(tmp_path, "### Deep\n\n- a\n\n  b\n\n  - c\n- [ ] d\n\n###### Deeper\n\n# Top")
    tags = tags_of(pypdf.PdfReader(file).trailer["/Root"]["/StructTreeRoot"]["/K"][0])
    assert [tag for tag in tags if "/H" in tag] == ["Document/H1", "Document/H2", "Document/H1"]
    assert {tag for tag in tags if tag.startswith("LI/")} == {"LI/Lbl", "LI/LBody"}


def test_what_stands_before_a_heading_makes_no_second_heading(tmp_path):
    style = "<style>h1::before{content:'';display:block;height:4px}</style>"
    _, file = write(tmp_path, f"{style}<h1>One</h1><p>a", source_format="html")
    tags = tags_of(pypdf.PdfReader(file).trailer["/Root"]["/StructTreeRoot"]["/K"][0])
    assert [tag for tag in tags if "/H" in tag] == ["Document/H1"]


def test_page_numbers_header_and_footer_are_printed(tmp_path):
    options = {"header": "{title}!", "footer": {"right": "p {page} of {pages}"}}
    _, file = write(
        tmp_path, '# A\n\n<div class="page-break"></div>\n\nB', options=options, metadata={"title": 'Q"x'}
    )
    text = pypdf.PdfReader(file).pages[1].extract_text()
    assert 'Q"x!' in text
    assert "p 2 of 2" in text


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({}, (595, 842)),
        ({"page_size": "Letter", "landscape": True}, (792, 612)),
        ({"page_size": "100mm 50mm"}, (283, 142)),
        ({"page_size": "A3"}, (842, 1191)),
    ],
)
def test_the_page_has_the_size_asked_for(tmp_path, options, size):
    _, file = write(tmp_path, "x", options=options)
    box = pypdf.PdfReader(file).pages[0].mediabox
    assert (round(box.width), round(box.height)) == size


def test_the_authors_page_rule_wins(tmp_path):
    _, file = write(tmp_path, "<style>@page { size: 200px 100px }</style><p>x", source_format="html")
    assert round(pypdf.PdfReader(file).pages[0].mediabox.width) == 150


@pytest.mark.parametrize("size", ["0 0", "2px 2px", "1000cm 1000cm", "1e30px 5px", "-5px 9px", "calc(1px/0) 5px"])
def test_a_page_has_a_size_that_readers_can_show(tmp_path, size):
    answer, file = write(tmp_path, f"<style>@page {{ size: {size} }}</style><p>word", source_format="html")
    box = pypdf.PdfReader(file).pages[0].mediabox
    assert (answer["ok"], 20 < box.width <= 14_400, 20 < box.height <= 14_400) == (True, True, True)


SLIDES = "<style>.slide{width:1280px;height:720px}</style>" + "<section class=slide><h1>One</h1></section>" * 2


@pytest.mark.parametrize(
    ("options", "size", "pages"), [({}, (960, 540), 2), ({"page_size": "A4"}, (595, 842), 1)], ids=["free", "A4"]
)
def test_slides_wider_than_the_page_are_not_cut(tmp_path, options, size, pages):
    style = "<style>.slide{background:#eee;margin:0} body{margin:0}</style>"
    answer, file = write(tmp_path, style + SLIDES, source_format="html", options=options)
    box = pypdf.PdfReader(file).pages[0].mediabox
    assert ((round(box.width), round(box.height)), answer["facts"]["pages"]) == (size, pages)


def test_content_wider_than_the_page_is_scaled_to_fit(tmp_path):
    html = '<div style="width:1000px;text-align:right;background:#eee">edge</div><p>below'
    answer, file = write(tmp_path, html, source_format="html")
    page = pypdf.PdfReader(file).pages[0]
    ends: list[float] = []
    page.extract_text(
        visitor_text=lambda text, cm, matrix, _font, _size: (
            ends.append(cm[0] * matrix[4] + cm[4]) if "edge" in text else None
        )
    )
    assert [warning["code"] for warning in answer["warnings"]] == ["scaled_to_fit"]
    assert round(page.mediabox.width) == 595
    assert 400 < max(ends) < 595 - 50


def test_contents_have_the_pages_of_their_headings(tmp_path):
    _, file = write(tmp_path, '# T\n\n[TOC]\n\n## One\n\n<div class="page-break"></div>\n\n## Two')
    lines = pypdf.PdfReader(file).pages[0].extract_text().splitlines()
    assert any(line.startswith("Two") and line.rstrip().endswith("2") for line in lines)


def test_a_wide_table_loses_no_column(tmp_path):
    head = "|" + "|".join(f"Heading{number}" for number in range(14)) + "|\n|" + "---|" * 14 + "\n"
    _, file = write(tmp_path, head + "|" + "|".join(f"value{number}" for number in range(14)) + "|")
    page = pypdf.PdfReader(file).pages[0]
    places: list[float] = []
    page.extract_text(
        visitor_text=lambda text, _cm, matrix, _font, _size: places.append(matrix[4]) if text.strip() else None
    )
    assert page.mediabox.width > page.mediabox.height
    assert max(places) * 0.75 < float(page.mediabox.width) - 40  # the text matrix is in CSS px
    assert "value13" in page.extract_text()


def test_pdf_a_is_declared_with_a_readable_metadata_stream(tmp_path):
    _, file = write(tmp_path, "x", options={"pdf_variant": "pdf/a-3b"})
    assert b"<pdfaid:part>3</pdfaid:part>" in file.read_bytes() or b'pdfaid:part="3"' in file.read_bytes()


def test_a_page_range_and_relative_links_are_kept(tmp_path):
    content = '[l](other.pdf)\n\n<div class="page-break"></div>\n\nB\n\n<div class="page-break"></div>\n\nC'
    answer, file = write(tmp_path, content, options={"pages": "1,3"})
    page = pypdf.PdfReader(file).pages[0]
    assert answer["facts"]["pages"] == 2
    assert [item.get_object()["/A"]["/URI"] for item in page["/Annots"]] == ["other.pdf"]


@pytest.mark.parametrize("theme", ["plain", "dark", "brand", "paper"])
def test_every_theme_renders(tmp_path, theme):
    assert write(tmp_path, "# A\n\n> [!NOTE]\n> b\n\n```python\nx = 1\n```", theme=theme)[0]["warnings"] == []


def test_a_theme_file_gives_its_colours(tmp_path):
    (tmp_path / "turn_1").mkdir()
    (tmp_path / "turn_1" / "t.toml").write_text(
        '[palette]\naccent = "rgb(255, 0, 0)"\nbackground = "#000"\ntext = "#fff"\n'
    )
    _, file = write(tmp_path, "x", "png", theme="turn_1/t.toml")
    assert Image.open(file).convert("RGB").getpixel((2, 2)) == (0, 0, 0)


def test_an_unknown_theme_is_a_typed_error(tmp_path):
    assert write(tmp_path, "x", theme="nope")[0]["error"]["code"] == "unknown_theme"


CARD = '<body style="margin:0"><div id="c" style="width:100px;height:50px;background:#f00"></div><p>tail</p>'


def test_a_picture_is_as_large_as_its_content_and_padding_times_the_scale(tmp_path):
    html = '<body style="margin:0"><div style="width:100px;height:50px;background:#f00"></div>'
    answer, file = write(tmp_path, html, "png", "html", options={"padding_px": 10, "device_scale_factor": 3})
    image = Image.open(file)
    assert (answer["facts"]["width"], image.size) == (360, (360, 210))
    assert (image.getpixel((5, 5)), image.getpixel((40, 40))) == ((255, 255, 255), (255, 0, 0))


def test_a_selector_crops_and_transparency_is_kept(tmp_path):
    options = {"selector": "#c", "padding_px": 4, "device_scale_factor": 1, "background": "transparent"}
    _, file = write(tmp_path, CARD, "png", "html", options=options)
    image = Image.open(file)
    assert (image.size, image.getpixel((1, 1))[3], image.getpixel((50, 25))) == ((108, 58), 0, (255, 0, 0, 255))


def test_a_tall_page_is_not_cut_and_vh_is_the_viewport(tmp_path):
    html = '<body style="margin:0"><div style="height:100vh;background:#00f"></div>'
    html += '<div style="height:3000px;background:#0f0"></div>'
    options = {"fit": "page", "width": 200, "height": 300, "device_scale_factor": 1}
    _, file = write(tmp_path, html, "png", "html", options=options)
    image = Image.open(file)
    assert image.size == (200, 3300)
    assert (image.getpixel((9, 299)), image.getpixel((9, 301)), image.getpixel((9, 3299))) == (
        (0, 0, 255),
        (0, 255, 0),
        (0, 255, 0),
    )


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"selector": ".none"}, "selector_not_found"),
        ({"selector": "p["}, "invalid_option"),
        ({"device_scale_factor": 9}, "invalid_option"),
        ({"fit": "window"}, "invalid_option"),
        ({"background": "nocolour"}, "invalid_option"),
    ],
)
def test_options_that_cannot_be_met_are_typed_errors(tmp_path, options, code):
    assert write(tmp_path, CARD, "png", "html", options=options)[0]["error"]["code"] == code


def test_a_picture_past_the_pixel_limit_is_a_typed_error_and_leaves_no_file(tmp_path):
    answer, file = write(tmp_path, '<div style="height:90000px;background:red">x', "png", "html")
    assert answer["error"]["code"] == "image_too_large"
    assert list(file.parent.iterdir()) == []


HOSTILE = [
    "<style>@page{size:0 0}</style><p>a",
    '<div style="display:flex">' * 30 + "a",
    "<p>" + "x" * 50_000,
    "<table><tr><td colspan=65000 rowspan=65000>a<td>b</table>",
    (
        '<style>@color-profile --x {src:url(http://e/x.icc)} @import "http://evil/x.css";'
        " p{--a:var(--b);--b:var(--a);width:var(--a)}</style><p>a"
    ),
    "<svg viewBox='0 0 0 0'><circle r='NaN'/></svg>a",
    "",
]


@pytest.mark.parametrize("html", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_documents_still_make_a_pdf(tmp_path, html):
    answer, file = write(tmp_path, html, source_format="html")
    assert (answer["ok"], file.read_bytes()[:5]) == (True, b"%PDF-")


def test_the_program_prints_one_line_of_json(tmp_path):
    request = {
        "output": "pdf",
        "source_format": "markdown",
        "content": "x [[S:2]]",
        "root": str(tmp_path),
        "target": "t/a.pdf",
    }
    request |= {"sources": [{"sid": 2, "title": "Two"}]}
    (tmp_path / "r.json").write_text(json.dumps(request))
    command = [sys.executable, "-m", "render", str(tmp_path / "r.json")]
    done = subprocess.run(command, cwd=PROGRAMS, capture_output=True, check=False, text=True)
    answer = json.loads(done.stdout)
    assert (done.returncode, done.stdout.count("\n"), answer["cited"]) == (0, 1, [2])


def test_the_program_answers_a_broken_request_with_a_typed_error(tmp_path):
    (tmp_path / "r.json").write_text("{")
    done = subprocess.run(
        [sys.executable, "-m", "render", str(tmp_path / "r.json")], cwd=PROGRAMS, capture_output=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (1, "invalid_request")


@pytest.mark.parametrize(("cell", "pages"), [("r4999c5 value 249", 5), ("r4999c5 of values 2499500", 10)])
def test_type_of_a_long_table_is_smaller_if_its_texts_then_stand_in_one_line_each(tmp_path, cell, pages):
    """Of 8 pt, 44 rows of one line fill a page; what would take smaller type wraps in the theme's own."""
    rows = "\n".join(["| " + " | ".join([cell] * 6) + " |"] * 200)
    answer, _ = write(tmp_path, f"| a | b | c | d | e | f |\n|-|-|-|-|-|-|\n{rows}")
    assert answer["facts"]["pages"] == pages


def test_text_after_a_landscape_table_is_on_a_page_as_before_it(tmp_path):
    row = "|" + "Characteristic|" * 11
    _, file = write(tmp_path, f"Before\n\n{row}\n{'|-' * 11}|\n{row}\n\nAfter")
    pages = pypdf.PdfReader(file).pages
    assert [page.mediabox.width > page.mediabox.height for page in pages] == [False, True, False]
    assert ["Before" in pages[0].extract_text(), "After" in pages[-1].extract_text()] == [True, True]


@pytest.mark.parametrize(
    ("above", "turned", "first"),
    [
        ("# T", [True, False], "T"),
        ("# T\n\nShort words.", [True, False], "T"),
        ("Before\n\n## H\n\n### I", [False, True, False], "Before"),
        ("One\n\nTwo", [False, True, False], "One"),
        (f"# T\n\n{'word ' * 100}", [False, True, False], "T"),
    ],
)
@pytest.mark.parametrize("columns", [11, 26])
def test_a_heading_stands_on_the_page_of_its_wide_table(tmp_path, above, turned, first, columns):
    row = "|" + "Characteristics|" * columns
    _, file = write(tmp_path, f"{above}\n\n{row}\n{'|-' * columns}|\n{row}\n\nAfter")
    pages = pypdf.PdfReader(file).pages
    assert [page.mediabox.width > page.mediabox.height for page in pages] == turned
    assert pages[0].extract_text().split()[0] == first


def test_a_shadow_fades_without_lines(tmp_path):
    """Away from a card every pixel is as light as the one before it or lighter; no gradients meet in seams."""
    card = "width:100px;height:100px;margin:50px;background:white;border-radius:10px;box-shadow:0 0 30px black"
    options = {"device_scale_factor": 2, "padding_px": 0, "fit": "viewport", "width": 200, "height": 200}
    html = f"<body style='margin:0'><div style='{card}'></div>"
    _, file = write(tmp_path, html, "png", "html", options=options)
    picture = Image.open(file).convert("L")
    rows = [[picture.getpixel((x, y)) for x in range(304, 400)] for y in range(400)]
    assert [row for row in rows if row != sorted(row)] == []
    assert (rows[200][0] < 200, rows[200][-1] > 250) == (True, True)
    _, file = write(tmp_path, html, source_format="html")
    resources = pypdf.PdfReader(file).pages[0]["/Resources"]
    assert [len(resources.get(kind, {})) for kind in ("/Shading", "/Pattern", "/XObject")] == [0, 0, 0]


def test_form_controls_stand_in_their_line(tmp_path):
    html = "<p><label>Name <input value=Ann></label> <input type=checkbox checked> ok <select><option>one</select>"
    _, file = write(tmp_path, f"{html} <button>Go</button>", source_format="html")
    places = []

    def note(text, _matrix, place, _font, _size):
        if text.strip() in {"Name", "Ann", "ok", "one", "Go"}:
            places.append(round(place[5]))

    pypdf.PdfReader(file).pages[0].extract_text(visitor_text=note)
    assert (len(places), max(places) - min(places) < 6) == (5, True)
