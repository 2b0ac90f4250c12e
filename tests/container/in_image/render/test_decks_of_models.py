"""What decks of language models have in common: slides known by their size, legends, counters, numbered titles."""

import base64
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from render.frontend.pipeline import open_document
from render.model import RenderRequest
from render.paged.pdf_writer import write_pdf
from render.pptx.writer import write_pptx
from slide_geometry import deck_words, open_deck

EMU = 9525
SIZE = "width:1280px;height:720px;background:#fff;"


def deck_of(root: Path, source: str, source_format: str = "html") -> Any:
    document = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx"))
    write_pptx(document, str(root / "deck.pptx"))
    return open_deck(root / "deck.pptx")


def pages_of(root: Path, source: str) -> list[tuple[float, float, list[str]]]:
    """Width and height in CSS px, and the words, of each page of the PDF."""
    document = open_document(RenderRequest("pdf", "html", source, str(root), "deck.pdf"))
    write_pdf(document, str(root / "deck.pdf"))
    pages = pypdfium2.PdfDocument(root / "deck.pdf")
    return [
        (p.get_width() * 4 / 3, p.get_height() * 4 / 3, p.get_textpage().get_text_range().split()) for p in pages
    ]


def words_of(slide: Any) -> str:
    return " ".join(shape.text_frame.text for shape in slide.shapes if shape.has_text_frame)


def filled(slide: Any, colour: str) -> list[tuple[int, ...]]:
    """Places in pixels of the shapes of a colour."""
    path = f"./p:spPr/a:solidFill/a:srgbClr[@val='{colour}']"
    found = [shape for shape in slide.shapes if shape._element.xpath(path)]
    return [tuple(round(v / EMU) for v in (s.left, s.top, s.width, s.height)) for s in found]


def test_elements_of_the_size_of_a_slide_are_slides_whatever_they_are_called(tmp_path: Path) -> None:
    css = f".ppt-page{{{SIZE}}}"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=ppt-page><h1>A</h1></div><div class=ppt-page>b</div>")
    assert [deck_words(deck), len(deck.slides)] == [["a", "b"], 2]


def test_a_picture_of_that_shape_in_a_report_makes_no_slides(tmp_path: Path) -> None:
    figure = "<div class=figure>a figure</div>"
    text = "<h2>Part</h2><p>Many words of a report that stand around it, before it and behind it.</p>"
    deck = deck_of(tmp_path, f"<style>.figure{{{SIZE}}}</style>{text}{figure}{text}")
    assert any("Part" in words_of(slide) and "Many" in words_of(slide) for slide in deck.slides)


def test_the_border_of_a_slide_is_a_bar(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}box-sizing:border-box;border-top:12px solid #e11d48}}"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>T</h2></div>")
    assert filled(deck.slides[0], "E11D48") == [(0, 0, 1280, 12)]


def test_a_counter_above_words_is_there_once(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}}} b{{display:block;counter-increment:n}} b::before{{content:counter(n);display:block}}"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>T</h2><b>Dig</b><b>Fill</b></div>")
    assert words_of(deck.slides[0]).split() == ["T", "1", "Dig", "2", "Fill"]


def test_a_sign_before_a_heading_has_its_own_colour(tmp_path: Path) -> None:
    css = f'.slide{{{SIZE}}} h2{{color:#123456}} h2::before{{content:"# ";color:#654321}}'
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>Title</h2></div>")
    runs = deck.slides[0].shapes.title._element.xpath(".//a:r/a:rPr/a:solidFill/a:srgbClr/@val")
    assert runs == ["654321", "123456"]


def test_the_colour_of_a_legend_stands_before_its_word(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}}} i{{display:inline-block;width:16px;height:16px;margin-right:8px;background:#16a34a}}"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>T</h2><p><i></i>Wind</p></div>")
    ((left, _, width, height),) = filled(deck.slides[0], "16A34A")
    (frame,) = [s for s in deck.slides[0].shapes if s.has_text_frame and "Wind" in s.text_frame.text]
    assert (width, height) == (16, 16)
    assert left == round(frame.left / EMU)
    assert frame.text_frame.text.startswith("\u00a0")


def test_the_columns_of_a_table_from_right_to_left_stand_as_they_are_laid_out(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}direction:rtl}} table{{width:100%}} td{{width:25%}} td:first-child{{width:50%}}"
    row = "<tr><td>first</td><td>second</td><td>third</td></tr>"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>T</h2><table>{row}</table></div>")
    (table,) = [shape.table for shape in deck.slides[0].shapes if shape.has_table]
    assert [cell.text for cell in table.rows[0].cells] == ["third", "second", "first"]
    widths = [column.width for column in table.columns]
    assert widths[2] > 1.8 * widths[0] > 0


