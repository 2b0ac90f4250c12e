"""Slides in a theme's own looks: sparse ones grow, and content chooses one of a few layouts."""

from pathlib import Path
from typing import Any

import pytest
from pptx.util import Pt
from render.frontend.pipeline import open_document
from render.model import RenderRequest
from render.pptx.writer import write_pptx
from render.slides.contrast import contrast
from render.slides.css import mixed, title_look
from render.themes import BUILT_IN, load_theme
from slide_geometry import deck_words, geometry_faults, open_deck, shown

PIXEL = 9525
STYLE = "<style>.slide{width:1280px;height:720px;padding:60px;font-size:20px}</style>"


def deck_of(root: Path, source: str, source_format: str = "markdown", **request: Any) -> Any:
    document = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx", **request))
    write_pptx(document, str(root / "deck.pptx"))
    return open_deck(root / "deck.pptx")


def sizes(shape: Any) -> list[float]:
    return [run.font.size.pt for para in shape.text_frame.paragraphs for run in para.runs]


def body(slide: Any) -> list[Any]:
    title = slide.shapes.title._element
    return [shape for shape in shown(slide) if shape._element is not title and "Slide Number" not in shape.name]


@pytest.mark.parametrize("items", [2, 3, 4])
def test_a_few_points_are_set_in_28_points_around_the_middle(tmp_path: Path, items: int) -> None:
    deck = deck_of(tmp_path, "## Points\n\n" + "".join(f"- point {number}\n" for number in range(items)))
    (frame,) = body(deck.slides[0])
    assert set(sizes(frame)) == {28.0}
    middle = (frame.top + frame.height / 2) / PIXEL
    assert 330 < middle < 420


def test_type_grows_no_further_than_its_slide(tmp_path: Path) -> None:
    for items in range(4, 14):
        deck = deck_of(tmp_path, "## Points\n\n" + "".join(f"- {'word ' * 14}{n}\n" for n in range(items)))
        assert geometry_faults(deck) == []
        assert all(
            min(sizes(shape)) >= 14 for slide in deck.slides for shape in body(slide) if shape.has_text_frame
        )


def test_a_small_table_is_set_in_larger_type_and_no_wider_than_it_needs(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "## T\n\n| Region | Sales |\n|---|--:|\n| North | 1 |\n| South | 2 |\n| Total | 3 |\n")
    (frame,) = body(deck.slides[0])
    cells = [cell for row in frame.table.rows for cell in row.cells]
    assert {run.font.size for cell in cells for para in cell.text_frame.paragraphs for run in para.runs} <= {
        Pt(size / 2) for size in range(36, 42)
    }
    assert frame.width / PIXEL < 1000
    last = frame.table.rows[3].cells[0]
    assert last.text_frame.paragraphs[0].runs[0].font.bold
    assert last._tc.xpath("./a:tcPr/a:solidFill")
    assert not frame.table.rows[2].cells[0]._tc.xpath("./a:tcPr/a:solidFill")


@pytest.mark.parametrize("number", ["118 %", "**$1.2M**", "3\u00d7", "+42 pp", "1,234", "€ 4.5 bn", "24/7"])
def test_a_number_alone_is_big(tmp_path: Path, number: str) -> None:
    deck = deck_of(tmp_path, f"## Retention\n\n{number}\n\nof revenue stays with us\n")
    (frame,) = body(deck.slides[0])
    assert sizes(frame)[0] > 100
    assert sizes(frame)[-1] < 40


@pytest.mark.parametrize("words", ["In 2024 we grew", "2024 was good", "Version two"])
def test_words_are_no_number(tmp_path: Path, words: str) -> None:
    deck = deck_of(tmp_path, f"## Retention\n\n{words}\n\nof revenue stays with us\n")
    assert max(sizes(body(deck.slides[0])[0])) < 40


