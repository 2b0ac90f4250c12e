"""The commands that a page shows: its fenced blocks of shell, console and Python."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SHELL, _CONSOLE, _PYTHON = frozenset({"sh", "bash", "shell"}), "console", "python"
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+-]*)[ \t]*(?P<info>.*)$")
_NOT_RUN = re.compile(r'not-run="(?P<reason>[^"]*)"')
_PROMPT, _MORE, _ANY = "$ ", "> ", "…"


@dataclass(frozen=True, slots=True)
class Command:
    """Lines that a shell runs, and what they print.

    Attributes:
        text: the lines.
        expected: the printed lines; None if the page does not show them.
    """

    text: str
    expected: tuple[str, ...] | None = None


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
    """

    page: str
    line: int
    language: str
    text: str
    reason: str
    is_slow: bool

    @property
    def is_python(self) -> bool:
        """Whether it is a program rather than commands."""
        return self.language == _PYTHON

    def commands(self) -> list[Command]:
        """The commands of a shell or console block, in order."""
        return _console_commands(self.text) if self.language == _CONSOLE else [Command(self.text)]


def pages_with_commands() -> list[str]:
    """The pages that show commands, relative to the repository."""
    pages = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    return [page.relative_to(ROOT).as_posix() for page in pages if read_blocks(page)]


def read_blocks(page: Path) -> list[Block]:
    """All blocks of a page with a language that can be run."""
    blocks: list[Block] = []
    opening: re.Match[str] | None = None
    started, lines = 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if opening is None and fence is not None:
            opening, started, lines = fence, number, []
        elif opening is not None and line.strip() == "```":
            if opening["language"] in _SHELL | {_CONSOLE, _PYTHON}:
                blocks.append(_block(page, started, opening, lines))
            opening = None
        else:
            lines.append(line.removeprefix(opening["indent"] if opening else ""))
    return blocks


def _block(page: Path, line: int, opening: re.Match[str], lines: list[str]) -> Block:
    info = opening["info"]
    marked = _NOT_RUN.search(info)
    words = _NOT_RUN.sub("", info).split()
    if unknown := [word for word in words if word != "slow"]:
        raise ValueError(f"{page}:{line}: unknown words after the language: {unknown}")
    return Block(
        page=page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name,
        line=line,
        language=opening["language"],
        text="\n".join(lines) + "\n",
        reason=marked["reason"] if marked else "",
        is_slow="slow" in words,
    )


def _console_commands(text: str) -> list[Command]:
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith(_PROMPT):
            commands.append(Command(f"{line.removeprefix(_PROMPT)}\n", ()))
            continue
        last = commands[-1]
        assert last.expected is not None
        if line.startswith(_MORE) and not last.expected:
            commands[-1] = Command(f"{last.text}{line.removeprefix(_MORE)}\n", ())
        else:
            commands[-1] = Command(last.text, (*last.expected, line))
    return commands


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
