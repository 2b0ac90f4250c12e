"""What is lost on the way: words, structure, validity, accessibility, glyphs, formulas, diagrams, citations.

Usage: python -m bench.render.quality [--quick]. Writes bench/results/render_quality.json.

The documents are those halves of the corpora that nobody tunes on. A document that a renderer fails on counts with
all of its words as lost. Slow programs get fewer documents, evenly drawn; the table says so.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.render import corpora, glyphs, second_readers, structure, words
from bench.render.figures import OURS, Figure, Row, Unit, write_rows
from bench.render.model import Outcome, Sample
from bench.render.renderers import ROOT, InContainer, ours, peers

RESULT = ROOT / "bench" / "results" / "render_quality.json"
TOGETHER = 40
ERROR_SHOWN = 60
SOURCES = [
    {"sid": number, "title": f"Source {number}", "url": f"https://example.com/{number}"} for number in (1, 2, 3)
]
NO_NOTATION = "it has no such notation"
NEEDS_BROWSER = "it needs a plug-in with a browser"


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: documents of each kind, and the most for a slow program."""

    examples: int
    readmes: int
    decks: int
    opened: int
    slow: int


QUICK = Size(examples=40, readmes=4, decks=16, opened=12, slow=3)
FULL = Size(examples=1_000, readmes=40, decks=200, opened=80, slow=24)
SLOW = {("Marp", "pptx"), ("Marp", "pdf"), ("Pandoc", "pdf")}


@dataclass(frozen=True, slots=True)
class Rendered:
    """Samples and what a renderer made of them, in the same order."""

    name: str
    pairs: list[tuple[Sample, Outcome]]
    note: str

    @property
    def failed(self) -> int:
        """Documents without a file."""
        return sum(1 for _, outcome in self.pairs if outcome.path is None)


