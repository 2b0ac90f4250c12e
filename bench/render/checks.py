"""What is asked of written files beside their words: validators, glyphs, and where things stand on slides."""

import json
import runpy
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bench.render import glyphs, second_readers
from bench.render.words import READERS, compare, words

_GEOMETRY = Path(__file__).parents[2] / "tests" / "in_image" / "render" / "slide_geometry.py"
Files = Mapping[str, Path]
"""Files by the sample that they were made of."""


@dataclass
class Checked:
    """What the checks of some files found: for each check, the files that it looked at and what is wrong there."""

    faults: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def note(self, check: str, name: str, faults: Sequence[Any]) -> None:
        """Notes what a check found in a file, if only that it is right."""
        said = [fault if isinstance(fault, str) else json.dumps(fault) for fault in faults]
        self.faults.setdefault(check, {})[name] = said


@cache
def has_readers() -> bool:
    """Whether the image of the second readers is there."""
    done = subprocess.run(["docker", "image", "inspect", second_readers.IMAGE], capture_output=True, check=False)
    return done.returncode == 0


def check(files: Files, fmt: str) -> Checked:
    """What we can ask of the files of a format without other programs."""
    found = Checked()
    for name, path in files.items():
        if fmt == "pdf":
            found.note("glyphs", name, glyph_faults(path))
        elif fmt == "pptx":
            found.note("geometry", name, geometry_faults(path))
    return found


def ask_readers(files: Files, fmt: str, printed: Files) -> Checked:
    """What the second readers find in the files of a format, all in one start, which takes most of their time.

    Args:
        files: what the validators read.
        fmt: the format of all of them.
        printed: those that LibreOffice prints, half a second each.
    """
    found = Checked()
    names = {path: name for name, path in files.items()}
    if fmt == "pdf" and files:
        for path, rules in second_readers.pdf_ua(list(names)).items():
            found.note("PDF/UA-1", names[path], rules)
    elif fmt in {"docx", "pptx"} and files:
        for path, said in second_readers.read(list(names), "ooxml")["ooxml"].items():
            found.note("SDK", names[path], said["sdk"] if said else ["not read"])
            found.note("audit", names[path], said["audit"] if said else ["not read"])
        for name, faults in _print(printed, fmt):
            found.note("LibreOffice", name, faults)
    return found


def _print(files: Files, fmt: str) -> Iterator[tuple[str, list[str]]]:
    """Compares the words of files with those that LibreOffice prints of them."""
    shown = second_readers.printed_words(list(files.values()))
    for name, path in files.items():
        score = compare(words(READERS[fmt](path)), shown[path])
        lost = f"{score.expected - score.found} of {score.expected} words are not shown: {' '.join(score.missing)}"
        yield name, [lost] if score.missing else []


def geometry_faults(path: Path) -> list[str]:
    """What leaves its slide or lies on something else, as the renderer's own tests ask."""
    tools = _geometry()
    faults: list[str] = tools["geometry_faults"](tools["open_deck"](path))
    return faults


@cache
def _geometry() -> dict[str, Any]:
    return runpy.run_path(str(_GEOMETRY))


def glyph_faults(path: Path) -> list[str]:
    """Characters without a glyph, and digits of the emoji font, of a PDF."""
    counts = {
        "characters without a glyph": glyphs.missing(path),
        "digits in the emoji font": glyphs.emoji_digits(path),
    }
    return [f"{count} {what}" for what, count in counts.items() if count]
