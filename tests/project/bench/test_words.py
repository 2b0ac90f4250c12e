"""The scorers of the corpora: what counts as a word that is there, and what as one that is lost."""

import random
from pathlib import Path

import docx
import pytest

from bench.render import structure, words
from bench.render.corpora import half


def slow_length(first: list[str], second: list[str]) -> int:
    table = [[0] * (len(second) + 1)]
    for item in first:
        row = [0]
        for index, other in enumerate(second):
            row.append(table[-1][index] + 1 if item == other else max(table[-1][index + 1], row[-1]))
        table.append(row)
    return table[-1][-1]


@pytest.mark.parametrize("seed", range(20))
def test_common_words_are_as_many_as_in_the_classic_table_and_in_order(seed):
    chance = random.Random(seed)
    first, second = (chance.choices("abcd", k=chance.randint(0, 30)) for _ in range(2))
    pairs = words.common_subsequence(first, second)
    assert len(pairs) == slow_length(first, second)
    assert [first[one] for one, _ in pairs] == [second[other] for _, other in pairs]
    assert pairs == sorted(set(pairs))


@pytest.mark.parametrize(
    ("expected", "found", "missing"),
    [
        ("a b c", "a x b y c", ()),
        ("a b c", "c b a", ("b", "c")),
        ("one extraordinary end", "one extra ordinary end", ()),
        ("one two three", "onetwo three", ()),
        ("one two three", "one three", ("two",)),
        ("ab", "cabd", ("ab",)),
    ],
)
def test_a_word_that_a_line_cuts_is_found_and_one_out_of_order_is_not(expected, found, missing):
    score = words.compare(expected.split(), found.split())
    assert (score.expected, score.missing) == (len(expected.split()), missing)


def test_what_a_page_hides_is_not_expected():
    page = "<title>t</title><p>Seen <b>bo</b>ld<p hidden>no<div style='display: none'>no</div><script>no</script>z"
    tree = words.etree.HTML(page)
    assert words.words(words.visible_text(tree)) == ["seen", "bold", "z"]


def test_a_soft_hyphen_at_the_end_of_a_line_joins_a_word():
    assert words.words("exam\x02\nple Stra\u00dfe") == ["example", "strasse"]


def test_structure_of_a_word_file_is_counted_kind_by_kind(tmp_path: Path):
    document = docx.Document()
    document.add_heading("One", 1)
    document.add_heading("Two", 3)
    document.add_paragraph("item", style="List Bullet")
    document.add_paragraph().add_run("strong").bold = True
    path = tmp_path / "a.docx"
    document.save(str(path))
    found = structure.of_docx(path)
    assert found.rows["heading"] == [(1, "one"), (3, "two")]
    assert found.rows["emphasis"] == [("bold", "strong")]


def test_halves_are_fixed_and_about_equal():
    names = [half(f"commonmark/{number:03}") for number in range(1, 653)]
    assert names.count("report") == 317
