"""Decks are opened again: no word is lost, nothing overlaps or leaves a slide, and what can be native is."""

import base64
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from deck_corpus import GOOD, HOSTILE
from render.frontend.element_tree import body_of, classes_of, name_of
from render.frontend.pipeline import open_document
from render.model import Document, Metadata, RenderRequest, Source
from render.pptx.writer import write_pptx
from render.slides.splitting.slide_content import is_notes
from slide_geometry import deck_words, found_share, geometry_faults, open_deck, part, words

BLOCKS = {"p", "div", "li", "td", "th", "br", "h1", "h2", "h3", "section", "tr", "dt", "dd", "pre", "ul", "table"}
REORDERED = {"pb-math", "footnotes", "pb-chart", "pb-notes"}


def written(
    root: Path, source: str, source_format: str = "markdown", **request: Any
) -> tuple[Document, Any, Path, dict[str, Any]]:
    document = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx", **request))
    target = root / "deck.pptx"
    facts = write_pptx(document, str(target))
    return document, open_deck(target), target, facts


def source_words(source: str, source_format: str, root: Path) -> list[str]:
    """The words of the sanitised tree, without what is shown elsewhere on the slide or as a picture."""
    tree = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx")).tree
    texts: list[str] = []

    def walk(element: Any) -> None:
        if name_of(element) in {"", "style", "script", "template", "title", "head"} or is_notes(element):
            return
        if REORDERED & set(classes_of(element)):
            return
        if "pb-missing" in classes_of(element) and "bg" in (element.text or "").split():
            return  # Marp's keywords are no words
        if name_of(element) in BLOCKS:
            texts.append("\n")
        texts.append(element.text or "")
        for child in element:
            walk(child)
            texts.append("\n" if name_of(child) in BLOCKS else "")
            texts.append(child.tail or "")

    walk(body_of(tree))
    return words("".join(texts))


def titles(deck: Any) -> list[str]:
    return [slide.shapes.title.text_frame.text if slide.shapes.title is not None else "" for slide in deck.slides]


@pytest.mark.parametrize("name", GOOD)
def test_every_word_of_a_deck_is_there_in_order_and_nothing_overlaps(name: str, tmp_path: Path) -> None:
    source_format, source = GOOD[name]
    _, deck, _, facts = written(tmp_path, source, source_format)
    assert found_share(source_words(source, source_format, tmp_path), deck_words(deck)) >= 0.995
    assert geometry_faults(deck) == []
    assert facts["slides"] == len(deck.slides)


SLOW = ("nested-flex", "600-slides", "wide-table", "wide-and-long", "hundred-pictures")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in HOSTILE]
)
def test_a_hostile_deck_is_written_without_losing_letters_or_leaving_the_slide(name: str, tmp_path: Path) -> None:
    source_format, source = HOSTILE[name]
    _, deck, _, _ = written(tmp_path, source, source_format)
    wanted, got = "".join(source_words(source, source_format, tmp_path)), "".join(deck_words(deck))
    assert len(got) >= len(wanted) * 0.995
    assert geometry_faults(deck) == []


def test_slides_are_16_to_9_and_use_real_layouts(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, "# Deck\n\nsub\n\n## One\n\n- a\n\n# Thanks\n\n## Last\n\ntext\n")
    assert (deck.slide_width, deck.slide_height) == (12192000, 6858000)
    assert [slide.slide_layout.name for slide in deck.slides] == [
        "Title Slide",
        "Title and Content",
        "Section Header",
        "Title and Content",
    ]
    assert titles(deck) == ["Deck", "One", "Thanks", "Last"]


def test_lists_are_native_bullets_with_levels_and_numbers(tmp_path: Path) -> None:
    _, deck, target, _ = written(tmp_path, "## L\n\n- a\n  - b\n\nmid\n\n3. three\n4. four\n")
    body = deck.slides[0].placeholders[1].text_frame
    assert [(p.text, p.level) for p in body.paragraphs] == [
        ("a", 0),
        ("b", 1),
        ("mid", 0),
        ("three", 0),
        ("four", 0),
    ]
    xml = part(target, "ppt/slides/slide1.xml")
    assert xml.count("<a:buChar") == 2
    assert xml.count('<a:buAutoNum type="arabicPeriod" startAt="3"/>') == 1
    assert xml.count('<a:buAutoNum type="arabicPeriod"/>') == 1