def test_text_of_a_round_shape_stands_where_it_would_without_its_round_corners(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}}} p{{margin:0;padding:20px;background:#eee;border-radius:24px}}"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>T</h2><p>Words</p></div>")
    (body,) = deck.slides[0]._element.xpath(".//p:sp[p:spPr/a:prstGeom/@prst='roundRect']/p:txBody/a:bodyPr")
    assert round(int(body.get("lIns")) / EMU + 24 * (1 - 0.5**0.5)) == 20


def test_boxes_within_boxes_of_a_small_slide_stay_what_they_are(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}}} div div,span{{display:flex;flex-direction:column}} .row{{flex-direction:row}}"
    body = "<div><div class=row><span>left</span><span>right</span></div></div>"
    document = open_document(
        RenderRequest("pptx", "html", f"<style>{css}</style><div class=slide>{body}</div>", str(tmp_path), "a.pptx")
    )
    assert [warning.code for warning in document.warnings] == []


def test_a_big_faint_number_behind_a_slide_keeps_its_colour(tmp_path: Path) -> None:
    css = f".slide{{{SIZE}position:relative}}"
    css += ".n{position:absolute;right:60px;top:40px;font-size:120px;color:#f5f5f5}"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide><h2>T</h2><div class=n>3</div></div>")
    assert deck.slides[0]._element.xpath(".//a:r[a:t='3']/a:rPr/a:solidFill/a:srgbClr/@val") == ["F5F5F5"]


@pytest.mark.parametrize("css", ["", "body{direction:rtl}", "body{padding:9px}"])
def test_slides_of_a_size_have_pages_of_that_size_without_a_window_around_them(tmp_path: Path, css: str) -> None:
    slides = "".join(f"<div class=s><p>one{number}</p></div>" for number in range(3))
    css = f".s{{{SIZE}border-top:12px solid red;box-sizing:border-box;display:grid;margin:20px auto}}{css}"
    pages = pages_of(tmp_path, f"<style>{css}</style>{slides}")
    assert [(round(w), round(h), words) for w, h, words in pages] == [
        (1280, 720, [f"one{number}"]) for number in range(3)
    ]
    pictures = [
        page.render(scale=0.5).to_pil().convert("RGB") for page in pypdfium2.PdfDocument(tmp_path / "deck.pdf")
    ]
    assert [picture.getpixel((9, 1)) for picture in pictures] == [(255, 0, 0)] * 3


def test_a_body_that_is_a_slide_is_the_page(tmp_path: Path) -> None:
    css = "body{width:720pt;height:405pt;margin:0;background:#F4F1EA;display:flex;flex-direction:column}"
    css += ".bar{height:8pt;background:#C15F3C}"
    pages = pages_of(tmp_path, f"<style>{css}</style><div class=bar></div><h1>Findings</h1>")
    assert [(round(w), round(h), words) for w, h, words in pages] == [(960, 540, ["Findings"])]


def test_markdown_of_reveal_becomes_slides_and_notes(tmp_path: Path) -> None:
    text = "## A\n- one\n\nNote:\nsay it\n\n---\n<!-- .slide: data-background-color='#101010' -->\n## B\n"
    source = (
        "<div class=reveal><div class=slides><section><h2>Start</h2></section><section data-markdown>"
        f"<textarea data-template>\n{text}</textarea></section>"
        "<section data-markdown>\n  ## C\n  1. two\n</section></div></div>"
    )
    deck = deck_of(tmp_path, source)
    assert [words_of(slide).split() for slide in deck.slides] == [["Start"], ["A", "one"], ["B"], ["C", "two"]]
    assert deck.slides[1].notes_slide.notes_text_frame.text == "say it"
    assert deck.slides[2]._element.xpath("./p:cSld/p:bg//a:srgbClr/@val") == ["101010"]
    assert deck.slides[2]._element.xpath(".//a:r[a:t='B']/a:rPr/a:solidFill/*/@val") in (["FFFFFF"], ["bg1"])


