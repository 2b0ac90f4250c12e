"""The text of office documents and PDFs, as Markdown; one module for each format."""

import importlib
from pathlib import Path
from typing import Any

KINDS = ("docx", "pdf", "pptx", "xlsx")


def reader(kind: str) -> Any:
    """The module whose ``lines(path)`` reads documents of a kind; imported when the first one is read.

    Raises:
        ValueError: the kind is unknown.
    """
    if kind not in KINDS:
        raise ValueError(f"documents are {', '.join(KINDS)}, not {kind[:20]}")
    return importlib.import_module(f"page_text.{kind}_text")


def document_text(path: Path, kind: str, characters_max: int) -> dict[str, Any]:
    """Extract ``text``, its pages, slides or sheets under headings of their own, and ``truncated``.

    Args:
        path: the file.
        kind: one of `KINDS`.
        characters_max: how much text is read.
    """
    read: list[str] = []
    room = characters_max
    for line in reader(kind).lines(path):
        if not line and not (read and read[-1]):
            continue  # one blank line is enough
        read.append(line[:room])
        room -= len(line) + 1
        if room <= 0:
            break
    return {"title": "", "text": "\n".join(read).strip("\n"), "truncated": room <= 0}
