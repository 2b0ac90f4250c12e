"""``proofbox completion``: a script for the completion of commands and options in a shell."""

import argparse
from typing import Any

from proofbox.cli.exit_codes import CommandError, ExitCode

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
    sys.stdout.write(shtab.complete(build_parser(), shell=args.shell) + "\n")
    return ExitCode.OK
