"""Slides without a heading have a name, and what a slide holds uses the room there is."""

import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pptx.util import Pt

sys.path.insert(0, str(Path(__file__).parent))

from render.frontend.pipeline import open_document
from render.model import RenderRequest
from render.pptx.writer import write_pptx
from slide_geometry import deck_words, geometry_faults, is_hidden, open_deck, shown

PIXEL = 9525
LONG = "A sentence that takes up a line of a slide, and then some more of it. " * 3


def deck_of(root: Path, source: str, source_format: str = "markdown") -> Any:
    document = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx"))
    write_pptx(document, str(root / "deck.pptx"))
    return open_deck(root / "deck.pptx")


def paragraphs(slide: Any) -> list[Any]:
    return [para for shape in shown(slide) if shape.has_text_frame for para in shape.text_frame.paragraphs]


def bullets(slide: Any) -> list[tuple[str, str]]:
    """The paragraphs that have a number: their scheme and text."""
    return [
        (number[0], para.text)
        for para in paragraphs(slide)
        if (number := para._p.xpath("./a:pPr/a:buAutoNum/@type"))
    ]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("Final words, *after* a rule.", "Final words, after a rule."),
        ("| a | b |\n|---|---|\n| c | d |", "a b c d"),
        ("![A buoy at sea](p.png)", "A buoy at sea"),
        ("many words " * 20, "many words many words many words many"),
    ],
)
def test_a_slide_without_a_heading_is_named_by_what_is_on_it_where_nobody_sees_it(
    content: str, name: str, tmp_path: Path
) -> None:
    Image.new("RGB", (40, 20), "navy").save(tmp_path / "p.png")
    deck = deck_of(tmp_path, f"# First\n\nx\n\n---\n\n{content}\n")
    slide = deck.slides[1]
    title = slide.shapes.title
    assert title.text_frame.text == name
    assert is_hidden(title)
    assert title.top + title.height < 0
    assert geometry_faults(deck) == []


def test_every_slide_has_exactly_one_title(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "# First\n\nx\n\n---\n\nLoose\n\n---\n\n## Second\n\n- y\n")
    titles = [[shape for shape in slide.placeholders if shape.name.startswith("Title")] for slide in deck.slides]
    assert [[is_hidden(shape) for shape in shapes] for shapes in titles] == [[False], [True], [False]]


def test_a_line_before_the_first_heading_stands_above_it(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "<p>Served from March.</p><h1>Menu</h1><ul><li>Soup</li></ul>", "html")
    assert [slide.shapes.title.text_frame.text for slide in deck.slides] == ["Menu"]
    assert deck_words(deck) == ["served", "from", "march", "menu", "soup"]


def test_a_paragraph_before_the_first_heading_is_a_slide_of_its_own(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, f"{LONG}\n\n## One\n\nx\n\n## Two\n\ny\n")
    assert [slide.shapes.title.text_frame.text for slide in deck.slides][1:] == ["One", "Two"]


def test_a_picture_that_begins_a_line_has_a_break_before_its_gap(tmp_path: Path) -> None:
    Image.new("RGB", (1000, 30), "navy").save(tmp_path / "p.png")
    source = '<h1>T</h1><ul><li>x</li></ul><p>Some words that come first <img src="p.png" alt="P"> last</p>'
    deck = deck_of(tmp_path, source, "html")
    text = next(para.text for para in paragraphs(deck.slides[0]) if "Some words" in para.text)
    before, _, after = text.partition("\v")
    assert (before, after[0], after.split()[-1]) == ("Some words that come first", "\u00a0", "last")


def test_a_tall_picture_in_a_line_does_not_reach_into_the_line_above(tmp_path: Path) -> None:
    Image.new("RGB", (60, 70), "navy").save(tmp_path / "p.png")
    image = '<img src="p.png" alt="P" style="vertical-align:middle">'
    source = f"<h1>T</h1><ul><li>x</li></ul><p>{LONG[:140]}{image} last</p>"
    slide = deck_of(tmp_path, source, "html").slides[0]
    (drawn,) = [shape for shape in slide.shapes if shape.name.startswith("Picture")]
    (frame,) = [shape for shape in shown(slide) if shape.has_text_frame and "sentence" in shape.text_frame.text]
    para = frame.text_frame.paragraphs[-1]
    bottom = frame.top + frame.height
    assert bottom - para.line_spacing <= drawn.top + drawn.height / 2 <= bottom