def test_a_split_table_is_native_and_repeats_its_header(tmp_path: Path) -> None:
    rows = "\n".join(f"| {n} | value {n} |" for n in range(40))
    document, deck, _, facts = written(tmp_path, f"## Data\n\n| n | v |\n|---|---|\n{rows}\n")
    tables = [shape.table for slide in deck.slides for shape in slide.shapes if shape.has_table]
    assert len(tables) == len(deck.slides) > 1
    assert {table.cell(0, 1).text for table in tables} == {"v"}
    assert [table.cell(row, 0).text for table in tables for row in range(1, len(table.rows))] == [
        str(n) for n in range(40)
    ]
    assert titles(deck) == [f"Data ({n}/{len(tables)})" for n in range(1, len(tables) + 1)]
    assert facts["splits"] == 1
    assert [warning.code for warning in document.warnings] == ["slide_split"]


@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.slow)])
def test_a_table_of_many_rows_is_split_completely(tmp_path: Path, count: int) -> None:
    rows = "\n".join(f"| {n} | a{n} | b{n} | c{n} | d{n} | e{n} |" for n in range(count))
    document = open_document(
        RenderRequest(
            "pptx", "markdown", f"## Big\n\n|n|a|b|c|d|e|\n|-|-|-|-|-|-|\n{rows}\n", str(tmp_path), "x.pptx"
        )
    )
    write_pptx(document, str(tmp_path / "x.pptx"))
    deck = open_deck(tmp_path / "x.pptx")
    assert geometry_faults(deck) == []
    first = [
        row.tc_lst[0].text
        for slide in deck.slides
        for shape in slide.shapes
        if shape.has_table
        for row in shape._element.graphic.graphicData.tbl.tr_lst
    ]
    assert [text for text in first if text != "n"] == [str(n) for n in range(count)]


def test_speaker_notes_are_on_the_notes_page_only(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, "## A\n\nseen\n\n::: notes\nfirst thing\n\nsecond thing\n:::\n")
    assert deck.slides[0].notes_slide.notes_text_frame.text == "first thing\nsecond thing"
    assert deck_words(deck) == ["a", "seen"]


def test_links_lead_out_and_to_slides(tmp_path: Path) -> None:
    _, deck, target, _ = written(
        tmp_path, "## A\n\n[out](https://example.com/x?y=1) [in](#b) [no](javascript:x)\n\n## B\n\ntext\n"
    )
    runs = [
        run
        for shape in deck.slides[0].shapes
        if shape.has_text_frame
        for p in shape.text_frame.paragraphs
        for run in p.runs
    ]
    assert [run.hyperlink.address for run in runs if run.text == "out"] == ["https://example.com/x?y=1"]
    assert 'action="ppaction://hlinksldjump"' in part(target, "ppt/slides/slide1.xml")
    assert "javascript" not in part(target, "ppt/slides/_rels/slide1.xml.rels")


def test_a_chart_is_native_with_its_figures(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, GOOD["chart"][1])
    chart = next(shape.chart for shape in deck.slides[0].shapes if shape.has_chart)
    assert list(chart.plots[0].categories) == ["Q1", "Q2", "Q3"]
    assert [(series.name, tuple(series.values)) for series in chart.series] == [("A", (1.0, 2.0, 3.0))]


@pytest.mark.parametrize(
    ("kind", "values", "start"), [("column", "95, 99", 0), ("bar", "-1, 9", -2), ("line", "95, 99", 95)]
)
def test_columns_and_bars_start_at_nought_or_below_and_lines_near_their_figures(
    tmp_path: Path, kind: str, values: str, start: float
) -> None:
    chart = f'{{"kind": "{kind}", "categories": ["a", "b"], "series": [{{"name": "s", "values": [{values}]}}]}}'
    _, deck, _, _ = written(tmp_path, f"# T\n\n```chart\n{chart}\n```\n", source_format="markdown")
    drawn = next(shape.chart for shape in deck.slides[0].shapes if shape.has_chart)
    assert drawn.value_axis.minimum_scale == start


