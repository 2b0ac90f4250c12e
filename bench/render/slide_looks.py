"""What slides look like beside their pages: a table of checks, the share of slides that pass, and those that fail.

Usage: python -m bench.render.slide_looks [--quick] [--out FOLDER]. Renders the decks of three corpora as PPTX and
PDF, prints the PPTX with LibreOffice, and writes bench/results/render_slides.json and .md.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.render import authored_decks, corpora, deck_type, likeness, page_text, second_readers
from bench.render.figures import OURS, Figure, Row, write_rows
from bench.render.model import Outcome, Sample
from bench.render.renderers import ROOT, ours

RESULT = ROOT / "bench" / "results" / "render_slides.json"
TABLE = ROOT / "bench" / "results" / "render_slides.md"
USED_LEAST = 0.6
_SHOWN = 30
_BAR = 12
ALIKE = "like its PDF page (SSIM 0.85 or more)"
INSIDE = "every character inside the slide"
INSIDE_PAGE = "every character inside the page of the PDF"
READABLE = "contrast of 4.5 where the page has it"
USED = "60 % of the area in use (theme's looks)"
SIZED = "body text of 20 pt where there is room (theme's looks)"
STEADY = "title where others of its kind have it (theme's looks)"


@dataclass
class Check:
    """A check: how many slides it looked at, and the slides that failed it, each with what is wrong."""

    name: str
    bar: float
    seen: int = 0
    failed: list[str] = field(default_factory=list)

    def note(self, slide: str, fault: str) -> None:
        """Notes a slide; an empty fault is none."""
        self.seen += 1
        if fault:
            self.failed.append(f"{slide} ({fault})")

    @property
    def share(self) -> float | None:
        """Percent of slides that pass; None if none was looked at."""
        return 100 * (1 - len(self.failed) / self.seen) if self.seen else None


@dataclass(frozen=True, slots=True)
class Deck:
    """A deck and its files.

    Attributes:
        name: how the table names it.
        slides: the PPTX.
        printed: the PPTX as LibreOffice prints it.
        pages: the PDF, if it has a page for each slide.
        is_designed: whether its author's rules settle the looks.
    """

    name: str
    slides: Path
    printed: Path
    pages: Path | None
    is_designed: bool


class Looks:
    """The checks over some decks."""

    def __init__(self) -> None:
        bars = {ALIKE: 90.0, USED: 50.0}
        names = (ALIKE, INSIDE, INSIDE_PAGE, READABLE, USED, SIZED, STEADY)
        self.checks = {name: Check(name, bars.get(name, 100.0)) for name in names}
        self.used: list[float] = []

    def add(self, deck: Deck) -> None:
        """Runs all checks on a deck."""
        shown = page_text.read_pages(deck.printed)
        for number, page in enumerate(shown, 1):
            self._note(INSIDE, deck, number, " ".join(page.outside[:3]))
        if deck.pages is not None:
            self._compare(deck, shown, deck.pages)
        if not deck.is_designed:
            self._type(deck)

    def _compare(self, deck: Deck, shown: Sequence[page_text.PageText], pages: Path) -> None:
        for number, value in enumerate(likeness.likenesses(deck.printed, pages), 1):
            self._note(ALIKE, deck, number, f"{value:.2f}" if value < likeness.ALIKE else "")
        source = page_text.read_pages(pages)
        for number, page in enumerate(source, 1):
            self._note(INSIDE_PAGE, deck, number, " ".join(page.outside[:3]))
        for number, (slide, page) in enumerate(zip(shown, source, strict=False), 1):
            self._note(READABLE, deck, number, "; ".join(faint_words(slide, page)[:3]))

    def _type(self, deck: Deck) -> None:
        slides = deck_type.read_deck(deck.slides)
        moved = deck_type.moved_titles(slides)
        for number, slide in enumerate(slides, 1):
            self._note(STEADY, deck, number, "elsewhere" if number - 1 in moved else "")
            if slide.body_pt is not None:
                self._note(SIZED, deck, number, f"{slide.body_pt:g} pt" if slide.is_small else "")
        for number, share in likeness.used_shares(deck.slides).items():
            self.used.append(share)
            self._note(USED, deck, number, f"{100 * share:.0f} %" if share < USED_LEAST else "")

    def _note(self, check: str, deck: Deck, number: int, fault: str) -> None:
        self.checks[check].note(f"{deck.name} {number}", fault)

    def rows(self) -> Iterator[Row]:
        """The figures for the benchmark's table."""
        for name, check in self.checks.items():
            note = f"{check.seen - len(check.failed)} of {check.seen} slides"
            if name == USED:
                middle = likeness.median(self.used)
                value = 100 * middle if middle is not None else None
                yield _row("area of a content slide in use, median", 60.0, value, "")
            else:
                yield _row(f"slides: {name}", check.bar, check.share, note)

    def table(self) -> str:
        """The checks as Markdown, with the slides that fail."""
        lines = ["| check | slides | pass | share | fail |", "|---|--:|--:|--:|---|"]
        for check in self.checks.values():
            failed = ", ".join(check.failed[:_SHOWN]) + (" …" if len(check.failed) > _SHOWN else "")
            share = "none" if check.share is None else f"{check.share:.1f} %"
            failed = failed.replace("|", "/")
            lines.append(f"| {check.name} | {check.seen} | {check.seen - len(check.failed)} | {share} | {failed} |")
        middle = likeness.median(self.used)
        lines += ["", f"Median area in use: {100 * middle:.0f} %." if middle is not None else ""]
        return "\n".join(lines).rstrip() + "\n"


