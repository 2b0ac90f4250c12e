"""What is asked of written files beside their words: validators, glyphs, and where things stand on slides."""

import json
import runpy
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from bench.render import glyphs
from bench.render.words import READERS, compare, words

READERS_IMAGE = "proofbox-readers:latest"
PRINTED_MAX = 40
"""LibreOffice opens so many files of a corpus and format, evenly drawn: each takes about half a second."""
_GEOMETRY = Path(__file__).parents[2] / "tests" / "in_image" / "render" / "slide_geometry.py"


@dataclass
class Checked:
    """What the checks of some files found: how many were looked at, and what is wrong, file by file."""

    files: dict[str, int] = field(default_factory=dict)
    faults: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def note(self, check: str, name: str, faults: Sequence[str]) -> None:
        """Notes what a check found in a file."""
        self.files[check] = self.files.get(check, 0) + 1
        self.faults.setdefault(check, []).extend((name, fault) for fault in faults)

    def faulty(self, check: str) -> int:
        """How many files a check found something in."""
        return len({name for name, _ in self.faults.get(check, ())})


@cache
def has_readers() -> bool:
    """Whether the image of the second readers is there."""
    done = subprocess.run(["docker", "image", "inspect", READERS_IMAGE], capture_output=True, check=False)
    return done.returncode == 0


def check(files: dict[str, Path], fmt: str, *, second_readers: bool = True) -> Checked:
    """Runs the checks of a format over its files, which are named as they are to be reported."""
    found = Checked()
    if fmt == "pdf":
        for name, path in files.items():
            found.note("glyphs", name, glyph_faults(path))
    if fmt == "pptx":
        for name, path in files.items():
            found.note("geometry", name, geometry_faults(path))
    if files and second_readers:
        by_file = {path.name: name for name, path in files.items()}
        folder = next(iter(files.values())).parent
        if fmt == "pdf":
            for file, rules in _read(folder, ["pdfua"])["pdfua"].items():
                _note(found, "PDF/UA-1", by_file, file, rules)
        elif fmt in {"docx", "pptx"}:
            for file, said in _read(folder, ["ooxml"])["ooxml"].items():
                _note(found, "SDK", by_file, file, said.get("sdk", [str(said)]))
                _note(found, "audit", by_file, file, said.get("audit", []))
            _printed(found, files, fmt)
    return found


def _note(found: Checked, check_name: str, by_file: dict[str, str], file: str, faults: Sequence[Any]) -> None:
    name = by_file.get(Path(file).name)
    if name is not None:
        found.note(check_name, name, [fault if isinstance(fault, str) else json.dumps(fault) for fault in faults])


def _printed(found: Checked, files: dict[str, Path], fmt: str) -> None:
    """Compares the words of files with those that LibreOffice prints of them."""
    drawn = dict(list(files.items())[:: -(-len(files) // PRINTED_MAX)])
    with tempfile.TemporaryDirectory(prefix="proofbox-printed-") as folder:
        for path in drawn.values():
            Path(folder, path.name).hardlink_to(path)
        printed = _read(Path(folder), ["convert"])["convert"]
    for name, path in drawn.items():
        said = printed.get(path.name, {"error": "not converted"})
        if "error" in said:
            found.note("LibreOffice", name, [str(said["error"])])
            continue
        text = " ".join(word for page in said["pages"] for word in page["pdfium"])
        score = compare(words(READERS[fmt](path)), words(text))
        lost = f"{score.expected - score.found} of {score.expected} words are not shown: {' '.join(score.missing)}"
        found.note("LibreOffice", name, [lost] if score.missing else [])


def _read(folder: Path, checks: list[str]) -> dict[str, dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="proofbox-readers-") as out:
        Path(out).chmod(0o777)
        Path(folder).chmod(0o755)
        command = ["docker", "run", "--rm", "--network", "none", "-v", f"{folder}:/in:ro", "-v", f"{out}:/out"]
        done = subprocess.run([*command, READERS_IMAGE, *checks], capture_output=True, text=True, check=False)
        if done.returncode != 0 or not done.stdout:
            raise RuntimeError(f"the second readers failed: {done.stderr[-500:]}")
        answer: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return answer


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
