"""Tokens are counted word by word, and are those that the vocabulary's own tokenizer finds in the whole text."""

import importlib.util
import json
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

import proofbox.service
from proofbox.service.timeline import bpe_tokens
from proofbox.service.timeline.bpe_tokens import BpeTokenCounter

COUNTER = BpeTokenCounter()
# The package that the vocabulary comes from; found, not imported: that takes half a second.
PACKAGE = Path(importlib.util.find_spec("wordllama").origin).parent
ORIGINAL = PACKAGE / "tokenizers" / "l2_supercat_tokenizer_config.json"
TOKENIZER = Tokenizer.from_file(str(ORIGINAL))
TOKENIZER.no_padding()
TOKENIZER.no_truncation()
SOURCES = sorted(Path(proofbox.service.__file__).parent.rglob("*.py"))
WORDS = st.sampled_from(
    [
        *("a", "the", " ", "  ", "\n", "\n    ", "▁", "é", "漢字", "😀", "\0", "<s>", "</s>", "\ud800", "9"),
        *("\r", "\u2028", "();", "aaa", "-----", "<0x0A>", "<unk", "░"),
    ]
)


def of_whole_text(text):
    clean = text.encode(errors="replace").decode()
    return len(TOKENIZER.encode(clean, add_special_tokens=False))


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
    assert len(counter._words) <= max(1, words_max)
    assert len(counter._segments) <= max(1, words_max)


@pytest.mark.parametrize("alphabet", ["a", "ab", " ", "=-", string.ascii_letters + string.digits, string.hexdigits])
def test_a_long_word_has_as_many_tokens_as_the_tokenizer_finds_in_it(alphabet):
    word = "".join(random.Random(7).choices(alphabet, k=3_000))
    assert COUNTER.count(word) == of_whole_text(word)


def test_the_vocabulary_is_the_one_of_the_package_it_comes_from():
    entries = json.loads(Path(bpe_tokens.__file__).with_name("llama_vocabulary.json").read_text(encoding="utf-8"))
    vocabulary = json.loads(ORIGINAL.read_text(encoding="utf-8"))["model"]["vocab"]
    assert entries == sorted((entry for entry, number in vocabulary.items() if number >= 259), key=vocabulary.get)


def test_counting_imports_no_tokenizer():
    code = "import sys; from proofbox.service.timeline.bpe_tokens import BpeTokenCounter as C; C().count('text')\n"
    code += "print({'tokenizers', 'wordllama', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
