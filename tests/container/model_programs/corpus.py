"""Reads the corpus: programs as models write them, and the report that each of them gets.

A file of ``cases/`` holds the programs of one area. ``@@@ name`` begins a program, and a pair of ``+++`` lines
encloses its request in TOML; what follows is its code, byte for byte. A second pair begins another call of the same
turn. ``reports/<area>.md`` has a heading for each program, and a fenced text for the report of each of its calls.

Keys of a request: ``contract`` (names, or entries of a contract), the other parameters of an exec call,
``language``, ``limits``, ``attach`` (files of ``data/`` that an earlier turn brought) and ``variable`` (patterns of
what differs from run to run; the report has ``<…>`` in its place).
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_FENCE = "~~~~"


@dataclass(frozen=True)
class Step:
    """One call: its request and its code."""

    request: dict[str, Any]
    code: str


@dataclass(frozen=True)
class ModelProgram:
    """A program of the corpus: one call, or several of one turn."""

    area: str
    name: str
    steps: list[Step] = field(default_factory=list)


def read_programs() -> list[ModelProgram]:
    """All programs, area by area."""
    return [program for path in sorted((FOLDER / "cases").glob("*.txt")) for program in _programs_of(path)]


def _programs_of(path: Path) -> list[ModelProgram]:
    programs = []
    for part in re.split(r"^@@@ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        sections = re.split(r"^\+\+\+\n", rest, flags=re.MULTILINE)[1:]
        pairs = zip(sections[::2], sections[1::2], strict=True)
        programs.append(ModelProgram(path.stem, name, [Step(tomllib.loads(head), code) for head, code in pairs]))
    return programs


def read_reports(area: str) -> dict[str, list[str]]:
    """The committed reports of an area, by program."""
    path = FOLDER / "reports" / f"{area}.md"
    reports: dict[str, list[str]] = {}
    if path.exists():
        for part in re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name, _, rest = part.partition("\n")
            reports[name] = re.findall(rf"^{_FENCE}text\n(.*?)\n{_FENCE}$", rest, re.MULTILINE | re.DOTALL)
    return reports


def write_reports(area: str, reports: dict[str, list[str]]) -> None:
    """Replaces the committed reports of an area."""
    text = f"# Reports: {area}\n"
    for name, of_steps in reports.items():
        text += f"\n## {name}\n" + "".join(f"\n{_FENCE}text\n{report}\n{_FENCE}\n" for report in of_steps)
    (FOLDER / "reports").mkdir(exist_ok=True)
    (FOLDER / "reports" / f"{area}.md").write_text(text, encoding="utf-8")
