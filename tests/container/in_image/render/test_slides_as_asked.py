"""Slides of other sizes, with the rules of the request, and with words for the speaker."""

import pptx
import pytest
from page_looks import codes, rendered
from slide_geometry import geometry_faults

DECK = (
    "---\ntitle: Deck\nauthor: Ada\n---\n\n## List\n\n- one\n- two\n\n"
    "## Table\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    "# Part\n\n## Cards\n\n- **One**: first\n- **Two**: second\n- **Three**: third\n"
)


def deck(tmp_path, source=DECK, source_format="markdown", **options):
    answer, file = rendered(tmp_path, source, "pptx", source_format, options=options)
    assert answer["ok"], answer
    return answer, pptx.Presentation(str(file))


@pytest.mark.parametrize(
    ("size", "width", "height"),
    [
        ("16:9", 12_192_000, 6_858_000),
        ("16:10", 10_972_800, 6_858_000),
        ("4:3", 9_144_000, 6_858_000),
        ("A4", 9_906_000, 6_858_000),
        ("254mm 143mm", 9_144_000, 5_148_000),
        ("19cm x 25.4cm", 6_840_000, 9_144_000),
    ],
)
def test_slides_have_the_size_that_was_asked_for_and_all_fits_on_them(tmp_path, size, width, height):
    _, made = deck(tmp_path, slide_size=size, page_numbers=True)
    assert (abs(made.slide_width - width) <= 2, abs(made.slide_height - height) <= 2) == (True, True)
    assert geometry_faults(made) == []
    for slide in made.slides:
        for shape in slide.shapes:
            assert (shape.left >= -2, shape.left + shape.width <= width + 2) == (True, True), (size, shape.name)


def test_an_author_s_slides_are_fitted_to_other_sizes(tmp_path):
    source = (
        "<style>section{width:1024px;height:768px;background:#eef}</style><section><h1>A</h1><p>words</p></section>"
    )
    _, made = deck(tmp_path, source, "html", slide_size="4:3")
    assert (len(made.slides), geometry_faults(made)) == (1, [])


@pytest.mark.parametrize(
    "size", ["5:4:3", "10mm 10mm", "2000mm 1000mm", "300mm 100mm", "300mm", "wide", "-5mm 9mm"]
)
def test_a_size_that_slides_cannot_have_is_refused_in_words(tmp_path, size):
    answer, _ = rendered(tmp_path, DECK, "pptx", "markdown", options={"slide_size": size})
    assert answer["error"]["code"] == "invalid_slide_size"
    assert ("slide_size" in answer["error"]["message"], "4:3" in answer["error"]["message"]) == (True, True)


def test_rules_of_the_request_come_last_and_make_no_design_of_their_own(tmp_path):
    plain = deck(tmp_path)[1]
    answer, made = deck(tmp_path, css="li { color: #c01234 }")
    assert codes(answer) == []
    assert ["C01234" in slide.part.blob.decode() for slide in made.slides] == [False, True, False, False, False]
    layouts = [[slide.slide_layout.name for slide in item.slides] for item in (plain, made)]
    assert layouts[0] == layouts[1]


def test_rules_of_the_request_win_over_those_of_the_author(tmp_path):
    source = "<style>p { color: #0000aa }</style><section><h1>A</h1><p>words</p></section>"
    xml = deck(tmp_path, source, "html", css="p { color: #c01234 }")[1].slides[0].part.blob
    assert (b"C01234" in xml, b"0000AA" in xml) == (True, False)


def notes(made):
    return [slide.notes_slide.notes_text_frame.text if slide.has_notes_slide else "" for slide in made.slides]


def words(made):
    return ["\n".join(s.text_frame.text for s in slide.shapes if s.has_text_frame) for slide in made.slides]


@pytest.mark.parametrize(
    "spoken",
    [
        "<!-- notes: say this -->",
        "<!--\nSpeaker notes: say this\n-->",
        "Note: say this",
        "Notes: say this",
        "::: notes\nsay this\n:::",
    ],
)
def test_words_for_the_speaker_are_notes_and_not_on_the_slide(tmp_path, spoken):
    _, made = deck(tmp_path, f"## One\n\n- a\n\n{spoken}\n\n## Two\n\n- b")
    assert (notes(made), "say this" in " ".join(words(made))) == (["say this", ""], False)


@pytest.mark.parametrize("spoken", ["Note: say *this*\n\nand that", "Note:\n\n- say *this*\n- and that"])
def test_all_that_follows_a_note_on_its_slide_is_a_note(tmp_path, spoken):
    answer, made = deck(tmp_path, f"## One\n\n- a\n\n{spoken}\n\n---\n\n## Two\n\n- b")
    assert (notes(made), codes(answer)) == (["say this\nand that", ""], ["notes_recognised"])
    assert '"One"' in answer["warnings"][0]["message"]


@pytest.mark.parametrize(
    ("source", "spoken", "shown"),
    [
        ("Note: prices exclude VAT.\n\n- bread\n- milk", "prices exclude VAT.", ("bread", "milk")),
        ("Note: prices exclude VAT.\n\n> bread", "prices exclude VAT.", ("bread",)),
        ("Note: prices exclude VAT.\n\nwords\n\n1. bread", "prices exclude VAT.", ("words", "bread")),
        ("Note: prices exclude VAT.\n\nwords", "prices exclude VAT.", ("words",)),
        ("- bread\n\nNote: one\n\n- milk\n\nNote: two\n\nthree", "one\ntwo\nthree", ("bread", "milk")),
    ],
)
def test_a_note_leaves_the_content_of_its_slide(tmp_path, source, spoken, shown):
    answer, made = deck(tmp_path, f"## Start\n\n- a\n\n## Prices\n\n{source}")
    assert (notes(made), codes(answer)) == (["", spoken], ["notes_recognised"])
    assert [word in words(made)[1] for word in shown] == [True] * len(shown)
    message = answer["warnings"][0]["message"]
    assert ('"Prices"' in message, '"Start"' in message) == (True, False)


@pytest.mark.parametrize(
    "source",
    [
        "## One\n\nNote: prices without tax\n\n| a | b |\n|---|---|\n| 1 | 2 |",
        "## One\n\n- Note: an item",
        "## One\n\nNoted: words",
    ],
)
def test_words_of_the_slide_stay_on_it(tmp_path, source):
    answer, made = deck(tmp_path, source)
    assert (notes(made), "Note" in words(made)[0], codes(answer)) == ([""], True, [])


def test_other_comments_are_no_notes(tmp_path):
    assert notes(deck(tmp_path, "## One\n\n<!-- todo: nothing -->\n\ntext")[1]) == [""]