def test_a_picture_keeps_its_alt_text_and_shape(tmp_path: Path) -> None:
    Image.new("RGB", (400, 200), "navy").save(tmp_path / "p.png")
    _, deck, _, _ = written(tmp_path, "## P\n\n![A navy field](p.png)\n")
    picture = next(shape for shape in deck.slides[0].shapes if shape.shape_type == 13)
    assert picture._element.nvPicPr.cNvPr.get("descr") == "A navy field"
    assert round(picture.width / picture.height, 2) == 2.0


def test_a_diagram_is_a_drawing_beside_its_raster(tmp_path: Path) -> None:
    _, _, target, _ = written(tmp_path, GOOD["mermaid"][1])
    assert "asvg:svgBlip" in part(target, "ppt/slides/slide1.xml")
    assert "image/svg+xml" in part(target, "[Content_Types].xml")


def test_only_cited_sources_are_on_the_sources_slide_and_only_if_asked_for(tmp_path: Path) -> None:
    sources = (Source(1, "First", "https://one.example"), Source(2, "Second", "https://two.example"))
    _, deck, _, _ = written(
        tmp_path, "## A\n\nSo it is [[S:2]].\n", sources=sources, options={"include_sources_slide": True}
    )
    assert titles(deck) == ["A", "Sources"]
    assert deck_words(deck)[-2:] == ["sources", "second"]
    _, deck, _, _ = written(tmp_path, "## A\n\nSo it is [[S:2]].\n", sources=sources)
    assert titles(deck) == ["A"]


def test_a_footnote_stands_at_the_foot_of_the_slide_that_calls_it(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, GOOD["footnotes"][1])
    notes = [next(shape for shape in slide.shapes if shape.name.startswith("Notes")) for slide in deck.slides]
    assert [note.text_frame.text for note in notes] == ["1 At 100 degrees.", "2 Second note."]
    assert all(note.top > deck.slide_height * 0.8 for note in notes)


def test_a_full_slide_is_scaled_with_body_text_of_14_points_at_least(tmp_path: Path) -> None:
    document, deck, _, facts = written(
        tmp_path, "## Full\n\n" + "".join(f"- point number {n}\n" for n in range(13))
    )
    sizes = {run.font.size.pt for p in deck.slides[0].placeholders[1].text_frame.paragraphs for run in p.runs}
    assert facts == {"slides": 1, "splits": 0, "scaled": 1}
    assert min(sizes) >= 14
    assert [warning.code for warning in document.warnings] == ["slide_scaled"]


def test_a_missing_title_slide_is_made_of_the_metadata(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, "## One\n\ntext\n", metadata=Metadata(title="The plan", author="Ann"))
    assert titles(deck) == ["The plan", "One"]
    assert deck.core_properties.title == "The plan"
    assert deck.core_properties.author == "Ann"


@pytest.mark.parametrize("theme", ["plain", "dark", "brand", "paper"])
def test_the_theme_part_has_the_themes_colours_and_fonts(theme: str, tmp_path: Path) -> None:
    document, _, target, _ = written(tmp_path, "## A\n\ntext\n", theme=theme)
    xml = part(target, "ppt/theme/theme1.xml")
    assert document.theme.colours["accent"].lstrip("#").upper() in xml
    body = {"paper": "Cambria"}.get(theme, "Calibri")
    heading = {"paper": "Cambria", "brand": "Cambria"}.get(theme, "Calibri")
    for place, face in (("minorFont", body), ("majorFont", heading)):
        assert f'<a:{place}><a:latin typeface="{face}"/>' in xml


def test_cards_become_filled_shapes_with_their_text(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, GOOD["styled"][1], "html")
    cards = [
        shape
        for shape in deck.slides[1].shapes
        if shape.has_text_frame and shape.text_frame.text.startswith("Card ")
    ]
    assert len(cards) == 6
    assert {card.fill.fore_color.rgb for card in cards} == {cards[0].fill.fore_color.rgb}
    assert len({card.top for card in cards}) == 2


