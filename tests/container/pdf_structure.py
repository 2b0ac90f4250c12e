"""The structure of a tagged PDF: its tags as PDFium reads them, links and bookmarks as pypdf does."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pypdf

from tests.container.office_structure import Structure, item


def pdf_structure(path: Path, tags: list[Any]) -> Structure:
    """Reads a PDF.

    Args:
        path: the file.
        tags: its structure tree as the check ``tags`` of the readers has it.
    """
    found = Structure()
    for element in _elements(tags):
        if match := re.fullmatch(r"H([1-6])", element[0]):
            found.headings.append((int(match[1]), text(element)))
        elif element[0] == "Table":
            found.tables.append(_grid(element))
    found.lists = list(_lists(tags, -1))
    reader = pypdf.PdfReader(path)
    for page in reader.pages:
        for annotation in page.get("/Annots", []):
            action = annotation.get_object().get("/A", {})
            if action.get("/S") == "/URI" and action["/URI"] not in found.links[-1:]:
                found.links.append(action["/URI"])
    found.alts = [element[1].get("Alt", "") for element in _elements(tags) if element[0] == "Figure"]
    return found


def outline(path: Path) -> list[tuple[int, str]]:
    """Depth (from 1) and title of a PDF's bookmarks."""

    def flat(entries: list[Any], depth: int) -> Iterator[tuple[int, str]]:
        for entry in entries:
            if isinstance(entry, list):
                yield from flat(entry, depth + 1)
            else:
                yield depth, str(entry.title)

    return list(flat(pypdf.PdfReader(path).outline, 1))


def text(element: Any) -> str:
    """What an element shows."""
    if isinstance(element, str):
        return element
    return " ".join("".join(map(text, element[2])).split())


def _elements(element: Any) -> Iterator[Any]:
    if not isinstance(element, str):
        yield element
        for child in element[2]:
            yield from _elements(child)


def _grid(table: Any) -> list[list[str]]:
    """Rows of cells; a cell that spans is repeated in every position that it covers."""
    covered: dict[tuple[int, int], str] = {}
    rows = [element for element in _elements(table) if element[0] == "TR"]
    for y, row in enumerate(rows):
        x = 0
        for cell in row[2]:
            while (y, x) in covered:
                x += 1
            for below in range(int(cell[1].get("RowSpan", 1))):
                for beside in range(int(cell[1].get("ColSpan", 1))):
                    covered[y + below, x + beside] = text(cell)
    width = 1 + max(x for _, x in covered)
    return [[covered.get((y, x), "") for x in range(width)] for y in range(len(rows))]


def _lists(element: Any, depth: int) -> Iterator[tuple[int, str, str]]:
    """The items below an element, each ahead of the lists within it."""
    if isinstance(element, str):
        return
    role, _, children = element
    inner = depth + 1 if role == "L" else depth
    if role == "LI":
        labels = [child for child in children if not isinstance(child, str) and child[0] == "Lbl"]
        shown = [_without_lists(child) for child in children if child not in labels]
        yield item(depth, "".join(map(text, labels)).strip(), "".join(shown))
    for child in children:
        yield from _lists(child, inner)


def _without_lists(element: Any) -> str:
    if isinstance(element, str):
        return element
    return "" if element[0] == "L" else "".join(map(_without_lists, element[2]))
