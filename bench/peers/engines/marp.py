"""Marp, decks from Markdown through Chromium; PPTX is made of pictures unless ``options["editable"]``."""

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
        RuntimeError: Marp's own error.
    """
    source = target.with_name("deck.md")
    source.write_bytes(source_path(job).read_bytes())
    editable = ["--pptx-editable"] if fmt == "pptx" and job["options"].get("editable") else []
    return run(
        [
            *(
                "marp",
                "--no-stdin",
                "--no-config-file",
                "--html",
                "--allow-local-files",
                "--browser-timeout",
                "300",
            ),
            *(*editable, "-o", str(target), str(source)),
        ]
    )
