"""Time and memory: a page, a hundred pages, a table of 5,000 rows, long Markdown; ours and the peers in turn.

Usage: python -m bench.render.speed [--quick]. Writes bench/results/render_speed.json.

Every side gets the same HTML (Marp, which reads only Markdown, the same as Markdown) or the same Markdown, in a
container of the same limits. CPU time is that of all processes of a side: it depends little on what else the
machine does. *Warm* is a process that has rendered a small document before: ours and WeasyPrint are forked from
it, Chromium is kept running. Programs that are started for each document, such as Pandoc and LibreOffice, have
no other way. *Cold* is a whole ``docker run``, from the command line to the file.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.render.figures import OURS, Figure, Row, Unit, write_rows
from bench.render.model import Outcome, Sample
from bench.render.renderers import MEMORY, PEERS, ROOT, SANDBOX, InContainer, ours, peers, python_docx

RESULT = ROOT / "bench" / "results" / "render_speed.json"
TABLE_ROWS, TABLE_COLUMNS = 5_000, 6
BOOK_SECTIONS = 126
"""What fills a hundred pages in our theme, and about ninety in Chromium's own style."""
REPORT_SECTIONS = 38
"""What fills more than thirty pages in our theme."""
README_CHARACTERS = 240_000
CELL_ROWS = (50, 100, 200)
"""Sizes at which python-docx is measured; more takes minutes."""
_TEXT = (
    "The quarter closed with revenue above plan while support costs stayed flat and the new region paid for itself "
    "earlier than expected because onboarding took two weeks instead of five and fewer customers asked for help"
)


@dataclass
class Case:
    """A document, a format, and who renders it.

    Attributes:
        sample: the document as HTML.
        fmt: the format.
        sides: names of the peers.
        limit_s: CPU time; who needs more is not asked again.
        repeat: documents a round.
        markdown: the document for who reads only Markdown.
    """

    sample: Sample
    fmt: str
    sides: tuple[str, ...]
    limit_s: float
    repeat: int = 1
    markdown: Sample | None = None
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)

    def run(self, everyone: dict[str, InContainer], rounds: int) -> None:
        """Measures all sides in turn, so that a noisy machine is noisy for all."""
        for _ in range(rounds):
            for name in (OURS, *self.sides):
                done = self.outcomes.setdefault(name, [])
                if any(outcome.error for outcome in done):
                    continue
                renderer = everyone[name]
                renderer.limit_s = self.limit_s
                sample = self.sample if "html" in renderer.sources or self.markdown is None else self.markdown
                with tempfile.TemporaryDirectory(prefix="proofbox-speed-") as out:
                    done += renderer.render([sample] * self.repeat, self.fmt, Path(out))
                print(f"  {self.sample.id} {self.fmt} {name}: {_said(done[-1])}", file=sys.stderr, flush=True)

    def row(
        self, number: int, what: str, bar: float | None, unit: Unit, of: Callable[[Outcome], float | None]
    ) -> Row:
        """The medians of one measure."""
        figures = tuple(_median(name, self.outcomes[name], of) for name in (OURS, *self.sides))
        return Row(number, what, unit, bar, is_lower_better=True, figures=figures)


def _said(outcome: Outcome) -> str:
    if outcome.error:
        return outcome.error[:160]
    return f"{outcome.wall_s:.2f} s, CPU {outcome.cpu_s or 0:.2f} s, {outcome.peak_mb or 0:.0f} MB"


def _median(name: str, outcomes: Sequence[Outcome], of: Callable[[Outcome], float | None]) -> Figure:
    failed = next((outcome.error for outcome in outcomes if outcome.error), None)
    values = [value for outcome in outcomes if not outcome.error and (value := of(outcome)) is not None]
    if failed or not values:
        return Figure(name, None, (failed or "no figure")[:160])
    return Figure(name, statistics.median(values))


def _wall(outcome: Outcome) -> float | None:
    return outcome.wall_s


def _cpu(outcome: Outcome) -> float | None:
    return outcome.cpu_s


def _peak(outcome: Outcome) -> float | None:
    return outcome.peak_mb


# ---- the documents ----


