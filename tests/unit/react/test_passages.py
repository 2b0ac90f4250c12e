"""How texts are cut into passages."""

from hypothesis import given
from hypothesis import strategies as st

from proofbox.service.react.memsearch.chunking import OVERLAP_CHARS, PASSAGE_CHARS, passages


def test_a_short_text_is_one_passage():
    assert passages("One.\n\nTwo words.  Three. ") == ["One. Two words. Three."]


def test_a_text_without_words_has_none():
    assert [passages(text) for text in ("", " \n\t ")] == [[], []]


def test_a_long_text_is_cut_at_ends_of_sentences_and_each_passage_begins_with_the_end_of_the_last():
    sentences = [f"This is sentence number {n} of a rather long text." for n in range(100)]
    found = passages(" ".join(sentences))
    assert all(len(passage) <= PASSAGE_CHARS for passage in found)
    assert all(passage.startswith("This") and passage.endswith("text.") for passage in found)
    overlaps = [first[-OVERLAP_CHARS:].partition(" This")[1:] for first in found[:-1]]
    assert all(second.startswith(("".join(end)).lstrip()) for end, second in zip(overlaps, found[1:], strict=True))
    assert len(found) > len(" ".join(sentences)) / PASSAGE_CHARS


def test_a_word_longer_than_a_passage_is_cut_anywhere():
    assert passages("x" * (2 * PASSAGE_CHARS + 5)) == ["x" * PASSAGE_CHARS, "x" * PASSAGE_CHARS, "x" * 5]


@given(st.lists(st.text("ab .\n!\u3002", min_size=1, max_size=900), max_size=8))
def test_no_word_is_lost_and_no_passage_is_too_long(parts):
    text = " ".join(parts)
    found = passages(text)
    assert all(0 < len(passage) <= PASSAGE_CHARS for passage in found)
    assert set("".join(text.split())) <= set("".join(found))
    assert sum(len("".join(p.split())) for p in found) >= len("".join(text.split()))