@pytest.mark.parametrize(
    ("item", "text"),
    [
        ("**Churn**: -12 %", "-12 %"),
        ("**Churn:** -12 %", "-12 %"),
        ("**Churn** -12 %", "-12 %"),
        ("**Churn**: \u2013 3 points", "\u2013 3 points"),
        ("**Churn** \u2013 12 %", "\u2013 12 %"),
        ("**Churn** - $5", "- $5"),
        ("**Churn** - fell", "fell"),
    ],
)
def test_the_sign_of_a_number_stays_on_its_card(tmp_path: Path, item: str, text: str) -> None:
    deck = deck_of(tmp_path, f"## Figures\n\n- {item}\n- **Sales**: up\n")
    cards = [shape for shape in body(deck.slides[0]) if shape.has_text_frame and shape.text_frame.text]
    assert [para.text for para in cards[0].text_frame.paragraphs] == ["Churn", text]


def test_a_task_list_keeps_its_ticks(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "## Tasks\n\n- [x] **Design**: done\n- [ ] **Build**: open\n")
    (frame,) = body(deck.slides[0])
    assert [para.text for para in frame.text_frame.paragraphs] == ["Design: done", "Build: open"]
    assert frame._element.xpath(".//a:buChar/@char") == ["\u00fe", "\u00a8"]  # of Wingdings


def test_items_of_a_term_and_a_text_are_cards_in_a_row(tmp_path: Path) -> None:
    source = (
        "## Values\n\n- **Speed**: we ship `fast`\n- **Quality** \u2013 errors fell\n- **Trust:** they *renew*\n"
    )
    deck = deck_of(tmp_path, source)
    cards = [shape for shape in body(deck.slides[0]) if shape.has_text_frame and shape.text_frame.text]
    assert [shape.text_frame.paragraphs[0].text for shape in cards] == ["Speed", "Quality", "Trust"]
    assert len({shape.top for shape in cards}) == len({shape.height for shape in cards}) == 1
    assert " ".join(deck_words(deck)) == "values speed we ship fast quality errors fell trust they renew"
    assert geometry_faults(deck) == []


@pytest.mark.parametrize(
    "rows",
    [
        "- **Speed**: fast\n- no term\n",
        "".join(f"- **Term {number}**: text\n" for number in range(7)),
        "- **Speed**: " + "long " * 50 + "\n- **Trust**: they renew\n",
        "- **Speed**: fast\n  - nested\n- **Trust**: they renew\n",
    ],
)
def test_other_lists_stay_lists(tmp_path: Path, rows: str) -> None:
    deck = deck_of(tmp_path, f"## Values\n\n{rows}")
    assert deck.slides[0]._element.xpath(".//a:buChar")


def test_a_quote_alone_is_large_and_has_no_bar(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "## Voices\n\n> The best tool in years.\n>\n> — A customer\n")
    assert [shape.name for shape in body(deck.slides[0]) if shape.name.startswith("Line")] == []
    assert max(size for shape in body(deck.slides[0]) for size in sizes(shape)) >= 31
    assert " ".join(deck_words(deck)) == "voices the best tool in years a customer"


CHART = "```chart\ntype: bar\nx: [a, b]\nseries:\n  - name: S\n    data: [1, 2]\n```\n"


@pytest.mark.parametrize("first", [True, False])
def test_text_stands_beside_the_one_chart_in_the_order_of_the_document(tmp_path: Path, first: bool) -> None:
    parts = ["- North leads\n- South follows\n", CHART]
    deck = deck_of(tmp_path, "## Chart\n\n" + "\n".join(parts if first else parts[::-1]))
    (chart,) = [shape for shape in body(deck.slides[0]) if shape.has_chart]
    (text,) = [shape for shape in body(deck.slides[0]) if shape.has_text_frame]
    assert (text.left < chart.left) is first
    assert text.top > chart.top
    assert text.top + text.height < chart.top + chart.height
    assert geometry_faults(deck) == []


