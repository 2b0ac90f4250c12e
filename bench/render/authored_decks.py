"""Sixteen decks in as many styles, as different language models write them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.render.model import SourceFormat

_FOLDER = Path(__file__).parent / "authored"
_FORMATS: dict[str, SourceFormat] = {".html": "html", ".md": "markdown"}
_REFLOWS = frozenset({"lecture"})
"""HTML whose slides have no size of their own: its PDF has other pages than the deck has slides."""


@dataclass(frozen=True, slots=True)
class AuthoredDeck:
    """A deck.

    Attributes:
        name: of its file.
        source_format: of its text.
        text: the source.
        has_pages: whether its PDF has a page for each slide.
        is_designed: whether its author's rules settle the looks, not our themes.
    """

    name: str
    source_format: SourceFormat
    text: str
    has_pages: bool
    is_designed: bool


def decks() -> Iterator[AuthoredDeck]:
    """All decks by name."""
    for path in sorted(_FOLDER.iterdir()):
        if path.suffix in _FORMATS:
            is_html = path.suffix == ".html"
            yield AuthoredDeck(
                path.stem,
                _FORMATS[path.suffix],
                path.read_text(encoding="utf-8"),
                has_pages=is_html and path.stem not in _REFLOWS,
                is_designed=is_html,
            )
