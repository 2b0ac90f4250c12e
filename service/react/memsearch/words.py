"""Finds passages by the words of a query: BM25. Scripts without blanks are compared by pairs of characters."""

import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_TERM_FREQUENCY, _LENGTH_SHARE = 1.2, 0.75  # the usual constants of BM25
_TERMS_MAX = 64
# What stands between blanks, with what identifiers have inside: ACME-4074, src/main.py, a_b, v1.2.
_NAME = re.compile(r"\w+(?:[-./_:@#+]+\w+)*")
_PART = re.compile(r"[^\W_]+")
_IDENTIFIER = re.compile(r"(?=.*\w.*\w.*\w).*(?:\d|\w[_/.:@#]+\w)")
_IDENTIFIER_WEIGHT = 3  # who names a number, a file or a ticket looks for that; the words around it are manner
# Scripts that put no blanks between words, or (Korean) hang endings on them: those of Thai, Lao, Burmese and Khmer,
# and those of Chinese, Japanese and Korean.
_SHORT_LETTERS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_WIDE_LETTERS = r"\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"[{_SHORT_LETTERS}]+|[{_WIDE_LETTERS}]+")
_SHORT = re.compile(rf"[{_SHORT_LETTERS}]")
_LETTER = rf"[^\W_{_SHORT_LETTERS}{_WIDE_LETTERS}]"


def plain(text: str) -> str:
    """A text as it is compared: without differences of case, width and ligatures."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return text.casefold()


def terms_of(query: str) -> list[str]:
    """What to look for: names, their parts, and of scripts without blanks pairs (of Thai and its like: threes)."""
    text = plain(query)
    found: dict[str, None] = {}
    for run in _RUN.findall(text):
        size = min(len(run), 3 if _SHORT.match(run) else 2)
        found.update(dict.fromkeys(run[at : at + size] for at in range(len(run) - size + 1)))
    for name in _NAME.findall(_RUN.sub(" ", text)):
        found.update(dict.fromkeys([name, *_PART.findall(name)]))
    return list(found)[:_TERMS_MAX]


def word_scores(query: str, texts: Sequence[str]) -> list[float]:
    """How much of the query each text (as `plain` makes them) has: 0 to 1, by the weights of BM25.

    1 is what a text of middling length reaches that has each word of the query once.
    """
    terms = terms_of(query)
    if not terms or not texts:
        return [0.0] * len(texts)
    mean_length = max(1.0, sum(map(len, texts)) / len(texts))
    totals = [0.0] * len(texts)
    most = 0.0
    for term in terms:
        having = ((index, _count(term, text)) for index, text in enumerate(texts) if term in text)
        counts = {index: count for index, count in having if count}
        rarity = math.log(1 + (len(texts) - len(counts) + 0.5) / (len(counts) + 0.5))
        rarity *= _IDENTIFIER_WEIGHT if _IDENTIFIER.match(term) else 1
        most += rarity
        for index, count in counts.items():
            length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * len(texts[index]) / mean_length
            totals[index] += rarity * count * (_TERM_FREQUENCY + 1) / (count + _TERM_FREQUENCY * length)
    return [min(1.0, total / most) for total in totals]


def _count(term: str, text: str) -> int:
    """How often a term is in a text: as a word of its own, or anywhere in scripts without blanks."""
    return text.count(term) if _RUN.match(term) else len(_word(term).findall(text))


@lru_cache(maxsize=4 * _TERMS_MAX)
def _word(term: str) -> re.Pattern[str]:
    escaped = re.escape(term)
    # The term first: a text is searched for it as a whole, not letter by letter for what stands before it.
    return re.compile(rf"{escaped}(?!{_LETTER})(?<!{_LETTER}{escaped})")
