"""What the programs of `tests/readers` say of rendered files, as this benchmark counts it."""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.render import words

IMAGE = "proofbox-readers:latest"
OFF_PAGE_PT = 2.0
"""Ascenders and slanted letters reach a little over their box."""
OVERLAP = 0.3
"""Part of the smaller of two words' boxes that the other covers, from which on they are printed over each other."""
Word = tuple[str, float, float, float, float]


def read(paths: Sequence[Path], *checks: str, written_to: Path | None = None) -> dict[str, dict[Path, Any]]:
    """Runs checks over files, all in one start: for each check, what it found of each file.

    Args:
        paths: the files.
        checks: names of the readers' checks.
        written_to: a folder for the files that the checks write.

    Raises:
        RuntimeError: the readers cannot be run.
    """
    with tempfile.TemporaryDirectory(prefix="proofbox-readers-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "in").mkdir(mode=0o755)
        (folder / "out").mkdir()
        (folder / "out").chmod(0o777)
        names = {f"{number:05}{path.suffix}": path for number, path in enumerate(paths)}
        for short, path in names.items():
            shutil.copyfile(path, folder / "in" / short)
        command = [
            *("docker", "run", "--rm", "--network", "none", "--log-driver", "none"),
            *("--volume", f"{folder / 'in'}:/in:ro", "--volume", f"{folder / 'out'}:/out", IMAGE, *checks),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the readers failed: {done.stderr[-1000:]}")
        answer = json.loads(done.stdout)
        if written_to is not None:
            shutil.copytree(folder / "out", written_to, dirs_exist_ok=True)
    return {check: {path: answer[check].get(short) for short, path in names.items()} for check in checks}


def ooxml(paths: Sequence[Path]) -> dict[Path, list[Any]]:
    """What the Open XML SDK and openxml-audit find in each file."""
    if not paths:
        return {}
    found = read(paths, "ooxml")["ooxml"]
    return {path: [*row["sdk"], *row["audit"]] if row else ["not read"] for path, row in found.items()}


def pdf_ua(paths: Sequence[Path]) -> dict[Path, list[str]]:
    """Rules of PDF/UA-1 that each file breaks."""
    return read(paths, "pdfua")["pdfua"] if paths else {}


def printed_words(paths: Sequence[Path]) -> dict[Path, list[str]]:
    """Words of each file as LibreOffice prints them; none if it cannot open the file."""
    if not paths:
        return {}
    found = read(paths, "convert")["convert"]
    return {path: words.words(" ".join(_text(row))) for path, row in found.items()}


def _text(row: dict[str, Any]) -> list[str]:
    return [word for page in row.get("pages", []) for word in page["pdfium"]]


def printed(paths: Sequence[Path], folder: Path) -> dict[Path, Path]:
    """Each file as LibreOffice prints it, a PDF in a folder; files that it cannot open are left out."""
    if not paths:
        return {}
    found = read(paths, "convert", written_to=folder)["convert"]
    return {path: folder / row["pdf"] for path, row in found.items() if row and "pdf" in row}


def decks_that_fit(paths: Sequence[Path]) -> dict[Path, bool]:
    """Whether LibreOffice prints all words of a deck on its slides, none over another."""
    if not paths:
        return {}
    found = read(paths, "convert")["convert"]
    return {path: bool(row.get("pages")) and all(map(fits, row["pages"])) for path, row in found.items()}


def fits(page: dict[str, Any]) -> bool:
    """Whether no word of a page is off it or over another."""
    width, height = page["size_pt"]
    boxes: list[Word] = [tuple(word) for word in page["boxes"]]
    for number, (_, left, top, right, bottom) in enumerate(boxes):
        if min(left, top) < -OFF_PAGE_PT or right > width + OFF_PAGE_PT or bottom > height + OFF_PAGE_PT:
            return False
        if any(_covers(boxes[number], other) for other in boxes[number + 1 :]):
            return False
    return True


def _covers(first: Word, second: Word) -> bool:
    across = min(first[3], second[3]) - max(first[1], second[1])
    down = min(first[4], second[4]) - max(first[2], second[2])
    smaller = min((box[3] - box[1]) * (box[4] - box[2]) for box in (first, second))
    return across > 0 and down > 0 and across * down > OVERLAP * smaller
