"""Renders the corpora in every format, scores the files, and prints how far each is from its bar.

Usage: python -m bench.render.corpus_report [--quick] [--no-readers] [--half HALF] [--formats F,F] [CORPUS …].
Writes bench/results/corpus.json and, in .proofbox/corpora/out, the files.
"""

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.render import corpora, structure, words
from bench.render.checks import Checked, ask_readers, check, has_readers
from bench.render.model import Outcome, Sample
from bench.render.renderers import ours
from bench.render.structure_rows import KINDS

FORMATS = ("pdf", "png", "docx", "pptx")
RESULT = corpora.ROOT / "bench" / "results" / "corpus.json"
OUT = corpora.CACHE / "out"
QUICK = 10
FAULTS_SHOWN = 6
PRINTED_MAX, PRINTED_QUICK = 40, 8
"""LibreOffice prints so many files of a corpus and format."""
WORDS_BAR = 0.995
STRUCTURE_BARS = {"docx": 0.98, "pptx": 0.97}
STRUCTURED = frozenset({"commonmark", "gfm", "readmes", "decks"})
"""Corpora whose structure is in their source; a style sheet of a page may take bullets and headings away."""
UA_BAR = 0.99
SHARES = {
    "formulas": ("formula_failed", 0.97, "formulas set"),
    "mermaid": ("diagram_failed", 0.95, "diagrams drawn"),
}
POOL = [
    {"sid": 1, "title": "First", "url": "https://one.example/"},
    {"sid": 2, "title": "Second", "url": "https://two.example/"},
    {"sid": 3, "title": "Third"},
]
"""The sources that a citation of the corpus can name."""


@dataclass
class Row:
    """One measure of one corpus in one format, and whether it meets its bar (None: it has none)."""

    corpus: str
    format: str
    what: str
    value: str
    met: bool | None = None


@dataclass
class Report:
    """All that was measured, and what failed: corpus, format, sample, what."""

    rows: list[Row] = field(default_factory=list)
    failures: list[tuple[str, str, str, str]] = field(default_factory=list)

    def add(self, place: tuple[str, str], what: str, value: str, *, met: bool | None = None) -> None:
        """Adds a measure."""
        self.rows.append(Row(*place, what, value, met))

    def sort(self) -> None:
        """Puts what belongs to one corpus and format together, in the order of the first measures."""
        places = list(dict.fromkeys((row.corpus, row.format) for row in self.rows))
        self.rows.sort(key=lambda row: places.index((row.corpus, row.format)))
        self.failures.sort(key=lambda row: places.index(row[:2]))

    def fail(self, place: tuple[str, str], failures: Iterable[tuple[str, str]]) -> None:
        """Adds what failed, sample by sample."""
        self.failures += [(*place, name, what[:300]) for name, what in failures]


def measure(report: Report, place: tuple[str, str], samples: Sequence[Sample]) -> dict[str, Path]:
    """Renders and scores a corpus in a format; gives the files by their samples."""
    corpus, fmt = place
    folder = OUT / corpus / fmt
    shutil.rmtree(folder, ignore_errors=True)
    outcomes = ours(options={"sources": POOL} if corpus == "citations" else {}).render(samples, fmt, folder)
    lost = [(outcome.sample_id, outcome.error or "") for outcome in outcomes if outcome.path is None]
    report.add(place, "samples", str(len(samples)))
    report.add(place, "crashes", str(len(lost)), met=not lost)
    report.fail(place, lost)
    written = [(sample, outcome) for sample, outcome in zip(samples, outcomes, strict=True) if outcome.path]
    if fmt in words.READERS:
        _words(report, place, written)
    if fmt in STRUCTURE_BARS and corpus in STRUCTURED:
        _structure(report, place, written)
    _drawn(report, place, outcomes)
    files = {sample.id: outcome.path for sample, outcome in written if outcome.path}
    _checks(report, fmt, check(files, fmt))
    return files


def _words(report: Report, place: tuple[str, str], written: list[tuple[Sample, Outcome]]) -> None:
    expected = found = 0
    for sample, outcome in written:
        score = words.score(sample, outcome.path or Path(), place[1])
        expected, found = expected + score.expected, found + score.found
        if score.missing:
            what = f"{score.expected - score.found} of {score.expected} words missing: {' '.join(score.missing)}"
            report.fail(place, [(sample.id, what)])
    share = found / expected if expected else 1.0
    report.add(place, "words in order", f"{share:.3%} of {expected:,}", met=share >= WORDS_BAR)


def _structure(report: Report, place: tuple[str, str], written: list[tuple[Sample, Outcome]]) -> None:
    tp, fp, fn = Counter[str](), Counter[str](), Counter[str]()
    for sample, outcome in written:
        score = structure.score(sample, outcome.path or Path(), place[1])
        tp.update(score.tp)
        fp.update(score.fp)
        fn.update(score.fn)
        report.fail(place, [(sample.id, "; ".join(score.differences[:3]))] if score.differences else [])
    whole = structure.f1(tp.total(), fp.total(), fn.total())
    kinds = ", ".join(f"{kind} {structure.f1(tp[kind], fp[kind], fn[kind]):.3f}" for kind in KINDS)
    report.add(place, "structure F1", f"{whole:.3f} ({kinds})", met=whole >= STRUCTURE_BARS[place[1]])


