"""The demo: two turns on real data, and a promised file that is missing."""

import sys
import tempfile
from pathlib import Path

import proofbox
from proofbox.cli.local.console import RULE, Console, show
from proofbox.contracts.tools import Language
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.settings import Settings
from proofbox.service.timeline.block_text import rendered

_PROGRAMS = Path(proofbox.__file__).parent / "demo_programs"  # a link to docs/demo


async def demo(settings: Settings, out: Path) -> int:
    """Run the demo; return 0 if every call ended as expected."""
    service = build(settings)
    async with running(service):
        console = Console(service, out)
        with tempfile.TemporaryDirectory(prefix="proofbox-demo-") as folder:
            _print_heading("Turn 1: the user attaches a CSV file (ground heights of the US Geological Survey)")
            source = Console(service, Path(folder))
            await source.run(
                "turn_0", Language.PYTHON, _program("export_heights"), [_entry("heights.csv", "ground heights")]
            )
            await console.attach("turn_1", Path(folder) / "heights.csv")
        _print_heading("Turn 2, first call: code that promises a workbook, a chart, a PDF and a summary")
        produced = await console.run(
            "turn_2",
            Language.PYTHON,
            _program("analysis"),
            [
                _entry("height_bands.xlsx", "points by height", columns=["Band", "Share %"], min_rows=5),
                _entry("chart.png", "relief map", not_blank=True, min_width=800),
                _entry("report.pdf", "report with map and table", min_pages=1),
                _entry("summary.md", "summary in three lines"),
            ],
            prog_name="analysis",
        )
        show(produced, out)
        _print_heading("Turn 2, second call: code that promises a file, does not write it, and raises")
        broken = await console.run(
            "turn_2",
            Language.PYTHON,
            _program("broken_promise"),
            [_entry("statistics.csv", "statistics"), _entry("forecast.csv", "a forecast")],
            prog_name="forecast",
        )
        show(broken, out)
        _print_heading("What a model reads of the second call (the rendered view of its blocks)")
        sys.stdout.write(rendered(broken.blocks))
    as_expected = (
        produced.ok and not broken.ok and [a.verdict for a in broken.artifacts] == ["produced", "missing_file"]
    )
    return 0 if as_expected else 1


def _program(name: str) -> str:
    return (_PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


def _entry(filename: str, description: str, **checks: object) -> dict[str, object]:
    return {"filename": filename, "description": description, **checks}


def _print_heading(text: str) -> None:
    sys.stdout.write(f"\n{RULE}\n{text}\n{RULE}\n")
    sys.stdout.flush()
