"""Pandoc: reads GitHub's Markdown, or what ``options["reader"]`` says; PDF through WeasyPrint."""

from pathlib import Path
from typing import Any

from engines.commands import run
from engines.pages import source_path


def warm(fmt: str) -> None:
    """Nothing: a program that is started for each document."""
    del fmt


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Renders.

    Raises:
        RuntimeError: Pandoc's own error.
    """
    reader = job["options"].get("reader") or ("gfm" if job["source_format"] == "markdown" else "html")
    engine = ["--pdf-engine=weasyprint"] if fmt == "pdf" else []
    return run(["pandoc", "-f", reader, "-s", *engine, "-o", str(target), str(source_path(job))])
