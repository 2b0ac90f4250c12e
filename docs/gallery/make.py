"""Renders the documents of examples/ with the rendering tools, and makes pictures of their pages."""

import argparse
import asyncio
import io
import json
import subprocess
import sys
import tempfile
from base64 import b64encode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2
from PIL import Image

from proofbox.cli.local.console import Console
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX
from proofbox.contracts.tool_call_request import Asset, SourceRow
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "examples"
READERS = "proofbox-readers:latest"
WIDTH = 1640
"""Pixels of a contact sheet: twice what a README shows."""
GAP = 20
GROUND, FRAME = "#d3d9e1", "#b4bcc8"
SHEET_BYTES_MAX = 240_000
COLOURS_EXACT, COLOURS_APART, FLAT = 160, 8, 8
LARKFIELD = "turn_1/files/larkfield.yaml"

CITED = [
    SourceRow(sid=1, source_type="web", title="A survey of low-cost water-level sensors, 2023",
              url="https://observatory.example/reports/sensors-2023"),
    SourceRow(sid=2, source_type="web", title="Constituents of the tide at 41 stations, yearbook, 2021",
              url="https://hydrography.example/yearbook/2021"),
    SourceRow(sid=3, source_type="web", title="Choosing the variances of small filters, lecture notes, 2024",
              url="https://notes.example/filters"),
    SourceRow(sid=4, source_type="manual", title="Levelling of harbour marks, manual, 5th edition, 2020"),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rendering:
    """One call of a rendering tool: what of, how, and the name of the file, whose extension is the format."""

    name: str
    source: str
    theme: str = "plain"
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Sheet:
    """A picture of the gallery.

    Attributes:
        name: of the picture.
        title, text: its description in README.
        pages: names of renderings, and which of their pages are shown, from 1; an empty range shows all.
        columns: how many stand side by side.
    """

    name: str
    title: str
    text: str
    pages: tuple[tuple[str, range], ...]
    columns: int


ALL = range(0)
THEMES = ("plain", "dark", "brand", "paper")
RENDERINGS = (
    *(Rendering(f"report.{kind}", "quarterly-report.md", LARKFIELD) for kind in ("pdf", "docx")),
    Rendering("report.png", "quarterly-report.md", LARKFIELD, (("width", 900),)),
    *(Rendering(f"report-{theme}.pdf", "quarterly-report.md", theme) for theme in THEMES),
    Rendering("paper.pdf", "tide-gauge-paper.md", "paper"),
    Rendering("paper.docx", "tide-gauge-paper.md", "paper"),
    Rendering("plan.pptx", "field-notes-deck.md", "dark"),
    Rendering("briefing.pptx", "storage-deck.html", LARKFIELD),
    Rendering("briefing.png", "storage-deck.html", LARKFIELD, (("selector", ".grid3"), ("padding_px", 24))),
    Rendering("archive.pptx", "plain-deck.md", LARKFIELD),
    Rendering("ferry.pptx", "ferry-pitch.html"),
    Rendering("board.pptx", "board-review.html"),
    Rendering("museum.pptx", "museum-deck.md", "brand"),
    *(Rendering(f"proposal.{kind}", "proposal.md", "brand", (("cover", True),)) for kind in ("pdf", "docx")),
    Rendering("cv.pdf", "cv.html"),
    *(Rendering(f"scripts.{kind}", "scripts.md") for kind in ("pdf", "docx")),
    Rendering("invoice.pdf", "invoice.html"),
)
SHEETS = (
    Sheet("ferry-pptx", "A pitch deck", "HTML with its own design becomes native shapes.",
          (("ferry.pptx", ALL),), 3),
    Sheet("board-pptx", "A review for the board", "HTML: sentences as titles, a native chart from a table.",
          (("board.pptx", ALL),), 3),
    Sheet("museum-pptx", "A deck from Markdown alone", "The theme `brand`; the content selects each layout.",
          (("museum.pptx", ALL),), 3),
    Sheet("briefing-pptx", "An investor briefing", "HTML as a model writes it. Texts, tables and charts "
          "are native and can be edited.",
          (("briefing.pptx", ALL),), 3),
    Sheet("plan-pptx", "A product plan in Marp", "Columns, callouts, a chart, a diagram, a formula, code; "
          "comments are speaker notes.", (("plan.pptx", ALL),), 3),
    Sheet("archive-pptx", "A deck of plain headings", "Headings, lists, a table and a Mermaid chart.",
          (("archive.pptx", ALL),), 3),
    Sheet("report-pdf", "A quarterly report", "Contents, charts, tables, callouts and footnotes in a house theme.",
          (("report.pdf", ALL),), 3),
    Sheet("report-docx", "The same as DOCX", "Named styles, headings, footnotes, fonts of Office.",
          (("report.docx", ALL),), 3),
    Sheet("proposal-pdf", "A proposal with a cover", "Markdown, the theme `brand`, and `cover: true`.",
          (("proposal.pdf", ALL),), 4),
    Sheet("proposal-docx", "The same as DOCX", "The chart is a drawing, all else can be edited.",
          (("proposal.docx", ALL),), 4),
    Sheet("paper-pdf", "A paper", "Formulas, code, a figure, a Mermaid diagram, a chart, and cited sources.",
          (("paper.pdf", ALL),), 3),
    Sheet("paper-docx", "The same as DOCX", "Formulas can be edited, citations lead to their sources.",
          (("paper.docx", ALL),), 3),
    Sheet("cv", "A CV and an invoice", "HTML with CSS: flex, grid, floats and page rules.",
          (("cv.pdf", ALL), ("invoice.pdf", ALL)), 2),
    Sheet("scripts", "Many scripts", "PDF and DOCX with many scripts and emoji.",
          (("scripts.pdf", ALL), ("scripts.docx", ALL)), 2),
    Sheet("themes", "Four themes", "`plain`, `dark`, `brand` and `paper`.",
          tuple((f"report-{theme}.pdf", range(1, 2)) for theme in THEMES), 4),
    Sheet("report-png", "A report as PNG", "One tall picture, shown here from its top.", (("report.png", ALL),), 1),
    Sheet("briefing-png", "A part of a deck as PNG", "The element that a selector names.",
          (("briefing.png", ALL),), 1),
)  # fmt: skip


async def render(out: Path) -> None:
    """Makes all renderings through the rendering tools, the files of examples/ at hand for each."""
    service = build(Settings())
    async with running(service):
        console = Console(service, out)
        for item in RENDERINGS:
            source = SOURCES / item.source
            output = item.name.rpartition(".")[2]
            params = {
                "path": item.name,
                "content": source.read_text(encoding="utf-8"),
                "format": "html" if source.suffix == ".html" else "markdown",
                "theme": item.theme,
                **dict(item.options),
            }
            # A theme file names its logo, and a document its pictures.
            named = (path for path in SOURCES.iterdir() if path.suffix in {".svg", ".yaml"})
            assets = [
                Asset.model_validate(
                    {"physical_path": f"turn_1/files/{path.name}", "base64": b64encode(path.read_bytes())}
                )
                for path in named
            ]
            answer = await console.call(
                tool_id=RENDER_TOOL_PREFIX + output,
                turn_id="turn_1",
                params=params,
                assets=assets,
                sources_pool=CITED,
            )
            print(f"{item.name}  {answer.timings_ms.total:.0f} ms")
            if not answer.ok:
                raise SystemExit(f"{item.name}: {answer.report}")


def print_office_files(documents: Path) -> dict[str, Path]:
    """The PDFs that LibreOffice makes of DOCX and PPTX, by the name of the file."""
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder)
        printed.chmod(0o777)  # the image has a user of its own
        run = subprocess.run(
            ["docker", "run", "--rm", "--network", "none", "-v", f"{documents}:/in:ro", "-v", f"{printed}:/out",
             READERS, "convert"],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        found = json.loads(run.stdout)["convert"]
        pages = {}
        for name, row in found.items():
            if "error" in row:
                raise SystemExit(f"{name}: {row['error']}")
            pages[name] = documents / f"{name}.printed.pdf"
            pages[name].write_bytes((printed / row["pdf"]).read_bytes())
    return pages


def draw(sheet: Sheet, files: dict[str, Path]) -> bytes:
    """The contact sheet as PNG: pages of one height a row, in thin frames."""
    width = (WIDTH - GAP * (sheet.columns + 1)) // sheet.columns
    if sheet.columns == 1:
        width = width * 3 // 5
    pictures = [page for name, pages in sheet.pages for page in _pages(files[name], pages, width)]
    rows = [pictures[start : start + sheet.columns] for start in range(0, len(pictures), sheet.columns)]
    across = max(sum(page.width + GAP for page in row) + GAP for row in rows)
    down = sum(max(page.height for page in row) + GAP for row in rows) + GAP
    canvas = Image.new("RGB", (across, down), GROUND)
    y = GAP
    for row in rows:
        x = GAP
        for page in row:
            canvas.paste(FRAME, (x - 1, y - 1, x + page.width + 1, y + page.height + 1))
            canvas.paste(page, (x, y))
            x += page.width + GAP
        y += max(page.height for page in row) + GAP
    return _small(canvas)


def _pages(path: Path, wanted: range, width: int) -> list[Image.Image]:
    if path.suffix == ".png":
        with Image.open(path) as picture:
            shown = picture.convert("RGB")
        scaled = shown.resize((width, round(shown.height * width / shown.width)), Image.Resampling.LANCZOS)
        return [scaled.crop((0, 0, width, min(scaled.height, width * 5 // 4)))]
    pdf = pypdfium2.PdfDocument(path)
    numbers = wanted or range(1, len(pdf) + 1)
    return [
        pdf[number - 1].render(scale=width / pdf[number - 1].get_width()).to_pil().convert("RGB")
        for number in numbers
        if number <= len(pdf)
    ]


def _small(canvas: Image.Image) -> bytes:
    """As PNG with all colours if the limit allows it; else with 256, and of as many pixels as it allows."""
    whole = io.BytesIO()
    canvas.save(whole, "PNG", optimize=True)
    if whole.tell() <= SHEET_BYTES_MAX:
        return whole.getvalue()
    for share in (1.0, 0.85, 0.7, 0.55):
        size = (round(canvas.width * share), round(canvas.height * share))
        shown = canvas if share == 1 else canvas.resize(size, Image.Resampling.LANCZOS)
        file = io.BytesIO()
        shown.quantize(palette=_palette(shown), dither=Image.Dither.NONE).save(file, "PNG", optimize=True)
        if file.tell() <= SHEET_BYTES_MAX:
            break
    return file.getvalue()


def _palette(canvas: Image.Image) -> Image.Image:
    """The most frequent colours, which are those of themes and have to stay as they are, and some between them."""
    counted = sorted(canvas.getcolors(canvas.width * canvas.height) or [], reverse=True)
    spread = canvas.quantize(256 - COLOURS_EXACT, method=Image.Quantize.MAXCOVERAGE).getpalette() or []
    between = zip(spread[::3], spread[1::3], spread[2::3], strict=True)
    chosen: list[tuple[int, ...]] = []
    for colour in (*(tuple(colour) for _, colour in counted[:COLOURS_EXACT]), *between):
        # Pillow looks colours up by cells of four: what it may mix up with the first ones is left out.
        if all(
            max(abs(a - b) for a, b in zip(colour, other, strict=True)) > COLOURS_APART for other in chosen[:FLAT]
        ):
            chosen.append(colour)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in chosen for part in colour])
    return palette


def page(sheets: tuple[Sheet, ...]) -> str:
    """README.md of the gallery."""
    lines = [
        "# Gallery",
        "",
        "`make gallery` renders the [examples](../../examples), which are invented. DOCX and PPTX are printed by",
        "LibreOffice. Most use the theme file [larkfield.yaml](../../examples/larkfield.yaml).",
    ]
    for sheet in sheets:
        names = {name: next(item for item in RENDERINGS if item.name == name).source for name, _ in sheet.pages}
        links = ", ".join(f"[{name}](../../examples/{name})" for name in dict.fromkeys(names.values()))
        lines += ["", f"## {sheet.title}", "", f"{sheet.text} {links}", ""]
        lines.append(f"![{', '.join(names)}]({sheet.name}.png)")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Renders, draws, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("gallery-out"), help="folder of the rendered documents")
    parser.add_argument("--draw-only", action="store_true", help="draw what is in the folder already")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if not arguments.draw_only:
        asyncio.run(render(out))
    files = {item.name: out / item.name for item in RENDERINGS} | print_office_files(out)
    total = 0
    for sheet in SHEETS:
        data = draw(sheet, files)
        (HERE / f"{sheet.name}.png").write_bytes(data)
        total += len(data)
        print(f"{sheet.name}.png  {len(data):,} bytes")
    (HERE / "README.md").write_text(page(SHEETS), encoding="utf-8")
    print(f"{len(SHEETS)} pictures, {total:,} bytes; the documents are in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