def test_text_that_has_the_colour_of_its_ground_is_made_readable(tmp_path: Path) -> None:
    _, deck, _, _ = written(
        tmp_path, "<section style='background:#fff'><h2>T</h2><p style='color:#fefefe'>ghost</p></section>", "html"
    )
    run = next(
        run
        for shape in deck.slides[0].shapes
        if shape.has_text_frame
        for p in shape.text_frame.paragraphs
        for run in p.runs
        if run.text == "ghost"
    )
    assert str(run.font.color.rgb) == "1A1A1A"


def test_an_embedded_picture_is_read_from_its_data(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.new("RGB", (20, 20), "red").save(stream, "PNG")
    uri = "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
    _, deck, _, _ = written(tmp_path, f"<section><h2>P</h2><img src='{uri}' alt='red'></section>", "html")
    assert [shape.shape_type for shape in deck.slides[0].shapes if shape.shape_type == 13] == [13]


def test_a_colour_of_marp_is_no_comment_and_other_comments_are_said_aloud(tmp_path: Path) -> None:
    source = (
        "---\nmarp: true\n---\n\n# A\n\n<!-- _backgroundColor: #123456 -->\n<!-- Remember: smile -->\n\nwords\n"
    )
    _, deck, target, _ = written(tmp_path, source)
    assert '<p:bgPr><a:solidFill><a:srgbClr val="123456"/>' in part(target, "ppt/slides/slide1.xml")
    assert deck.slides[0].notes_slide.notes_text_frame.text == "Remember: smile"


def test_marp_divides_at_headings_if_asked_and_else_at_rules_only(tmp_path: Path) -> None:
    body = "# A\n\nx\n\n## B\n\ny\n\n---\n\nz\n"
    _, deck, _, _ = written(tmp_path, f"---\nmarp: true\n---\n\n{body}")
    assert len(deck.slides) == 2
    _, deck, _, _ = written(tmp_path, f"---\nmarp: true\nheadingDivider: 2\n---\n\n{body}")
    assert titles(deck) == ["A", "B", "z"]


def test_a_picture_beside_a_marp_slide_leaves_room_for_its_text(tmp_path: Path) -> None:
    Image.new("RGB", (400, 200), "navy").save(tmp_path / "p.png")
    _, deck, _, _ = written(
        tmp_path, "---\nmarp: true\n---\n\n## T\n\n![bg right:40% A field](p.png)\n\n" + "words " * 40
    )
    picture, title, body = list(deck.slides[0].shapes)
    assert (picture.left, picture.width, picture.height) == (7315200, 4876800, 6858000)
    assert round(picture.crop_left, 3) == round(picture.crop_right, 3) > 0
    assert picture._element.nvPicPr.cNvPr.get("descr") == "A field"
    assert body.left + body.width <= picture.left
    assert title.text_frame.text == "T"


def test_shadows_and_pictures_behind_boxes_are_drawn(tmp_path: Path) -> None:
    Image.new("RGB", (400, 200), "navy").save(tmp_path / "p.png")
    _, deck, target, _ = written(
        tmp_path,
        "<style>:root{--s:0 6px 8px rgba(0,0,0,.5)}.card{background:#fff;box-shadow:var(--s)}</style>"
        "<section><h2>T</h2>"
        "<div class='card'>card</div><div style='height:90px;background:url(p.png) center/cover'></div></section>",
        "html",
    )
    xml = part(target, "ppt/slides/slide1.xml")
    assert '<a:outerShdw blurRad="76200" dist="57150" dir="5400000"' in xml
    assert [shape.shape_type for shape in deck.slides[0].shapes].count(13) == 1


def test_a_list_that_is_cut_goes_on_counting(tmp_path: Path) -> None:
    rows = "".join(f"{n}. {'many words of a point ' * 9}\n" for n in range(1, 16))
    _, deck, target, _ = written(tmp_path, f"## L\n\n{rows}")
    first = len(deck.slides[0].placeholders[1].text_frame.paragraphs)
    assert f'<a:buAutoNum type="arabicPeriod" startAt="{first + 1}"/>' in part(target, "ppt/slides/slide2.xml")


def test_a_footnote_stays_on_the_part_of_a_split_slide_that_calls_it(tmp_path: Path) -> None:
    source = (
        "## F\n\n" + "Many words of a paragraph that fills the slide. " * 60 + "\n\nLast[^a]\n\n[^a]: Told below.\n"
    )
    _, deck, _, _ = written(tmp_path, source)
    assert len(deck.slides) > 1
    assert [slide for slide in deck.slides if "Told below." in str([s.text_frame.text for s in slide.shapes])] == [
        deck.slides[len(deck.slides) - 1]
    ]


def test_an_authors_foot_stands_at_the_foot_and_no_number_is_added(tmp_path: Path) -> None:
    source = (
        "<style>.slide{width:1280px;height:720px;position:relative}"
        ".foot{position:absolute;bottom:20px;left:40px}</style>"
        "<div class='slide'><h2>T</h2><p>words</p><div class='foot'>Acme 2</div></div>"
    )
    _, deck, _, _ = written(tmp_path, source, "html")
    foot = next(shape for shape in deck.slides[0].shapes if shape.text_frame.text == "Acme 2")
    assert foot.top > deck.slide_height * 0.9
    assert [shape.name for shape in deck.slides[0].shapes if shape.name.startswith("Slide Number")] == []
    _, deck, _, _ = written(tmp_path, "## A\n\ntext\n", options={"page_numbers": True})
    assert len([shape for shape in deck.slides[0].shapes if shape.name.startswith("Slide Number")]) == 1


def test_cells_that_span_rows_do_so_in_a_table_too_long_to_be_laid_out(tmp_path: Path) -> None:
    rows = "".join(
        f"<tr><td rowspan=3>g{n}</td><td>a{n}</td></tr><tr><td>b{n}</td></tr><tr><td>c{n}</td></tr>"
        for n in range(30)
    )
    _, deck, _, _ = written(tmp_path, f"<h2>T</h2><table><tr><th>g</th><th>v</th></tr>{rows}</table>", "html")
    tables = [
        shape._element.graphic.graphicData.tbl for slide in deck.slides for shape in slide.shapes if shape.has_table
    ]
    second = [row.tc_lst[1].text for table in tables for row in table.tr_lst[1:]]
    assert second == [f"{letter}{n}" for n in range(30) for letter in "abc"]
    covered = sum(1 for table in tables for row in table.tr_lst for cell in row.tc_lst if cell.get("vMerge"))
    spans = [
        int(cell.get("rowSpan"))
        for table in tables
        for row in table.tr_lst
        for cell in row.tc_lst
        if cell.get("rowSpan")
    ]
    assert covered == sum(span - 1 for span in spans)
    assert tables[0].tr_lst[1].tc_lst[0].get("rowSpan") == "3"


def test_text_is_named_as_what_it_was_measured_with(tmp_path: Path) -> None:
    _, _, target, _ = written(
        tmp_path, "<section style=\"font-family:'Segoe UI',Arial\"><h2>T</h2><p>words</p></section>", "html"
    )
    assert 'typeface="Arial"' in part(target, "ppt/slides/slide1.xml")
    assert "Segoe" not in part(target, "ppt/slides/slide1.xml")


def test_numbers_of_footnotes_are_raised_and_of_the_texts_own_size(tmp_path: Path) -> None:
    _, deck, _, _ = written(tmp_path, "## F\n\nWater[^a] H<sub>2</sub>O\n\n[^a]: At 100 degrees.\n")
    runs = deck.slides[0].placeholders[1].text_frame.paragraphs[0].runs
    assert [(run.text, run._r.rPr.get("baseline")) for run in runs if run._r.rPr.get("baseline")] == [
        ("1", "30000"),
        ("2", "-25000"),
    ]
    assert len({run.font.size for run in runs}) == 1
