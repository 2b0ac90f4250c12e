"""Which names of a conversation a document has."""

import pytest

from proofbox.service.jobs.named_files import names_in

NAMES = ["a.png", "own chart (1).png", "sub/a.png", "图表.png", "R&D.svg", "x_y.png", "a"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("![](a.png)", ["a.png"]),
        ("请看图表.png。", ["图表.png"]),
        ("![](own%20chart%20%281%29.png) ![](own chart (1).png)", ["own chart (1).png"]),
        ("<img src='R&amp;D.svg'>", ["R&D.svg"]),
        (r"![](x\_y.png)", ["x_y.png"]),
        ("/mnt/data/sub/a.png", ["a.png", "sub/a.png"]),
        ("turn_9/files/a.png fi:turn_9.files/x_y.png", ["a.png", "x_y.png"]),
        ("turn_1/files/a.png turn_9/attachments/a.png fi:turn_1.files/a.png", []),
        ('"turn_1/files/a b.png"', []),
        ("data.png xa.png a.pngs, a chart", ["a"]),
    ],
)
def test_names_are_found_in_their_spellings_and_not_in_other_words(text, found):
    assert names_in(text, NAMES, "turn_9") == found


def test_a_document_names_what_lies_in_its_folder_from_there():
    assert names_in("![](a.png)", ["sub/a.png", "other/a.png"], "turn_9", "sub") == ["sub/a.png"]


def test_a_long_text_and_many_names_take_one_pass_each():
    names = [f"chart {number}.png" for number in range(20_000)]
    assert names_in("word " * 200_000 + "chart 7.png", names, "turn_9") == ["chart 7.png"]
