"""The benchmark's own judgements: what is met, who is ahead, which words are printed over each other."""

import ctypes
from pathlib import Path

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium

from bench.render import authored_decks, likeness, model_decks, page_text, speed
from bench.render.deck_type import SlideType, moved_titles
from bench.render.figures import Figure, Row, read_rows, write_rows
from bench.render.report import table
from bench.render.second_readers import fits
from bench.render.slide_looks import faint_words

_ROW = Row(
    6,
    "pages",
    "s",
    6.0,
    is_lower_better=True,
    figures=(Figure("Proofbox", 6.5), Figure("A", 7.0), Figure("B", 0.5)),
)
_SLIDE = {"size_pt": [960, 540]}


def test_a_bar_is_missed_by_a_value_on_its_wrong_side_and_by_none():
    no_value = Row(1, "words", "%", 99.5, is_lower_better=False, figures=(Figure("Proofbox", None),))
    reached = Row(1, "words", "%", 99.5, is_lower_better=False, figures=(Figure("Proofbox", 99.5),))
    assert [row.is_met for row in (_ROW, no_value, reached)] == [False, False, True]


def test_the_best_peer_is_named_where_it_is_ahead_of_us():
    text = table([_ROW])
    assert text.splitlines()[2] == "| pages | ≤ 6 s | **no** | 6.50 s | **B 0.50 s** | A 7.00 s |"


def test_equal_notes_are_told_once():
    figures = (Figure("Proofbox", 1.0, "few"), Figure("A", None, "few"))
    text = table([Row(1, "words", "%", 99.5, is_lower_better=False, figures=figures)])
    assert text.splitlines()[2] == "| words | ≥ 99.5 % | **no** | 1.00 % [1] |  | A none [1] |"
    assert text.splitlines()[-1] == "1. Few"


def test_rows_come_back_from_their_file(tmp_path: Path):
    write_rows([_ROW], tmp_path / "rows.json")
    assert read_rows(tmp_path / "rows.json")[0] == [_ROW]


def test_a_deck_fits_unless_a_word_is_off_the_slide_or_over_another():
    def page(*boxes: list[object]) -> dict[str, object]:
        return {**_SLIDE, "boxes": list(boxes)}

    beside = page(["one", 10, 10, 60, 30], ["two", 60, 10, 110, 30])
    over = page(["one", 10, 10, 60, 30], ["two", 30, 12, 80, 32])
    off = page(["one", 930, 10, 970, 30])
    below = page(["one", 10, 530, 60, 550])
    assert [fits(one) for one in (beside, over, off, below)] == [True, False, False, False]


def test_a_picture_is_like_itself_and_less_like_one_with_a_box_more():
    plain = np.full((likeness.HEIGHT, likeness.WIDTH), 255.0)
    boxed = plain.copy()
    boxed[100:300, 50:600] = 20.0
    assert likeness.similarity(plain, plain) == 1.0
    assert likeness.similarity(plain, boxed) < likeness.ALIKE


def test_there_are_forty_decks_in_eight_designs_each_of_slides_of_one_size():
    decks = list(model_decks.decks())
    assert len({deck.text for deck in decks}) == len(decks) == 40
    assert all(deck.text.count("class='slide'") == 6 for deck in decks)


def test_there_are_sixteen_authored_decks_of_which_html_with_slides_of_a_size_has_pages():
    decks = list(authored_decks.decks())
    assert len(decks) == len({deck.text for deck in decks}) == 16
    assert [deck.name for deck in decks if deck.source_format == "html" and not deck.has_pages] == ["lecture"]


def _page(tmp_path: Path, ground: int, *words: tuple[str, int, int]) -> page_text.PageText:
    """A page of 400 by 200 points, its ground and its words in shades of grey, the words with their left edge."""
    document = pypdfium2.PdfDocument.new()
    page = document.new_page(400, 200)
    sheet = pdfium.FPDFPageObj_CreateNewRect(0, 0, 400, 200)
    pdfium.FPDFPageObj_SetFillColor(sheet, ground, ground, ground, 255)
    pdfium.FPDFPath_SetDrawMode(sheet, pdfium.FPDF_FILLMODE_WINDING, 0)
    pdfium.FPDFPage_InsertObject(page, sheet)
    for row, (word, left, shade) in enumerate(words):
        drawn = pdfium.FPDFPageObj_NewTextObj(document, b"Helvetica", 20)
        pdfium.FPDFText_SetText(drawn, ctypes.cast(f"{word}\0".encode("utf-16-le"), pdfium.FPDF_WIDESTRING))
        pdfium.FPDFPageObj_SetFillColor(drawn, shade, shade, shade, 255)
        pdfium.FPDFPageObj_Transform(drawn, 1, 0, 0, 1, left, 150 - 40 * row)
        pdfium.FPDFPage_InsertObject(page, drawn)
    page.gen_content()
    document.save(tmp_path / "page.pdf")
    return page_text.read_pages(tmp_path / "page.pdf")[0]


def test_a_word_that_leaves_its_page_is_outside(tmp_path: Path):
    assert _page(tmp_path, 255, ("within", 40, 0), ("beyond", 360, 0)).outside == ["beyond"]


def test_contrast_is_that_of_a_word_with_the_ground_around_it(tmp_path: Path):
    page = _page(tmp_path, 0, ("clear", 40, 255), ("faint", 40, 0x33))
    assert [(word.text, round(word.contrast or 0, 1)) for word in page.words] == [("clear", 21.0), ("faint", 1.7)]


def test_a_faint_word_of_a_slide_is_a_fault_only_if_its_page_has_it_clear():
    def page(contrast: float) -> page_text.PageText:
        return page_text.PageText([page_text.Word("word", (0, 0, 1, 1), contrast)], 10, 10)

    assert faint_words(page(2.0), page(7.0)) == ["word 2.0"]
    assert faint_words(page(2.0), page(2.0)) == faint_words(page(7.0), page(7.0)) == []


def test_a_title_is_moved_if_most_of_its_kind_stand_elsewhere():
    def slide(kind: str, top: int) -> SlideType:
        return SlideType(kind, (10, top), 20.0, 0.5)

    slides = [slide("content", 20_000), slide("content", 20_900), slide("content", 90_000), slide("title", 300_000)]
    assert moved_titles(slides) == [2]


def test_body_text_is_small_only_where_the_slide_has_room():
    assert SlideType("content", None, 18.0, 0.5).is_small
    assert not SlideType("content", None, 18.0, 0.95).is_small
    assert not SlideType("content", None, 20.0, 0.5).is_small


def test_the_readme_of_the_speed_rows_has_the_size_that_they_name():
    text = speed.readme().text
    assert speed.README_CHARACTERS <= len(text) < speed.README_CHARACTERS * 1.02
    assert text.count("\n## ") == text.count("\n```python\n") == text.count("| Key |") > 50
