"""``proofbox completion``: a script for the completion of commands and options in a shell."""

import argparse
from typing import Any

from proofbox.cli.shared.exit_codes import CommandError, ExitCode

_SHELLS = ("bash", "zsh", "fish")


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the completion script of a shell. For bash: "
        "proofbox completion bash > ~/.local/share/bash-completion/completions/proofbox",
    )
    parser.set_defaults(run=run)
    parser.add_argument("shell", choices=_SHELLS)


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import sys  # noqa: PLC0415

    from proofbox.cli.commands import build_parser  # noqa: PLC0415 - it imports this module

    try:
        import shtab  # noqa: PLC0415 - only here
    except ModuleNotFoundError as exc:
        raise CommandError(
            "the package shtab is not installed", code="missing_package", hint="pip install shtab"
        ) from exc
    parser = build_parser()
    _complete_files(parser, shtab)
    sys.stdout.write(shtab.complete(parser, shell=args.shell) + "\n")
    return ExitCode.OK


def _complete_files(parser: argparse.ArgumentParser, shtab: Any) -> None:
    """Let the shell complete file names where a command takes them."""
    kinds = {"FILE": shtab.FILE, "CODE": shtab.FILE, "IN": shtab.FILE, "OUT": shtab.FILE, "DIR": shtab.DIRECTORY}
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to its options
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for command in action.choices.values():
                _complete_files(command, shtab)
        elif action.metavar in kinds:
            action.complete = kinds[action.metavar]  # type: ignore[attr-defined]  # where shtab looks
