"""The commands that a page shows: its fenced blocks of shell and Python, and the output that a next block shows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SHELL, _PYTHON, _OUTPUT, _CONSOLE = frozenset({"sh", "bash", "shell"}), "python", "output", "console"
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)[ \t]*(?P<info>[^`]*)$")
_NOT_RUN = re.compile(r'not-run="(?P<reason>[^"]*)"')
_PROMPT, _MORE, _ANY = "$ ", "> ", "…"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block with commands.

    Attributes:
        page: the page, relative to the repository.
        line: the line of its fence.
        language: its language.
        text: its lines.
        reason: why it is not run here; empty if it is run.
        is_slow: whether only ``make test-docs`` runs it.
        expected: the lines that it prints, from the block ``output`` after it; None if the page has none.
    """

    page: str
    line: int
    language: str
    text: str
    reason: str
    is_slow: bool
    expected: tuple[str, ...] | None = None

    @property
    def is_python(self) -> bool:
        """Whether it is a program rather than commands."""
        return self.language == _PYTHON


def pages_with_commands() -> list[str]:
    """The pages that show commands, relative to the repository."""
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    return [page.relative_to(ROOT).as_posix() for page in pages if read_blocks(page)]


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page with a language that can be run."""
    blocks: list[Block] = []
    for line, opening, lines in _read_fenced(page):
        if opening["language"] in _SHELL | {_PYTHON}:
            blocks.append(_block(page, line, opening, lines))
        elif opening["language"] == _OUTPUT:
            if not blocks or blocks[-1].expected is not None:
                raise ValueError(f"{page}:{line}: output without a block of commands before it")
            blocks[-1] = replace(blocks[-1], expected=tuple(lines))
    return blocks


def find_prompts(page: Path) -> list[str]:
    """The lines of a page's blocks that cannot be pasted because of a prompt, each as ``page:line: text``."""
    found: list[str] = []
    for line, opening, lines in _read_fenced(page):
        refused = (_PROMPT, _MORE) if opening["language"] in _SHELL else (_PROMPT,)
        if opening["language"] == _CONSOLE:
            found.append(f"{_name(page)}:{line}: {opening[0].strip()}")
        found += [
            f"{_name(page)}:{number}: {text}"
            for number, text in enumerate(lines, line + 1)
            if text.startswith(refused)
        ]
    return found


def _read_fenced(page: Path) -> Iterator[tuple[int, re.Match[str], list[str]]]:
    """Each fenced block: the line of its fence, the fence, its lines."""
    opening: re.Match[str] | None = None
    started, lines = 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if opening is None:
            opening, started, lines = _FENCE.match(line), number, []
        elif line.strip() == opening["fence"]:
            yield started, opening, lines
            opening = None
        else:
            lines.append(line.removeprefix(opening["indent"]))


def _block(page: Path, line: int, opening: re.Match[str], lines: list[str]) -> Block:
    info = opening["info"]
    marked = _NOT_RUN.search(info)
    words = _NOT_RUN.sub("", info).split()
    if unknown := [word for word in words if word != "slow"]:
        raise ValueError(f"{page}:{line}: unknown words after the language: {unknown}")
    return Block(
        page=_name(page),
        line=line,
        language=opening["language"],
        text="\n".join(lines) + "\n",
        reason=marked["reason"] if marked else "",
        is_slow="slow" in words,
    )


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name


def differing_line(expected: tuple[str, ...], printed: list[str]) -> str:
    """Describe the first line that is not as the page shows it; empty if all are.

    In a shown line ``…`` stands for any text; a line of it alone for any number of lines.
    """
    pattern = "".join(
        "(?:.*\n)*?" if line.strip() == _ANY else ".*".join(map(re.escape, line.rstrip().split(_ANY))) + "[ \t]*\n"
        for line in expected
    )
    text = "".join(f"{line}\n" for line in printed)
    if re.fullmatch(pattern, text):
        return ""
    return f"the page shows:\n{chr(10).join(expected)}\nprinted was:\n{text}"
