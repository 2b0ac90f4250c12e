"""``proofbox check``: check all records and files of a service, and repair what has another copy."""

import argparse
from typing import Any

from proofbox.cli.options import output_options
from proofbox.cli.shared.terminal import Terminal


def add_parser(commands: Any) -> None:
    """Add the command to those of the program."""
    check = commands.add_parser(
        "check",
        parents=[output_options()],
        help="check the database, records and files of a service against each other; it may run meanwhile",
        description="Each line is something that is wrong, and what to do. Exit status 1 if something is left.",
    )
    check.add_argument(
        "--repair",
        action="store_true",
        help="restore lost and changed files from their hosted copies, and host files again; if the service does "
        "not run, also undo saves that were cut short and remove bytes that belong to nothing",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the command; 0 if nothing is wrong any more, 1 if something is left.

    Raises:
        ServiceError: it cannot be checked; the message has the remedy.
    """
    import asyncio  # noqa: PLC0415 - each command imports only what it needs

    return asyncio.run(_check(Terminal.of(arguments), repairs=arguments.repair))


async def _check(terminal: Terminal, *, repairs: bool) -> int:
    from proofbox.service.app.maintenance import opened_check  # noqa: PLC0415 - the service is loaded by it only
    from proofbox.service.app.settings import Settings  # noqa: PLC0415

    found = []
    async with opened_check(Settings(), terminal.note) as check:
        async for finding in check.run(repairs=repairs):
            found.append(finding.as_json())
            if not terminal.is_json:
                terminal.print(finding.as_text())
    left = sum(not finding["repaired"] for finding in found)
    if terminal.is_json:
        terminal.print_json({"ok": not left, "left": left, "findings": found})
    terminal.note(f"{len(found)} found, {left} left")
    return 1 if left else 0