def reveal_deck(tmp_path: Path, attributes: str, text: str) -> list[tuple[str, str]]:
    """The words and the notes of slides in Markdown within a section."""
    area = f"<section data-markdown {attributes}><textarea data-template>\n{text}\n</textarea></section>"
    deck = deck_of(tmp_path, f"<div class=reveal><div class=slides>{area}</div></div>")
    return [
        (
            " ".join(words_of(slide).split()),
            slide.notes_slide.notes_text_frame.text if slide.has_notes_slide else "",
        )
        for slide in deck.slides
    ]


@pytest.mark.parametrize(
    ("attributes", "text", "slides"),
    [
        (r'data-separator="^\n\n\n"', "## A\n\n\n\n## B\n\n\nb", [("A", ""), ("B b", "")]),
        (r'data-separator="\r?\n\r?\n\r?\n"', "## A\n\na\n\n\n## B", [("A a", ""), ("B", "")]),
        (r'data-separator="^\n\n\n"', "## A\n\n```\nx\n\n\n\ny\n```", [("A x y", "")]),
        ('data-separator="^==$"', "## A\n\n```\nx\n==\n```\n\n==\n\n## B", [("A x ==", ""), ("B", "")]),
        ("", "## A\n\n~~~yaml\nnote: x\n---\n~~~\n\nnote: say", [("A note: x ---", "say")]),
        ('data-separator-notes="^Speaker:"', "## A\n\nNote: b\n\nspeaker: say", [("A Note: b", "say")]),
        ('data-separator-notes="^\\s*hints?:"', "## A\n\nHint: say", [("A", "say")]),
        ('data-separator-notes="(a|b)+:"', "## A\n\nNote: say", [("A", "say")]),
    ],
)
def test_separators_of_reveal_are_those_that_a_section_names(
    tmp_path: Path, attributes: str, text: str, slides: list[tuple[str, str]]
) -> None:
    assert reveal_deck(tmp_path, attributes, text) == slides


@pytest.mark.parametrize("title", ["**Slide {}: Words**", "***Slide {}: Words***", "**Slide {}:** Words"])
def test_numbers_of_slides_leave_emphasised_titles(tmp_path: Path, title: str) -> None:
    source = "\n\n".join(f"## {title.format(number)}\n\n- a" for number in (1, 2))
    deck = deck_of(tmp_path, source, "markdown")
    assert [slide.shapes.title.text_frame.text for slide in deck.slides] == ["Words", "Words"]


def test_numbers_of_slides_leave_their_titles_and_speaker_notes_the_slides(tmp_path: Path) -> None:
    slides = ("# Slide 1: Hello", "# Slide 2: More\n\n- a\n\n> **Speaker notes:** wave", "# Slide rules: why\n")
    source = "\n\n---\n\n".join(slides)
    deck = deck_of(tmp_path, source, "markdown")
    assert [slide.shapes.title.text_frame.text for slide in deck.slides] == ["Hello", "More", "Slide rules: why"]
    assert "wave" in deck.slides[1].notes_slide.notes_text_frame.text
    assert "wave" not in words_of(deck.slides[1])


def test_one_heading_with_a_number_of_a_slide_keeps_it(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "# Talk\n\n## Slide 7: the one\n\n- a\n", "markdown")
    assert "Slide 7: the one" in words_of(deck.slides[1])