def page() -> Sample:
    """One page of A4: headings, text with emphasis and links, a list, a table."""
    rows = "".join(
        f"<tr><td>Region {row}</td><td>{row * 37 % 100}</td><td>{row * 53 % 100}</td></tr>" for row in range(6)
    )
    items = "".join(f"<li>{_text(number, 9)}</li>" for number in range(4))
    body = (
        f"<h1>Quarterly report</h1><p>{_text(1, 60)} <strong>bold</strong> <em>slanted</em> <code>code</code> "
        f'<a href="https://example.com/">a link</a></p><h2>Figures</h2><p>{_text(2, 60)}</p><ul>{items}</ul>'
        f"<table><thead><tr><th>Where</th><th>Then</th><th>Now</th></tr></thead><tbody>{rows}</tbody></table>"
    )
    return _document("page", body)


def book(sections: int = BOOK_SECTIONS) -> Sample:
    """A hundred pages of A4, or what so many sections fill: each of text, a list and a table."""
    parts = []
    for number in range(sections):
        paragraphs = "".join(f"<p>{_text(number * 7 + part, 95)} <em>slanted</em></p>" for part in range(3))
        items = "".join(f"<li>{_text(number + item, 12)}</li>" for item in range(5))
        rows = "".join(
            f"<tr><td>{_text(number + row, 3)}</td><td>{row}</td><td>{number}</td></tr>" for row in range(6)
        )
        parts.append(
            f"<h2>Section {number + 1}</h2>{paragraphs}<ul>{items}</ul><table><tbody>{rows}</tbody></table>"
        )
    return _document("book", "<h1>A hundred pages</h1>" + "".join(parts))


def table() -> tuple[Sample, Sample]:
    """A table of 5,000 rows by 6 columns, as HTML and as Markdown."""
    head = [f"Column {column}" for column in range(TABLE_COLUMNS)]
    rows = [[f"r{row} c{column}" for column in range(TABLE_COLUMNS)] for row in range(TABLE_ROWS)]
    cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    heads = "".join(f"<th>{cell}</th>" for cell in head)
    body = f"<h1>Rows</h1><table><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"
    lines = [head, ["---"] * TABLE_COLUMNS, *rows]
    text = "# Rows\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return _document("table", body), Sample("speed/table", "speed", "markdown", text)


def report(sections: int = REPORT_SECTIONS) -> Sample:
    """Thirty pages of Markdown: each section of text, a list and a table."""
    parts = ["# A report of thirty pages\n"]
    for number in range(sections):
        paragraphs = "".join(f"{_text(number * 7 + part, 95)} *slanted*\n\n" for part in range(3))
        items = "".join(f"- {_text(number + item, 12)}\n" for item in range(5))
        rows = "".join(f"| {_text(number + row, 3)} | {row} | {number} |\n" for row in range(6))
        head = "| What | Then | Now |\n|---|---|---|\n"
        parts.append(f"## Section {number + 1}\n\n{paragraphs}{items}\n{head}{rows}")
    return Sample("speed/report", "speed", "markdown", "\n".join(parts))


def readme(characters: int = README_CHARACTERS) -> Sample:
    """A long README: text with links and code, steps, examples of highlighted code, tables of settings."""
    parts, size = ["# A long README\n"], 0
    while size < characters:
        parts.append(_readme_part(len(parts)))
        size += len(parts[-1])
    return Sample("speed/readme", "speed", "markdown", "\n".join(parts))


def _readme_part(number: int) -> str:
    link = f"[the manual](https://example.com/{number})"
    paragraphs = "".join(
        f"{_text(number * 7 + part, 70)} Use `option_{number}` or {link} with **care**.\n\n" for part in range(2)
    )
    steps = "".join(f"- **Step {step}**: {_text(number + step, 14)}\n" for step in range(6))
    code = "".join(
        f'def handler_{number}_{line}(value: int) -> str:\n    return f"{{value}} of {line}"  # {_text(line, 4)}\n'
        for line in range(5)
    )
    rows = "".join(f"| `key_{number}_{row}` | {_text(number + row, 6)} | {row * 37 % 100} |\n" for row in range(8))
    return (
        f"## Part {number}\n\n{paragraphs}### Steps\n\n{steps}\n### Example\n\n```python\n{code}```\n\n"
        f"### Settings\n\n| Key | Meaning | Default |\n|---|---|---|\n{rows}"
    )