@pytest.mark.parametrize("words", ["Thank you!", "Questions?", "Q&A", "Contact", "Vielen Dank"])
def test_the_last_slide_closes_like_the_first(tmp_path: Path, words: str) -> None:
    deck = deck_of(tmp_path, f"# Deck\n\nBy us\n\n## Middle\n\n- a\n- b\n\n## {words}\n\njane@example.com\n")
    assert [slide.slide_layout.name for slide in deck.slides] == ["Title Slide", "Title and Content", "Title Slide"]


def test_a_slide_in_the_midst_is_no_closing(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "# Deck\n\nBy us\n\n## Questions we ask\n\nWhy\n\n## Last\n\n- a\n- b\n")
    assert deck.slides[1].slide_layout.name == "Title and Content"


@pytest.mark.parametrize("theme", BUILT_IN)
def test_the_title_slide_has_a_ground_that_its_text_is_read_on(tmp_path: Path, theme: str) -> None:
    ground, *texts = (colour.lstrip("#") for colour in title_look(load_theme(theme, str(tmp_path)).colours))
    assert all(contrast(ground, text) >= 4.5 for text in texts)
    matter = "---\ntitle: Review\nauthor: Jane\ndate: 2026-03-01\n---\n\n"
    deck = deck_of(tmp_path, f"{matter}# Review\n\nGrowth\n\n## Next\n\n- a\n", theme=theme)
    slide = deck.slides[0]
    assert slide.slide_layout._element.xpath("./p:cSld/p:bg/p:bgPr/a:solidFill")
    frames = [shape for shape in shown(slide) if shape.has_text_frame]
    assert [shape.text_frame.text for shape in frames] == ["Review", "Growth", "Jane · 2026-03-01"]
    assert min(sizes(slide.shapes.title)) >= 54
    assert frames[-1].top / PIXEL > 600


def test_a_design_of_its_own_gets_no_layout_of_ours(tmp_path: Path) -> None:
    slides = ["<h1>Title</h1>", "<h2>A</h2><p>42 %</p><p>label</p>", "<h2>Thank you</h2>"]
    source = STYLE + "".join(f"<div class=slide>{slide}</div>" for slide in slides)
    deck = deck_of(tmp_path, source, "html")
    assert max(size for shape in shown(deck.slides[1]) for size in sizes(shape)) < 40
    for slide in deck.slides:
        assert not slide.slide_layout._element.xpath("./p:cSld/p:bg")
        assert slide.shapes.title.top / PIXEL < 100


def test_slots_in_the_manner_of_slidev_are_columns_and_its_keys_no_words(tmp_path: Path) -> None:
    source = (
        "---\ntheme: plain\n---\n\n# Deck\n\nIntro\n\n---\nlayout: two-cols\nclass: px-4\n---\n\n# Left\n\n- a\n\n"
        "::right::\n\n# Right\n\n- b\n\n---\nlayout: center\n---\n\n## Alone\n\nx\n\n::right::\n\ny\n"
    )
    deck = deck_of(tmp_path, source)
    assert " ".join(deck_words(deck)) == "deck intro left a right b alone x y"
    left, right = (
        next(s for s in shown(deck.slides[1]) if s.text_frame.text.startswith(word)) for word in ("Left", "Right")
    )
    assert left.top == right.top
    assert left.left < right.left
    assert deck.slides[2].shapes.title.text_frame.text == "Alone"


