"""Cuts long texts into passages that overlap, at the ends of paragraphs and sentences."""

import re

PASSAGE_CHARS = 600
"""How long a passage is at most: some 150 tokens of English, 220 of German."""
OVERLAP_CHARS = 120
"""How much of the end of a passage the next one begins with, at most."""

# The ends of paragraphs, of lines, and of sentences of scripts with and without spaces.
_END = re.compile(r"\n+|(?<=[.!?\u2026;:])\s+|(?<=[\u3002\uff01\uff1f])")


def passages(text: str) -> list[str]:
    """The passages of a text, in order; together they hold all of its words. None for a text without words."""
    found: list[str] = []
    pieces: list[str] = []
    for piece in _pieces(text):
        if pieces and _length(pieces) + 1 + len(piece) > PASSAGE_CHARS:
            found.append(" ".join(pieces))
            pieces = _end_of(pieces, PASSAGE_CHARS - 1 - len(piece))
        pieces.append(piece)
    if pieces:
        found.append(" ".join(pieces))
    return found


def _pieces(text: str) -> list[str]:
    """Sentences and lines; one that is longer than a passage is cut between words, or anywhere."""
    pieces: list[str] = []
    for sentence in _END.split(text):
        left = sentence.strip()
        while len(left) > PASSAGE_CHARS:
            cut = left.rfind(" ", PASSAGE_CHARS // 2, PASSAGE_CHARS + 1)
            cut = PASSAGE_CHARS if cut < 0 else cut
            pieces.append(left[:cut].rstrip())
            left = left[cut:].lstrip()
        if left:
            pieces.append(left)
    return pieces


def _end_of(pieces: list[str], room: int) -> list[str]:
    """The last sentences that fit the overlap and leave room for what follows."""
    end: list[str] = []
    for piece in reversed(pieces):
        if _length([piece, *end]) > min(OVERLAP_CHARS, room):
            break
        end.insert(0, piece)
    return end


def _length(pieces: list[str]) -> int:
    return sum(map(len, pieces)) + max(0, len(pieces) - 1)
