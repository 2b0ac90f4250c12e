"""The command line: ``proofbox COMMAND``. `proofbox.cli.commands` has the table of commands."""

from proofbox.cli.program import main

__all__ = ["main"]
