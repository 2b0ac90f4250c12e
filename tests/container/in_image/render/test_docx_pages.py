"""Pages of a DOCX: size, margins, headers and footers, the logo."""

import json

import pytest
from docx_reading import Metadata, W, png, written
from render.model import RenderError
from render.page_setup import page_margins, page_size, running_line


def fields(made, part):
    return [element.text.strip() for element in made.part(part).iter(W + "instrText")]


def test_pages_are_numbered_and_can_be_landscape(tmp_path):
    made = written("x", tmp_path, options={"landscape": True})
    section = made.opened.sections[0]
    assert (round(section.page_width.mm), round(section.page_height.mm)) == (297, 210)
    assert fields(made, "word/footer1.xml") == ["PAGE", "NUMPAGES"]


def test_a_page_has_its_own_size_and_four_margins(tmp_path):
    margins = {"top": "30mm", "right": None, "bottom": "1in", "left": "5mm"}
    section = written("x", tmp_path, options={"page_size": "148mm 210mm", "margins": margins}).opened.sections[0]
    found = (
        section.page_width,
        section.top_margin,
        section.right_margin,
        section.bottom_margin,
        section.left_margin,
    )
    assert [round(length.mm) for length in found] == [148, 30, 20, 25, 5]


def test_running_lines_stand_in_three_places_with_their_fields_filled_in(tmp_path):
    options = {
        "header": {"left": "{title}", "center": "", "right": "{author}"},
        "footer": {"left": "{date}", "center": "{page}", "right": ""},
    }
    metadata = Metadata("Title", "Author", date="2026-02-03")
    made = written("x", tmp_path, metadata=metadata, options=options)
    header = [
        element.text or "\t"
        for element in made.part("word/header1.xml").iter(W + "t", W + "tab")
        if not element.attrib.get(W + "pos")
    ]
    assert header == ["Title", "\t", "\t", "Author"]
    assert "".join(made.part("word/footer1.xml").itertext()) == "2026-02-03 PAGE 1"


def test_without_page_numbers_there_is_no_footer(tmp_path):
    made = written("x", tmp_path, options={"page_numbers": False})
    assert [name for name in made.names() if "footer" in name] == []


def test_the_logo_of_a_theme_stands_in_the_header(tmp_path):
    (tmp_path / "logo.png").write_bytes(png(400, 100))
    (tmp_path / "own.json").write_text(json.dumps({"logo": "logo.png"}), encoding="utf-8")
    made = written("x", tmp_path, theme="own.json")
    assert [element.get("descr") for element in made.part("word/header1.xml").iter("{*}docPr")] == ["Logo"]
    assert made.result["images"] == 0


def test_an_unknown_size_is_a_typed_error(tmp_path):
    with pytest.raises(RenderError) as caught:
        written("x", tmp_path, options={"page_size": "A9"})
    assert caught.value.code == "invalid_page_size"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (210, 297)),
        ({"page_size": None}, (210, 297)),
        ({"page_size": "Letter", "landscape": True}, (279.4, 215.9)),
        ({"page_size": "a5 landscape"}, (210, 148)),
        ({"page_size": "10cm x 2in"}, (100, 50.8)),
        ({"page_size": "1mm 90000mm"}, (20, 5000)),
    ],
)
def test_sizes_are_read_in_every_spelling(options, expected):
    assert page_size(options) == pytest.approx(expected)


def test_margins_leave_room_for_text():
    assert page_margins({"margins": "500mm 1cm"}, (210.0, 297.0)) == pytest.approx((118.8, 10, 118.8, 10))


def test_a_footer_of_no_texts_is_none():
    assert running_line({"footer": {"left": "", "center": "", "right": ""}}, "footer") == {}


VML = "{urn:schemas-microsoft-com:vml}"


def watermarks(made):
    """The word of each header that has one, by the header's name."""
    headers = sorted(name for name in made.names() if name.startswith("word/header"))
    return {
        name: [shape.get("string") for shape in made.part(name).iter(VML + "textpath") if shape.get("string")]
        for name in headers
    }


def test_a_watermark_is_a_shape_of_word_in_the_header_of_every_kind_of_page(tmp_path):
    wide = "".join(f"<td>{'longwordlongword' * 2}</td>" for _ in range(14))
    html = f"<h1>A</h1><p>x</p><table><tr>{wide}</tr></table><p>y</p>"
    options = {"watermark": "DRAFT & <secret>", "cover": True, "header": {"right": "{title}"}}
    made = written(html, tmp_path, source_format="html", options=options)
    headers = ("word/header1.xml", "word/header2.xml", "word/header_cover.xml")
    assert watermarks(made) == {name: ["DRAFT & <secret>"] for name in headers}
    types = [
        [item.get(W + "type") for item in section.iter(W + "headerReference")]
        for section in made.body.iter(W + "sectPr")
    ]
    assert types == [["default", "first"], ["default"], ["default"]]
    shape = next(made.part("word/header2.xml").iter(VML + "shape"))
    assert shape.get("id").startswith("PowerPlusWaterMarkObject")
    assert "rotation:315" in shape.get("style")
    assert "DRAFT" not in made.words()


def test_without_a_watermark_there_is_no_shape(tmp_path):
    assert watermarks(written("x", tmp_path, options={"cover": True, "header": {"left": "a"}})) == {
        "word/header1.xml": []
    }
