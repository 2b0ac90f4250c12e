"""The benchmark's own judgements: what is met, who is ahead, which words are printed over each other."""

from pathlib import Path

import numpy as np

from bench.render import likeness, model_decks, speed
from bench.render.figures import Figure, Row, read_rows, write_rows
from bench.render.report import table
from bench.render.second_readers import fits

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


def test_the_readme_of_the_speed_rows_has_the_size_that_they_name():
    text = speed.readme().text
    assert speed.README_CHARACTERS <= len(text) < speed.README_CHARACTERS * 1.02
    assert text.count("\n## ") == text.count("\n```python\n") == text.count("| Key |") > 50
