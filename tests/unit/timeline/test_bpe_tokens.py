"""Tokens are counted word by word, and are those that the tokenizer finds in the whole text."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proofbox.service
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter

COUNTER = BpeTokenCounter()
SOURCES = sorted(Path(proofbox.service.__file__).parent.rglob("*.py"))
WORDS = st.sampled_from(
    ["a", "the", " ", "  ", "\n", "\n    ", "▁", "é", "漢字", "😀", "\0", "<s>", "</s>", "\ud800", "9"]
)


def of_whole_text(text):
    clean = text.encode(errors="replace").decode()
    return len(COUNTER._tokenizer.encode(clean, add_special_tokens=False))


@given(st.lists(st.one_of(WORDS, st.text(max_size=5)), max_size=30).map("".join))
def test_any_text_has_as_many_tokens_as_the_tokenizer_finds_in_it(text):
    assert COUNTER.count(text) == of_whole_text(text)


def test_program_text_has_as_many_tokens_as_the_tokenizer_finds_in_it():
    texts = [source.read_text() for source in SOURCES]
    assert [COUNTER.count(text) for text in texts] == [of_whole_text(text) for text in texts]


@pytest.mark.parametrize("words_max", [0, 1, 50])
def test_a_full_memory_of_words_changes_no_count(words_max):
    counter = BpeTokenCounter(words_max)
    chance = random.Random(5)
    texts = [" ".join("".join(chance.choices("abcde", k=3)) for _ in range(40)) for _ in range(5)]
    assert [counter.count(text) for text in texts * 2] == [of_whole_text(text) for text in texts * 2]
    assert len(counter._known) <= max(1, words_max)