def evenly(samples: Sequence[Sample], most: int) -> list[Sample]:
    """At most so many samples, evenly drawn."""
    step = max(1, -(-len(samples) // most))
    return list(samples[::step])


def load(*names: str) -> list[Sample]:
    """Corpora, as far as this machine can have them: one that cannot be fetched is named and left out."""
    found: list[Sample] = []
    for name in names:
        try:
            found += corpora.load(name)
        except RuntimeError as exc:
            print(f"  {name} is left out: {exc}", file=sys.stderr, flush=True)
    return found


def reported(*names: str) -> list[Sample]:
    """The half of corpora that nobody tunes on."""
    return [sample for sample in load(*names) if corpora.half(sample.id) == "report"]


class Bench:
    """Renders each corpus once for each renderer and format, and keeps the files until the end."""

    def __init__(self, folder: Path, size: Size) -> None:
        self.folder = folder
        self.size = size
        self.everyone: dict[str, InContainer] = {OURS: ours(), **peers()}
        self.everyone["LibreOffice"].together = TOGETHER

    def render(self, samples: Sequence[Sample], fmt: str, names: Iterable[str]) -> list[Rendered]:
        """What each of them makes of the samples that it can read."""
        found = []
        for name in names:
            renderer = self.everyone[name]
            mine = [sample for sample in samples if sample.source_format in renderer.sources]
            if (name, fmt) in SLOW:
                mine = evenly(mine, self.size.slow)
            out = self.folder / f"{len(list(self.folder.iterdir()))}-{fmt}"
            outcomes = renderer.render(mine, fmt, out) if mine else []
            note = f"on {len(mine)} of the {len(samples)} documents" if len(mine) < len(samples) else ""
            found.append(Rendered(name, list(zip(mine, outcomes, strict=True)), note))
            print(f"  {fmt} {name}: {len(mine)} documents, {found[-1].failed} failed", file=sys.stderr, flush=True)
        return found


# ---- measures: each gives a value and a note for one renderer's files ----


def words_found(rendered: Rendered) -> Figure:
    """Percent of the visible words that are there, in order."""
    expected = found = 0
    fmt = _format(rendered)
    for sample, outcome in rendered.pairs:
        if outcome.path is None:
            expected += len(words.expected_words(sample))
            continue
        score = words.score(sample, outcome.path, fmt)
        expected, found = expected + score.expected, found + score.found
    return _figure(rendered, 100 * found / expected if expected else None)


def structure_found(rendered: Rendered) -> Figure:
    """F1 of links, headings, lists, tables, emphasis and pictures; documents without a file are left out."""
    totals = [0, 0, 0]
    for sample, outcome in rendered.pairs:
        if outcome.path is not None:
            score = structure.score(sample, outcome.path, _format(rendered))
            counts = (score.tp, score.fp, score.fn)
            totals = [total + sum(kinds.values()) for total, kinds in zip(totals, counts, strict=True)]
    return _figure(rendered, structure.f1(*totals) if any(totals) else None)


def _format(rendered: Rendered) -> str:
    return next((outcome.path.suffix[1:] for _, outcome in rendered.pairs if outcome.path), "")


def _figure(rendered: Rendered, value: float | None) -> Figure:
    failed = ""
    if rendered.failed:
        why = next(outcome.error for _, outcome in rendered.pairs if outcome.path is None) or ""
        failed = f"{rendered.failed} of {len(rendered.pairs)} documents failed, such as with “{why[:ERROR_SHOWN]}…”"
    return Figure(rendered.name, value, "; ".join(filter(None, (rendered.note, failed))))


def _share(rendered: Rendered, good: Callable[[Sample, Path], bool]) -> Figure:
    passed = [outcome.path is not None and good(sample, outcome.path) for sample, outcome in rendered.pairs]
    return _figure(rendered, 100 * sum(passed) / len(passed) if passed else None)


def _row(number: int, what: str, unit: Unit, bar: float, figures: Iterable[Figure]) -> Row:
    return Row(number, what, unit, bar, is_lower_better=False, figures=tuple(figures))


# ---- the rows ----


def texts(bench: Bench) -> Iterator[Row]:
    """Words and structure over CommonMark's and GitHub's examples, and what second readers say of the files."""
    size = bench.size
    examples = evenly(reported("commonmark", "gfm"), size.examples)
    readmes = evenly(reported("readmes"), size.readmes)
    pdf = bench.render(examples, "pdf", (OURS, "WeasyPrint", "Chromium", "LibreOffice", "Pandoc", "Marp"))
    docx = bench.render(examples, "docx", (OURS, "Pandoc", "LibreOffice", "html2docx", "html-for-docx"))
    pptx = bench.render(examples, "pptx", (OURS, "Pandoc"))
    long_docx = bench.render(readmes, "docx", (OURS, "Pandoc", "LibreOffice", "html2docx", "html-for-docx"))
    long_pptx = bench.render(readmes, "pptx", (OURS, "Pandoc"))
    bench.everyone["Marp"].options = {"editable": True}
    pptx += bench.render(examples, "pptx", ("Marp",))
    all_docx, all_pptx = _joined(docx, long_docx), _joined(pptx, long_pptx)
    yield _row(1, "words kept, PDF", "%", 99.5, map(words_found, pdf))
    yield _row(1, "words kept, DOCX", "%", 99.5, map(words_found, docx))
    yield _row(1, "words kept, PPTX", "%", 99.5, map(words_found, pptx))
    yield _row(2, "structure kept, DOCX", "F1", 0.98, map(structure_found, all_docx))
    yield _row(2, "structure kept, PPTX", "F1", 0.97, map(structure_found, all_pptx))
    yield from _opened([_some(rendered, size.opened) for rendered in all_docx], "DOCX")
    yield from _opened([_some(rendered, size.opened) for rendered in all_pptx], "PPTX")
    yield _accessible([_some(rendered, size.opened) for rendered in pdf])


def _joined(first: list[Rendered], second: list[Rendered]) -> list[Rendered]:
    more = {rendered.name: rendered.pairs for rendered in second}
    return [Rendered(item.name, item.pairs + more.get(item.name, []), item.note) for item in first]


def _some(rendered: Rendered, most: int) -> Rendered:
    step = max(1, -(-len(rendered.pairs) // most))
    return Rendered(rendered.name, rendered.pairs[::step], rendered.note)


def _opened(everyone: list[Rendered], kind: str) -> list[Row]:
    paths = [path for rendered in everyone for path in _paths(rendered)]
    findings = second_readers.ooxml(paths)
    printed = second_readers.printed_words(paths)
    same = []
    for rendered in everyone:
        there = total = 0
        for path in _paths(rendered):
            expected = words.words(words.READERS[path.suffix[1:]](path))
            score = words.compare(expected, printed[path])
            there, total = there + score.found, total + score.expected
        same.append(_figure(rendered, 100 * there / total if total else None))
    valid = [_share(rendered, lambda _, path: not findings[path]) for rendered in everyone]
    return [
        _row(4, f"{kind} without a validator's finding", "%", 100.0, valid),
        _row(4, f"{kind}: words that LibreOffice prints", "%", 100.0, same),
    ]


def _accessible(everyone: list[Rendered]) -> Row:
    broken = second_readers.pdf_ua([path for rendered in everyone for path in _paths(rendered)])
    figures = [_share(rendered, lambda _, path: not broken[path]) for rendered in everyone]
    return _row(5, "PDF/UA-1 by default", "%", 99.0, figures)


def _paths(rendered: Rendered) -> list[Path]:
    return [outcome.path for _, outcome in rendered.pairs if outcome.path]


def decks(bench: Bench) -> Iterator[Row]:
    """Decks without text off the slide or over other text, as LibreOffice prints them."""
    size = bench.size
    written = evenly(load("decks"), size.decks * 3 // 4) + evenly(load("hostile-decks"), size.decks // 4)
    bench.everyone["Marp"].options = {"editable": True}
    everyone = bench.render(written, "pptx", (OURS, "Pandoc", "Marp"))
    fits = second_readers.decks_that_fit([path for rendered in everyone for path in _paths(rendered)])
    figures = [_share(rendered, lambda _, path: fits[path]) for rendered in everyone]
    yield _row(3, "decks without overflow or overlap", "%", 100.0, figures)


def signs(bench: Bench) -> list[Row]:
    """Glyphs that are missing, formulas, diagrams and citations."""
    pages = load("scripts", "emoji")
    drawn = bench.render(pages, "pdf", (OURS, "WeasyPrint", "Chromium", "Pandoc"))
    formulas = bench.render(evenly(load("formulas"), bench.size.examples), "docx", (OURS, "Pandoc"))
    diagrams = bench.render(evenly(load("mermaid"), bench.size.examples), "pdf", (OURS,))
    bench.everyone[OURS].options = {"sources": SOURCES}
    cited = bench.render(load("citations"), "docx", (OURS,))
    bench.everyone[OURS].options = {}
    return [
        _row(
            8,
            "scripts and emoji without a missing glyph",
            "%",
            100.0,
            [_share(one, _has_all_glyphs) for one in drawn],
        ),
        _row(9, "formulas, editable in DOCX", "%", 97.0, [_share(one, _has_formulas) for one in formulas]),
        _row(
            9,
            "Mermaid diagrams, no network",
            "%",
            95.0,
            [_undisturbed(diagrams[0]), Figure("Pandoc", None, NEEDS_BROWSER)],
        ),
        _row(
            11,
            "citations in place or reported",
            "%",
            100.0,
            [words_found(cited[0]), Figure("Pandoc", None, NO_NOTATION)],
        ),
    ]


def _has_all_glyphs(_: Sample, path: Path) -> bool:
    return glyphs.missing(path) == 0


def _has_formulas(_: Sample, path: Path) -> bool:
    """One displayed formula and one within the text, as Word edits them."""
    return glyphs.formulas_of_docx(path) == 2  # noqa: PLR2004 - as the corpus has them


def _undisturbed(rendered: Rendered) -> Figure:
    """Files without a warning, for a diagram that cannot be drawn is one."""
    drawn = [outcome.path is not None and not outcome.warnings for _, outcome in rendered.pairs]
    return _figure(rendered, 100 * sum(drawn) / len(drawn) if drawn else None)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer documents")
    size = QUICK if parser.parse_args().quick else FULL
    with tempfile.TemporaryDirectory(prefix="proofbox-quality-") as folder:
        bench = Bench(Path(folder), size)
        rows: list[Row] = []
        for part in (texts, decks, signs):
            for row in part(bench):
                rows.append(row)
                write_rows(rows, RESULT)


if __name__ == "__main__":
    main()
