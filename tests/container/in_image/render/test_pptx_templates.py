"""A deck in a house template has its master, layouts, placeholders and size, and none of its slides."""

import json

import pptx
import pytest
from house_files import changed, slide_template, unpacked
from page_looks import codes, rendered
from slide_geometry import geometry_faults

DECK = """\
---
title: Quarterly report
author: Ada
---

## Agenda

- one **bold** word
  - nested
- two

## Figures

| Region | Q1 |
|---|---:|
| North | 120 |

# Part two

## Steps

1. first
2. second

Words below.
"""
PALE = "<section style='background:#eef;padding:40px'><h2>Own</h2><p style='color:#c01234'>Red words</p></section>"


@pytest.fixture(params=[False, True], ids=["4:3", "16:9"])
def house(tmp_path, request):
    slide_template(tmp_path / "house.pptx", wide=request.param)

    def write(source, source_format="markdown", **options):
        options = {"template": "house.pptx", **options}
        answer, file = rendered(tmp_path, source, "pptx", source_format, options=options)
        assert answer["ok"], answer
        return answer, pptx.Presentation(str(file)), file

    return write


def shapes(slide):
    return [(shape.placeholder_format.type.name, shape.text_frame.text) for shape in slide.placeholders]


def test_slides_use_the_layouts_and_placeholders_of_the_template(house):
    _, deck, _ = house(DECK)
    assert [slide.slide_layout.name for slide in deck.slides] == [
        "Title Slide",
        "Title and Content",
        "Title Only",
        "Section Header",
        "Title and Content",
    ]
    assert [shapes(slide) for slide in deck.slides] == [
        [("CENTER_TITLE", "Quarterly report"), ("SUBTITLE", "Ada")],
        [("TITLE", "Agenda"), ("OBJECT", "one bold word\nnested\ntwo")],
        [("TITLE", "Figures")],
        [("TITLE", "Part two")],
        [("TITLE", "Steps"), ("OBJECT", "first\nsecond\nWords below.")],
    ]
    assert len(deck.slide_layouts) == 11
    assert geometry_faults(deck) == []


def test_text_in_a_placeholder_looks_as_the_template_says(house):
    _, deck, _ = house(DECK)
    for slide in deck.slides:
        for shape in slide.placeholders:
            assert shape._element.spPr.find("{*}xfrm") is None
            runs = [run for paragraph in shape.text_frame.paragraphs for run in paragraph.runs]
            assert {run.font.size for run in runs} == {None}
            assert [child.tag for run in runs for child in run._r.rPr] == []
    agenda = deck.slides[1].placeholders[1].text_frame.paragraphs
    assert [paragraph.level for paragraph in agenda] == [0, 1, 0]
    assert [run.text for run in agenda[0].runs if run.font.bold] == ["bold"]


def test_what_no_placeholder_takes_is_drawn_in_the_area_of_the_content(house):
    _, deck, _ = house(DECK)
    body = next(shape for shape in deck.slide_layouts[1].placeholders if shape.placeholder_format.idx == 1)
    (frame,) = [shape for shape in deck.slides[2].shapes if shape.has_table]
    assert body.left <= frame.left + 20_000
    assert frame.left + frame.width <= body.left + body.width + 20_000
    assert body.top <= frame.top + 20_000
    assert frame.top + frame.height <= body.top + body.height