def _drawn(report: Report, place: tuple[str, str], outcomes: list[Outcome]) -> None:
    """Formulas and diagrams that became pictures; a renderer that gave one up has said so."""
    if place[0] not in SHARES:
        return
    code, bar, what = SHARES[place[0]]
    failed = [
        (outcome.sample_id, warning)
        for outcome in outcomes
        for warning in outcome.warnings
        if warning.startswith(code)
    ]
    drawn = len(outcomes) - len(
        {name for name, _ in failed} | {row.sample_id for row in outcomes if row.path is None}
    )
    report.add(place, what, f"{drawn} of {len(outcomes)}", met=drawn >= bar * len(outcomes))
    report.fail(place, failed)


def _checks(report: Report, fmt: str, checked: Checked) -> None:
    for name, faults in checked.faults.items():
        for corpus in dict.fromkeys(map(_corpus, faults)):
            place = (corpus, fmt)
            own = {sample: said for sample, said in faults.items() if _corpus(sample) == corpus}
            right = sum(not said for said in own.values())
            if name == "PDF/UA-1":
                report.add(place, name, f"{right} of {len(own)}", met=right >= UA_BAR * len(own))
            else:
                report.add(
                    place, f"{name}: faulty files", f"{len(own) - right} of {len(own)}", met=right == len(own)
                )
            report.fail(place, [(sample, f"{name}: {said[0]}") for sample, said in own.items() if said])


def _corpus(sample_id: str) -> str:
    return sample_id.partition("/")[0]


def _evenly(files: dict[str, Path], most: int) -> dict[str, Path]:
    """At most so many files of each corpus, evenly drawn."""
    drawn: dict[str, Path] = {}
    for corpus in dict.fromkeys(map(_corpus, files)):
        own = [name for name in files if _corpus(name) == corpus]
        drawn |= {name: files[name] for name in own[:: -(-len(own) // most)]}
    return drawn


def table(report: Report) -> str:
    """The report as Markdown, with the first failures of each corpus and format below."""
    lines = ["| corpus | format | measure | value | bar |", "|---|---|---|---|---|"]
    marks = {True: "met", False: "**not met**", None: ""}
    lines += [
        f"| {row.corpus} | {row.format} | {row.what} | {row.value} | {marks[row.met]} |" for row in report.rows
    ]
    shown: Counter[tuple[str, str]] = Counter()
    for corpus, fmt, name, what in report.failures:
        shown[corpus, fmt] += 1
        if shown[corpus, fmt] == 1:
            lines += ["", f"{corpus}, {fmt}:"]
        if shown[corpus, fmt] <= FAULTS_SHOWN:
            lines.append(f"- {name}: {what[:160]}")
        elif shown[corpus, fmt] == FAULTS_SHOWN + 1:
            total = sum(row[:2] == (corpus, fmt) for row in report.failures)
            lines.append(f"- and {total - FAULTS_SHOWN} more in the JSON")
    return "\n".join(lines)


def main() -> int:
    """Reads the command line; gives the exit status, which is 0 however far a bar is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"one or more of {', '.join(corpora.CORPORA)}")
    parser.add_argument("--quick", action="store_true", help=f"every {QUICK}th sample")
    parser.add_argument("--half", choices=("report", "tune", "all"), default="report")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--no-readers", action="store_true", help="without the image of the second readers")
    arguments = parser.parse_args()
    unknown = {*arguments.corpora} - {*corpora.CORPORA} | {*arguments.formats.split(",")} - {*FORMATS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    second_readers = not arguments.no_readers and has_readers()
    if not second_readers:
        print("Validators and LibreOffice are left out: they need the image of `make readers`.", file=sys.stderr)
    report, files = Report(), {fmt: dict[str, Path]() for fmt in arguments.formats.split(",")}
    for corpus in arguments.corpora or corpora.CORPORA:
        try:
            samples = [row for row in corpora.load(corpus) if arguments.half in {"all", corpora.half(row.id)}]
        except RuntimeError as exc:
            report.add((corpus, ""), "samples", f"cannot be had: {exc}", met=False)
            continue
        for fmt in files:
            print(f"{corpus}, {fmt} …", file=sys.stderr)
            files[fmt] |= measure(report, (corpus, fmt), samples[:: QUICK if arguments.quick else 1])
    for fmt, written in files.items() if second_readers else ():
        print(f"second readers, {fmt} …", file=sys.stderr)
        printed = _evenly(written, PRINTED_QUICK if arguments.quick else PRINTED_MAX)
        _checks(report, fmt, ask_readers(written, fmt, printed))
    report.sort()
    print(table(report))
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(asdict(report), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