def test_a_chart_that_made_way_for_text_takes_the_room_that_is_left(tmp_path: Path) -> None:
    chart = "```chart\ntype: bar\nx: [a, b]\nseries:\n  - name: S\n    data: [1, 2]\n```\n"
    deck = deck_of(tmp_path, f"## Revenue\n\n{LONG * 2}\n\n{chart}")
    frames = [shape for shape in deck.slides[0].shapes if shape.has_chart]
    assert [round((frame.top + frame.height) / PIXEL) for frame in frames] == [720 - 52]
    assert geometry_faults(deck) == []


def test_few_lines_are_set_bigger_than_many(tmp_path: Path) -> None:
    few, many = "- a\n- b\n", "".join(f"- item {number}\n" for number in range(10))
    deck = deck_of(tmp_path, f"## Few\n\n{few}\n## Many\n\n{many}")
    sizes = [
        {run.font.size for shape in shown(slide) if shape is not slide.shapes.title for run in runs_of(shape)}
        for slide in deck.slides
    ]
    titles = [{run.font.size for run in runs_of(slide.shapes.title)} for slide in deck.slides]
    assert sizes == [{Pt(30), Pt(28)}, {Pt(30), Pt(21)}]
    assert titles == [{Pt(30)}, {Pt(30)}]


def runs_of(shape: Any) -> list[Any]:
    return [run for para in shape.text_frame.paragraphs for run in para.runs] if shape.has_text_frame else []


def test_an_item_that_begins_with_code_has_its_number_there(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "1. ```\n   foo\n   ```\n\n   bar\n")
    assert bullets(deck.slides[0]) == [("arabicPeriod", "foo")]
    assert geometry_faults(deck) == []


def test_a_heading_in_an_item_keeps_its_bullet_and_is_no_title(tmp_path: Path) -> None:
    slide = deck_of(tmp_path, "- # Foo\n- Bar\n").slides[0]
    assert is_hidden(slide.shapes.title)
    assert [(para.text, para._p.xpath("./a:pPr/a:buChar/@char")) for para in paragraphs(slide)] == [
        ("Foo", ["\u2022"]),
        ("Bar", ["\u2022"]),
    ]


def test_code_in_a_cell_stands_there_once(tmp_path: Path) -> None:
    source = "<table><tr><td>\n<pre>\n**Hello**,\n\n_world_.\n</pre>\n</td></tr></table>\n"
    assert deck_words(deck_of(tmp_path, source)) == ["hello", "world"]


def test_the_head_of_a_table_on_a_ground_of_its_own_has_no_light_band(tmp_path: Path) -> None:
    table = "| From | To |\n|---|---|\n| Vienna | Paris |\n"
    colours = "<!-- _backgroundColor: #102a43 -->\n<!-- _color: white -->\n"
    slide = deck_of(tmp_path, f"---\nmarp: true\n---\n\n# T\n\n---\n{colours}## Routes\n\n{table}").slides[1]
    (frame,) = [shape for shape in slide.shapes if shape.has_table]
    assert [cell._tc.xpath("./a:tcPr/a:solidFill") for cell in frame.table.rows[0].cells] == [[], []]
    text = [cell._tc.xpath(".//a:rPr/a:solidFill/*/@val")[0] for cell in frame.table.rows[0].cells]
    assert text == ["bg1", "bg1"]


def test_what_is_told_of_a_marp_background_that_is_missing_stands_last_and_without_keywords(tmp_path: Path) -> None:
    slide = deck_of(tmp_path, "---\nmarp: true\n---\n\n![bg right:40% A field](no.png)\n\n## T\n\nWords\n").slides[
        0
    ]
    assert [para.text for para in paragraphs(slide)] == ["T", "Words", "A field \u2014 missing image: no.png"]


def test_lines_of_cells_have_room_on_the_side_where_they_end(tmp_path: Path) -> None:
    slide = deck_of(tmp_path, "## T\n\n| left | right |\n|:--|--:|\n| a | b |\n").slides[0]
    (frame,) = [shape for shape in slide.shapes if shape.has_table]
    margins = [round((cell.margin_left - cell.margin_right) / PIXEL) for cell in frame.table.rows[1].cells]
    assert margins == [6, -6]