def test_a_style_sheet_of_marp_that_only_tints_leaves_the_theme_its_layouts(tmp_path: Path) -> None:
    matter = "---\nmarp: true\nbackgroundColor: '#f6fff2'\nstyle: |\n  h1, h2 { color: #2f7d3b; }\n---\n\n"
    deck = deck_of(tmp_path, f"{matter}# Talk\n\nBy us\n\n---\n\n## Points\n\n- a\n- b\n", "markdown")
    sizes = deck.slides[1]._element.xpath(".//a:r[a:t='a']/a:rPr/@sz")
    grounds = [slide._element.xpath("./p:cSld/p:bg//a:srgbClr/@val") for slide in deck.slides]
    assert (sizes, grounds) == (["2800"], [["F6FFF2"], ["F6FFF2"]])
    title = deck.slides[0].shapes.title
    assert title._element.xpath(".//a:rPr/a:solidFill/a:srgbClr/@val") == ["2F7D3B"]
    assert int(title._element.xpath("string(.//a:rPr/@sz)")) > 4000


def test_a_drawing_as_data_is_a_picture_of_markdown(tmp_path: Path) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
    drawing = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    deck = deck_of(tmp_path, f"## T\n\n![a drawing]({drawing})\n", "markdown")
    assert "data:" not in words_of(deck.slides[0])
    assert [shape.shape_type for shape in deck.slides[0].shapes].count(13) == 1


def test_two_titles_side_by_side_are_as_large_as_each_other(tmp_path: Path) -> None:
    source = "---\nlayout: two-cols\n---\n\n# Left\n\n- a\n\n::right::\n\n# Right\n\n- b\n"
    deck = deck_of(tmp_path, f"# Talk\n\n{source}", "markdown")
    sizes = {
        size
        for slide in deck.slides
        for size in slide._element.xpath(".//a:r[a:t='Left' or a:t='Right']/a:rPr/@sz")
    }
    assert len(sizes) == 1


@pytest.mark.parametrize("position", ["position:relative;", ""])
def test_what_is_placed_in_a_grid_is_no_item_of_it(tmp_path: Path, position: str) -> None:
    css = f".slide{{{SIZE}{position}display:grid;grid-template-rows:auto 1fr auto}}"
    css += "i{position:absolute;right:40px;bottom:30px;width:90px;text-align:right}"
    css += "footer{height:50px;background:#123456}"
    body = "<h2>T</h2><p>Words</p><footer></footer><i>7</i>"
    deck = deck_of(tmp_path, f"<style>{css}</style><div class=slide>{body}</div>")
    (number,) = [shape for shape in deck.slides[0].shapes if shape.has_text_frame and shape.text_frame.text == "7"]
    assert (number.left + number.width) / EMU > 1200
    assert [place[1] for place in filled(deck.slides[0], "123456")] == [670]


def test_small_print_of_a_slide_stays_below_its_content(tmp_path: Path) -> None:
    matter = "---\nmarp: true\nfooter: Small print\n---\n\n"
    deck = deck_of(tmp_path, f"{matter}## Points\n\n- a\n- b\n- c\n", "markdown")
    bottoms = {shape.text_frame.text.split()[0]: shape for shape in deck.slides[0].shapes if shape.has_text_frame}
    assert bottoms["Small"].top > bottoms["a"].top + bottoms["a"].height
    assert round((bottoms["Small"].top + bottoms["Small"].height) / EMU) == 720 - 28


def test_names_of_series_may_be_years(tmp_path: Path) -> None:
    rows = "<tr><th>Cause</th><th>2025</th><th>2026</th></tr><tr><td>Doors</td><td>41</td><td>9</td></tr>"
    deck = deck_of(tmp_path, f"<section><h2>T</h2><table data-chart=bar>{rows}</table></section>")
    (chart,) = [shape.chart for shape in deck.slides[0].shapes if shape.has_chart]
    assert [(series.name, list(series.values)) for series in chart.plots[0].series] == [
        ("2025", [41]),
        ("2026", [9]),
    ]


def test_a_grid_that_is_placed_has_its_columns_on_pages(tmp_path: Path) -> None:
    css = f".s{{{SIZE}position:relative}} .f{{position:absolute;left:0;right:0;top:9px;display:grid;"
    css += "grid-template-columns:1fr auto}"
    body = "<div class=s><div class=f><span>left</span><span>7</span></div></div>"
    document = open_document(RenderRequest("pdf", "html", f"<style>{css}</style>{body}", str(tmp_path), "deck.pdf"))
    write_pdf(document, str(tmp_path / "deck.pdf"))
    assert [warning.code for warning in document.warnings] == []