@pytest.mark.parametrize(
    "heading",
    ["level: beginner or advanced?", "image: before and after", "theme: dark patterns", "layout: two-cols"],
)
@pytest.mark.parametrize(
    ("source", "source_format"),
    [
        ("## {}\n\nx\n", "markdown"),
        ("# Deck\n\nBy us\n\n## {}\n\nx\n", "markdown"),
        ("# Deck\n\nBy us\n\n---\n\n## {}\n\nx\n", "markdown"),
        ("# Deck\n\nBy us\n\n{}\n---\n\nx\n", "markdown"),
        ("<h1>Deck</h1><p>By us</p><hr><h2>{}</h2><p>x</p>", "html"),
    ],
)
def test_headings_that_look_like_keys_of_slidev_stay(
    tmp_path: Path, heading: str, source: str, source_format: str
) -> None:
    deck = deck_of(tmp_path, source.format(heading), source_format)
    words = heading.replace(":", "").replace("?", "").replace("-", " ").split()
    assert set(words) <= set(" ".join(deck_words(deck)).replace("-", " ").split())


def test_words_with_a_colon_under_a_line_stay_a_heading(tmp_path: Path) -> None:
    deck = deck_of(tmp_path, "# Deck\n\nBy us\n\nresult: we win\n---\n\ntext\n")
    assert "result" in deck_words(deck)


def test_a_style_sheet_in_front_matter_of_marp_counts(tmp_path: Path) -> None:
    css = "  section{background:#123456;color:#eeeeef}\n  section.lead h1{color:#ff0001}\n"
    matter = f"---\nmarp: true\nstyle: |\n{css}---\n"
    deck = deck_of(tmp_path, f"{matter}\n<!-- _class: lead -->\n\n# <!-- fit --> A\n\n---\n\n## B\n\ntext\n")
    for slide in deck.slides:
        assert slide._element.xpath("./p:cSld/p:bg/p:bgPr/a:solidFill/a:srgbClr/@val") == ["123456"]
    assert deck.slides[0]._element.xpath(".//a:r/a:rPr/a:solidFill/a:srgbClr/@val") == ["FF0001"]
    assert " ".join(deck_words(deck)) == "a b text"
    assert not deck.slides[0].has_notes_slide


@pytest.mark.parametrize("name", ["two-column", "columns", "split"])
def test_what_is_called_columns_and_has_no_rules_is_columns(tmp_path: Path, name: str) -> None:
    halves = "<div class=column><p>left</p></div><div class=column><p>right</p></div>"
    deck = deck_of(tmp_path, f"<section><h1>T</h1><div class={name}>{halves}</div></section>", "html")
    left, right = (
        next(s for s in shown(deck.slides[0]) if s.text_frame.text == word) for word in ("left", "right")
    )
    assert left.top == right.top
    assert left.left < right.left


def wide_table(columns: int, word: str) -> str:
    names = [f"{word}{number}" for number in range(columns)]
    rows = [names, ["---"] * columns, [str(number * 1111) for number in range(columns)]]
    return "## Wide\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        (12, "Column"),
        pytest.param(22, "Column", marks=pytest.mark.slow),
        pytest.param(40, "Measurement", marks=pytest.mark.slow),
    ],
)
def test_a_table_of_many_columns_gets_smaller_then_goes_on_on_the_next_slide(
    tmp_path: Path, columns: int, word: str
) -> None:
    deck = deck_of(tmp_path, wide_table(columns, word))
    tables = [shape.table for slide in deck.slides for shape in slide.shapes if shape.has_table]
    heads = [[cell.text for cell in table.rows[0].cells] for table in tables]
    assert [head[0] for head in heads] == [f"{word}0"] * len(tables)
    assert [name for head in heads for name in head[1:]] == [f"{word}{number}" for number in range(1, columns)]
    for table in tables:
        run = table.rows[0].cells[1].text_frame.paragraphs[0].runs[0]
        assert run.font.size.pt >= 9.5
        assert table.columns[1].width / PIXEL > len(run.text) * run.font.size.pt * 0.45
    assert geometry_faults(deck) == []