def test_drawn_text_has_the_fonts_of_the_template(house):
    _, deck, _ = house("## One\n\n- **A**: b\n- **C**: d\n\n## Two\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    faces = [face.get("typeface") for slide in deck.slides for face in slide._element.iterfind(".//{*}latin")]
    assert set(faces) <= {"+mj-lt", "+mn-lt"}


def test_text_on_a_dark_ground_is_light(tmp_path):
    def darken(parts):
        master = "ppt/slideMasters/slideMaster1.xml"
        ground = b'<p:bg><p:bgPr><a:solidFill><a:srgbClr val="14213D"/></a:solidFill><a:effectLst/></p:bgPr></p:bg>'
        head, rest = parts[master].split(b"<p:bg>", 1)
        parts[master] = head + ground + rest.split(b"</p:bg>", 1)[1]
        parts[master] = parts[master].replace(b'bg1="lt1" tx1="dk1"', b'bg1="dk1" tx1="lt1"')

    changed(slide_template(tmp_path / "house.pptx"), darken)
    _, file = rendered(tmp_path, DECK, "pptx", "markdown", options={"template": "house.pptx"})
    (table,) = [shape.table for shape in pptx.Presentation(str(file)).slides[2].shapes if shape.has_table]
    fills = {run._r.rPr.find("{*}solidFill")[0].get("val") for cell in table.iter_cells()
             for paragraph in cell.text_frame.paragraphs for run in paragraph.runs}  # fmt: skip
    assert fills == {"tx1"}


def test_nothing_of_the_template_s_own_slides_is_left(house):
    _, _, file = house(DECK)
    parts = unpacked(file)
    assert len([name for name in parts if name.startswith("ppt/slides/slide")]) == 5
    assert [name for name, data in parts.items() if b"Old words" in data] == []


def test_a_slide_with_a_design_of_its_own_keeps_it(house):
    _, deck, _ = house(PALE, "html")
    slide = deck.slides[0]
    text = slide._element.xpath("string(.)")
    assert ("Own" in text, "Red words" in text) == (True, True)
    xml = slide.part.blob.decode()
    assert ("C01234" in xml, "EEEEFF" in xml) == (True, True)
    assert slide.shapes[-1].left + slide.shapes[-1].width <= deck.slide_width


def test_a_full_slide_is_split_or_set_smaller_in_the_area(house):
    rows = "\n".join(
        f"- Revenue grew in the {number}. quarter of the year, as was expected" for number in range(18)
    )
    answer, deck, _ = house(f"## Full\n\n{rows}")
    words = [shape.text_frame.text for slide in deck.slides for shape in slide.placeholders]
    assert sum(text.count("Revenue") for text in words) == 18
    assert set(codes(answer)) <= {"slide_split", "slide_scaled"}
    assert answer["warnings"] != []


def test_numbers_stand_where_the_template_has_them(house):
    _, deck, _ = house(DECK, page_numbers=True)
    kinds = [[kind for kind, _ in shapes(slide)] for slide in deck.slides]
    assert ["SLIDE_NUMBER" in row for row in kinds] == [False, True, True, False, True]


def test_speaker_notes_and_links_between_slides_work(house):
    _, deck, _ = house("## One\n\n[there](#two)\n\n<!-- notes: said -->\n\n## Two\n\ntext")
    assert deck.slides[0].notes_slide.notes_text_frame.text == "said"
    (run,) = deck.slides[0].placeholders[1].text_frame.paragraphs[0].runs
    assert run._r.rPr.find("{*}hlinkClick").get("action") == "ppaction://hlinksldjump"


def test_a_template_has_a_size_of_its_own(tmp_path):
    slide_template(tmp_path / "house.pptx")
    options = {"template": "house.pptx", "slide_size": "A4"}
    answer, _ = rendered(tmp_path, DECK, "pptx", "markdown", options=options)
    assert answer["error"] == {
        "code": "invalid_option",
        "message": "slide_size: the template has a size of its own; leave slide_size out.",
    }


def test_larger_text_than_slides_can_hold_is_set_in_28_points(tmp_path):
    slide_template(tmp_path / "house.pptx", points=4800)
    answer, file = rendered(tmp_path, DECK, "pptx", "markdown", options={"template": "house.pptx"})
    deck = pptx.Presentation(str(file))
    sizes = {run.font.size.pt for run in deck.slides[1].placeholders[1].text_frame.paragraphs[0].runs}
    assert (json.dumps(answer["ok"]), sizes) == ("true", {28.0})
