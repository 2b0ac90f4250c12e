"""The page of all commands and options."""

import argparse
from collections.abc import Iterator

from proofbox.cli.commands import build_parser
from proofbox.cli.shared.exit_codes import MEANINGS

COMMON_OPTIONS = frozenset({"--url", "--profile", "--local", "--json", "--quiet", "--no-color"})


def commands_page() -> str:
    """The page of all commands and options."""
    text = (
        "# Commands\n\n"
        "Made by `docs/generate.py`. [command-line.md](command-line.md) explains the options that most commands "
        "have:\n`--url`, `--profile`, `--local`, `--json`, `--quiet` and `--no-color`.\n"
    )
    for parser, summary in _parsers(build_parser()):
        options = [line for action in parser._actions if (line := _option(action))]  # noqa: SLF001 - no other way
        text += f"\n## {parser.prog}\n\n{summary[0].upper()}{summary[1:]}.\n"
        text += "\n" * bool(options) + "".join(f"- {line}\n" for line in options)
    codes = "".join(f"- {int(code)}: {meaning}\n" for code, meaning in MEANINGS.items())
    return f"{text}\n## Exit codes\n\n{codes}"


def _parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Every command with its summary, in the order of the help."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to its parsers
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for choice in action._choices_actions:  # noqa: SLF001
                command = action.choices[str(choice.metavar or choice.dest).split(" ")[0]]
                yield from list(_parsers(command)) or [(command, choice.help or "")]


def _option(action: argparse.Action) -> str | None:
    """An option or argument with its help; None for those that most commands have, and hidden ones."""
    is_common = not COMMON_OPTIONS.isdisjoint(action.option_strings)
    if action.help in (None, argparse.SUPPRESS) or is_common or "-h" in action.option_strings:
        return None
    names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
    value = f" {action.metavar or action.dest.upper()}" if action.option_strings and action.nargs != 0 else ""
    if action.choices is not None:
        value = f" {'|'.join(map(str, action.choices))}"
    return f"`{names}{value}`: {action.help}"