def _document(name: str, body: str) -> Sample:
    head = f'<head><meta charset="utf-8"><title>{name}</title></head>'
    text = f'<!DOCTYPE html>\n<html lang="en">{head}<body>{body}</body></html>\n'
    return Sample(f"speed/{name}", "speed", "html", text)


def _text(seed: int, words: int) -> str:
    listed = _TEXT.split()
    return " ".join(listed[(seed * 5 + at * 3 + at // len(listed)) % len(listed)] for at in range(words)) + "."


# ---- the measures ----


def measure(rounds: int, limit_s: float, *, quick: bool) -> Iterator[Row]:
    """All rows. A quick run leaves out the long documents of those who lay out with the same engine as another."""
    everyone = {OURS: ours(workers=1), **peers(workers=1)}
    layouts = ("WeasyPrint", "WeasyPrint, stock", "Chromium", "LibreOffice", "Pandoc")
    of_long = tuple(name for name in layouts if not (quick and name in {"WeasyPrint", "Pandoc"}))
    one = Case(page(), "pdf", layouts, limit_s, repeat=5)
    one.run(everyone, max(rounds, 2))
    yield one.row(6, "1-page PDF, warm", 0.1, "s", _wall)
    yield one.row(6, "1-page PDF, warm: CPU", None, "s", _cpu)
    yield cold(page(), "1-page PDF, cold: a whole docker run", max(rounds, 2))
    many = Case(book(), "pdf", of_long, limit_s)
    many.run(everyone, rounds)
    yield many.row(6, "100-page PDF: CPU", 6.0, "s", _cpu)
    yield many.row(6, "100-page PDF: peak memory", 150.0, "MB", _peak)
    yield from _long_table(everyone, rounds, limit_s, of_long)
    yield from _long_markdown(everyone, rounds, limit_s, of_long)


def _long_markdown(
    everyone: dict[str, InContainer], rounds: int, limit_s: float, layouts: tuple[str, ...]
) -> Iterator[Row]:
    samples = {"30 pages of Markdown": report(), "README of 240 KB": readme()}
    bars = {
        ("30 pages of Markdown", "pptx"): 4.0,
        ("README of 240 KB", "pptx"): 20.0,
        ("README of 240 KB", "pdf"): 15.0,
    }
    for (what, fmt), bar_s in bars.items():
        case = Case(samples[what], fmt, ("Pandoc", "Marp") if fmt == "pptx" else layouts, limit_s)
        case.run(everyone, rounds)
        yield case.row(6, f"{what}, {fmt.upper()}: CPU", bar_s, "s", _cpu)
    whole = cold(report(), "30 pages of Markdown, PDF, cold: a whole docker run", rounds, (OURS,))
    warm = Case(report(), "pdf", layouts, limit_s)
    warm.run(everyone, rounds)
    half_s = None if whole.ours.value is None else round(whole.ours.value / 2, 2)
    yield whole
    yield warm.row(6, "30 pages of Markdown, PDF, warm: at most half of cold", half_s, "s", _wall)


def _long_table(
    everyone: dict[str, InContainer], rounds: int, limit_s: float, layouts: tuple[str, ...]
) -> Iterator[Row]:
    as_html, as_markdown = table()
    size = f"table of {TABLE_ROWS:,} by {TABLE_COLUMNS}"
    docx = Case(as_html, "docx", ("LibreOffice", "Pandoc", "html2docx", "html-for-docx"), limit_s)
    docx.run(everyone, rounds)
    row = docx.row(7, f"{size}, DOCX: CPU", 1.5, "s", _cpu)
    yield replace(row, figures=(*row.figures, cell_by_cell(limit_s)))
    pptx = Case(as_html, "pptx", ("Pandoc", "Marp"), limit_s, markdown=as_markdown)
    pptx.run(everyone, rounds)
    yield pptx.row(7, f"{size}, PPTX: CPU", 10.0, "s", _cpu)
    pdf = Case(as_html, "pdf", layouts, limit_s)
    pdf.run(everyone, rounds)
    yield pdf.row(7, f"{size}, PDF: CPU", 20.0, "s", _cpu)
    yield pdf.row(7, f"{size}, PDF: peak memory", 700.0, "MB", _peak)


def cell_by_cell(limit_s: float) -> Figure:
    """What python-docx needs for the table cell by cell: each cell costs as much as the table has rows."""
    times = {}
    with tempfile.TemporaryDirectory(prefix="proofbox-speed-") as out:
        for rows in CELL_ROWS:
            renderer = python_docx(workers=1, options={"rows": rows, "columns": TABLE_COLUMNS}, limit_s=limit_s)
            (outcome,) = renderer.render([page()], "docx", Path(out))
            if outcome.error:
                break
            times[rows] = outcome.cpu_s or outcome.wall_s
    if not times:
        return Figure("python-docx", None, f"more than {limit_s:g} s for {CELL_ROWS[0]} rows")
    rows, measured_s = max(times.items())
    return Figure(
        "python-docx",
        measured_s * (TABLE_ROWS / rows) ** 2,
        f"cell by cell; estimated from {measured_s:.1f} s for {rows} rows, as it grows with their square",
    )


# ---- cold ----


def _cold_commands(folder: Path) -> dict[str, list[str]]:
    """What a user types, in a container of its own, the image aside."""
    run = [
        "docker", "run", "--rm", "--network", "none", "--cap-drop", "ALL", "--log-driver", "none", "--init",
        "--cpus", "2", "--memory", MEMORY, "--memory-swap", MEMORY, "--shm-size", "256m", "--user", "10001:10001",
        "--tmpfs", "/tmp:rw,size=1g,mode=1777", "--env", "HOME=/tmp", "--env", "PYTHONPATH=/opt/proofbox",  # noqa: S108 - in the container
        "--volume", f"{folder}:/jobs", "--workdir", "/jobs",
    ]  # fmt: skip
    chromium = "chromium-headless-shell --no-sandbox --disable-gpu --disable-dev-shm-usage"
    commands = {
        OURS: (ours().mounts, SANDBOX, "python3 -m render request.json"),
        "WeasyPrint": ((), SANDBOX, "python3 -m weasyprint page.html page.pdf"),
        "WeasyPrint, stock": (
            peers()["WeasyPrint, stock"].mounts,
            SANDBOX,
            "python3 -m weasyprint page.html page.pdf",
        ),
        "Chromium": ((), PEERS, f"{chromium} --print-to-pdf=page.pdf file:///jobs/page.html"),
        "LibreOffice": ((), PEERS, "soffice --headless --convert-to pdf:writer_web_pdf_Export page.html"),
        "Pandoc": ((), PEERS, "pandoc page.html --pdf-engine=weasyprint -o page.pdf"),
    }
    return {
        name: [*run, *mounts, "--entrypoint", "sh", image, "-c", command]
        for name, (mounts, image, command) in commands.items()
    }


def cold(sample: Sample, what: str, rounds: int, sides: Sequence[str] = ()) -> Row:
    """A document through ``docker run``, from start to removal; by all sides that can, unless some are named."""
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="proofbox-speed-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        (folder / "page.html").write_text(sample.text, encoding="utf-8")
        request = {"output": "pdf", "source_format": sample.source_format, "content": sample.text}
        request |= {"root": "/jobs", "target": "page.pdf"}
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        commands = _cold_commands(folder)
        for _ in range(rounds):
            for side in sides or commands:
                (folder / "page.pdf").unlink(missing_ok=True)
                began = time.perf_counter()
                done = subprocess.run(commands[side], capture_output=True, text=True, check=False)
                times.setdefault(side, []).append(time.perf_counter() - began)
                if done.returncode or not (folder / "page.pdf").exists():
                    raise RuntimeError(f"{side}: no page: {done.stderr[-500:]}")
    figures = tuple(Figure(side, statistics.median(values)) for side, values in times.items())
    return Row(6, what, "s", None, is_lower_better=True, figures=figures)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round")
    quick = parser.parse_args().quick
    if shutil.which("docker") is None:
        sys.exit("docker is not installed")
    rows = []
    for row in measure(1 if quick else 3, 60.0 if quick else 150.0, quick=quick):
        rows.append(row)
        write_rows(rows, RESULT)


if __name__ == "__main__":
    main()
