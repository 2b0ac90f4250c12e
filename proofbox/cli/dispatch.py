"""``proofbox dispatch``: the calls of a service of many processes that no worker could begin."""

import argparse
from typing import Any

from proofbox.cli.options import output_options
from proofbox.cli.shared.terminal import Terminal


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    dispatch = subparsers.add_parser(
        "dispatch",
        help="list and release calls that were set aside",
        description="Calls of a service with PROOFBOX_DISPATCH=nats. A call that too many workers lost before its "
        "program began is set aside: it never ran, and waits here for a decision. The service may run meanwhile.",
    )
    dead = dispatch.add_subparsers(dest="what", required=True).add_parser(
        "dead", help="the calls that were set aside"
    )
    actions = dead.add_subparsers(dest="action", required=True)
    actions.add_parser("list", parents=[output_options()], help="list them, the oldest first")
    for name, text in (
        ("show", "show one, with its request"),
        ("release", "queue one again; it has as many attempts as a new one"),
    ):
        action = actions.add_parser(name, parents=[output_options()], help=text)
        action.add_argument("number", type=int, help="its number in the list")
    dispatch.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the command.

    Raises:
        ServiceError: it could not be done; the message has the remedy.
    """
    import asyncio  # noqa: PLC0415 - each command imports only what it needs

    from proofbox.cli.local import dispatch_actions  # noqa: PLC0415 - the stores of the service
    from proofbox.service.app.settings import Settings  # noqa: PLC0415

    return asyncio.run(dispatch_actions.run(Settings(), arguments, Terminal.of(arguments)))