def _row(what: str, bar: float, value: float | None, note: str) -> Row:
    return Row(_BAR, what, "%", bar, is_lower_better=False, figures=(Figure(OURS, value, note),))


def faint_words(slide: page_text.PageText, page: page_text.PageText) -> list[str]:
    """Words of a slide that are hard to read and clear on its page; those on an uneven ground are left out."""
    clear = {word.text: word.contrast for word in page.words if word.contrast is not None}
    return [
        f"{word.text} {word.contrast:.1f}"
        for word in slide.words
        if word.contrast is not None
        and word.contrast < page_text.READABLE
        and clear.get(word.text, 0.0) >= page_text.READABLE
    ]


def samples(*, quick: bool) -> list[tuple[Sample, bool, bool]]:
    """Decks, each with whether its PDF has a page a slide, and whether its author designed it."""
    generated = [sample for sample in corpora.load("model-decks") if corpora.half(sample.id) == "report"]
    found = [(sample, True, True) for sample in generated[:: 4 if quick else 1]]
    traits = {f"authored-decks/{deck.name}": deck for deck in authored_decks.decks()}
    for sample in corpora.load("authored-decks"):
        deck = traits[sample.id]
        found.append((sample, deck.has_pages, deck.is_designed))
    themed = [sample for sample in corpora.load("decks") if sample.source_format == "markdown"]
    return found + [(sample, False, False) for sample in themed[:: 8 if quick else 2]]


def render(folder: Path, *, quick: bool) -> list[Deck]:
    """Renders and prints the decks.

    Raises:
        RuntimeError: a deck has no file.
    """
    wanted = samples(quick=quick)
    decks = ours().render([sample for sample, _, _ in wanted], "pptx", folder / "pptx")
    paged = [sample for sample, has_pages, _ in wanted if has_pages]
    pages = {outcome.sample_id: outcome for outcome in ours().render(paged, "pdf", folder / "pdf")}
    printed = second_readers.printed([_file(outcome) for outcome in decks], folder / "printed")
    return [
        Deck(
            sample.id.rpartition("/")[2],
            _file(outcome),
            printed[_file(outcome)],
            _file(pages[sample.id]) if has_pages else None,
            designed,
        )
        for (sample, has_pages, designed), outcome in zip(wanted, decks, strict=True)
    ]


def _file(outcome: Outcome) -> Path:
    if outcome.path is None:
        raise RuntimeError(f"{outcome.sample_id}: {outcome.error}")
    return outcome.path


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer decks")
    parser.add_argument("--out", type=Path, help="folder that the files stay in")
    arguments = parser.parse_args()
    looks = Looks()
    with tempfile.TemporaryDirectory(prefix="proofbox-slides-") as folder:
        for deck in render(arguments.out or Path(folder), quick=arguments.quick):
            looks.add(deck)
    print(looks.table())
    TABLE.write_text(looks.table(), encoding="utf-8")
    write_rows(looks.rows(), RESULT)


if __name__ == "__main__":
    main()
