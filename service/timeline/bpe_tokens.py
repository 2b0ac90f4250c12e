"""Counts tokens with a real byte-pair tokenizer that comes in a package and needs no network."""

import functools
import importlib.util
import re
from collections import Counter
from pathlib import Path

from tokenizers import Tokenizer

_MODEL_PACKAGE = "wordllama"
_VOCABULARY = "tokenizers/l2_supercat_tokenizer_config.json"
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # how the vocabulary spells a space
_WORD = re.compile(" ( *[^ ]*)")
_WORD_CHARS_MAX = 32
_WORDS_MAX = 100_000


class BpeTokenCounter:
    """The port ``TokenCounter`` by the Llama 2 vocabulary (32,000 entries) that the embedding model's package has.

    Models of other makers count up to about a fifth less for English text: a bound that is kept by this count is
    kept by theirs.

    No entry of the vocabulary has a space after another character, so no token reaches from one word into the next:
    a text has as many tokens as its words have, and those of a word that was seen before are remembered.

    Args:
        words_max: how many words are remembered.
    """

    def __init__(self, words_max: int = _WORDS_MAX) -> None:
        self._tokenizer = _load_tokenizer()
        self._words_max = words_max
        # Their names, as "<s>", count as the tokens themselves, and what follows them as a text of its own.
        self._special = [token.content for token in self._tokenizer.get_added_tokens_decoder().values()]
        self._known: dict[str, int] = {}

    def count(self, text: str) -> int:
        """How many tokens a text has; up to 50 MB of text in a second, if its words were seen before, else 4."""
        if not text:
            return 0
        # A lone surrogate, which JSON can carry, is not a text for the tokenizer.
        clean = text if text.isascii() else text.encode(errors="replace").decode()
        if any(name in clean for name in self._special):
            return len(self._tokenizer.encode(clean, add_special_tokens=False))
        words = _words(clean)
        try:
            return sum(map(self._known.__getitem__, words))
        except KeyError:
            return sum(self._of_word(word) * times for word, times in Counter(words).items())

    def _of_word(self, word: str) -> int:
        count = self._known.get(word)
        if count is None:
            # The space before it is put there by the tokenizer itself.
            count = len(self._tokenizer.encode(word, add_special_tokens=False)) if word else 1
            if len(word) <= _WORD_CHARS_MAX:
                if len(self._known) >= self._words_max:
                    self._known.clear()
                self._known[word] = count
        return count


@functools.cache
def _load_tokenizer() -> Tokenizer:
    """Load the vocabulary once per process: 0.1 s.

    Raises:
        ImportError: The package is missing, or its vocabulary has tokens of several words.
    """
    # Found, not imported: the package itself brings half a second of imports.
    found = importlib.util.find_spec(_MODEL_PACKAGE)
    if found is None or found.origin is None:
        raise ImportError(f"the package {_MODEL_PACKAGE} is not installed")
    tokenizer: Tokenizer = Tokenizer.from_file(str(Path(found.origin).parent / _VOCABULARY))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if any(_SPACE in entry.lstrip(_SPACE) for entry in tokenizer.get_vocab()):
        raise ImportError(f"the vocabulary of {_MODEL_PACKAGE} has tokens of several words; another is needed")
    return tokenizer


def _words(text: str) -> list[str]:
    """The words of a text, each without one of the spaces before it; a text begins with one space more."""
    if _SPACE in text:
        text = text.replace(_SPACE, " ")
    return text.split(" ") if "  " not in text and text[0] != " " else _WORD.findall(" " + text)