@pytest.mark.parametrize("ground", ["#123456", "#f4f1ea", "#7a1f2b"])
def test_small_print_is_read_on_the_ground_of_its_slide(tmp_path: Path, ground: str) -> None:
    text = "#111111" if ground == "#f4f1ea" else "#eeeeee"
    colours = f"backgroundColor: '{ground}'\ncolor: '{text}'\n"
    matter = f"---\nmarp: true\npaginate: true\nfooter: Small\nheader: Top\n{colours}---\n"
    deck = deck_of(tmp_path, f"{matter}\n# A\n\nb\n\n---\n\n## B\n\n- text\n")
    slide = deck.slides[1]
    found = {}
    for run in slide._element.xpath(".//a:r|.//a:fld"):
        paint = run.xpath("./a:rPr/a:solidFill/a:srgbClr/@val") or ["5B6776"]  # as the layout has it
        share = [int(value) / 100_000 for value in run.xpath("./a:rPr/a:solidFill/*/a:alpha/@val")] or [1.0]
        found["".join(run.xpath("./a:t/text()"))] = mixed(ground, f"#{paint[0]}", share[0])
    small = [found[words] for words in ("Small", "Top", "\u2039#\u203a")]
    assert all(contrast(colour[1:], ground[1:]) >= 4.5 for colour in small)


Q3 = "---\ntitle: Q3\nsubtitle: Three regions\nauthor: Ann Lee\ndate: 2025-10-01\n---\n\n"


@pytest.mark.parametrize(
    ("source", "first"),
    [
        (f"{Q3}# Q3\n\nAnn Lee\n\n2025-10-01\n\n## Two\n\nx\n", ["q3", "ann lee", "2025-10-01", "three regions"]),
        (f"{Q3}# Q3\n\nAnn Lee\n\n## Two\n\nx\n", ["q3", "ann lee", "three regions", "2025-10-01"]),
        (f"{Q3}## Two\n\nx\n", ["q3", "three regions", "ann lee · 2025-10-01"]),
        (f"{Q3}## Q3\n\n- a\n- b\n", ["q3", "three regions", "ann lee · 2025-10-01", "a", "b"]),
        (Q3.replace("---\n", "---\nmarp: true\n", 1) + "# Our quarter\n\nx\n", ["our quarter", "x"]),
        (Q3.replace("---\n", "---\nmarp: true\n", 1) + "# Q3\n\nx\n", ["q3", "x"]),
    ],
)
def test_the_first_slide_has_what_front_matter_says_once(tmp_path: Path, source: str, first: list[str]) -> None:
    slide = deck_of(tmp_path, source).slides[0]
    paragraphs = [para.text.casefold() for shape in shown(slide) for para in shape.text_frame.paragraphs]
    assert sorted(text for text in paragraphs if text.strip("1")) == sorted(first)


def lost_words(root: Path, source: str, source_format: str = "html") -> list[str]:
    document = open_document(RenderRequest("pptx", source_format, source, str(root), "deck.pptx"))
    write_pptx(document, str(root / "deck.pptx"))
    return [warning.message for warning in document.warnings if warning.code == "content_lost"]


def test_a_slide_that_lacks_most_of_its_words_is_a_warning(tmp_path: Path) -> None:
    source = f"{STYLE}<div class=slide><h1>A</h1><div hidden>many words that nobody sees here</div></div>"
    (message,) = lost_words(tmp_path, source)
    assert message.startswith("Most words of a slide are not shown: A many words that nobody sees here; ")


@pytest.mark.parametrize(
    "source",
    [
        "## A\n\n$$\\frac{a+b+c}{d+e+f+g+h+i+j+k+l+m+n+o+p}$$\n",
        "## A\n\n- b\n\n::: notes\nMany words that are said and not shown on the slide itself.\n:::\n",
        "## A\n\n| a | b |\n|---|---|\n| words of a table | more |\n",
        "## A\n\n<svg width='90' height='90'><text>many words of a drawing that is a picture</text></svg>\n",
    ],
)
def test_words_of_formulas_notes_and_drawings_are_not_missed(tmp_path: Path, source: str) -> None:
    assert lost_words(tmp_path, source, "markdown") == []
