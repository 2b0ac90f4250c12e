"""``proofbox timeline`` and ``proofbox conversations``: what a service stores of conversations."""

import argparse
from typing import Any

from proofbox.cli.connection import connect
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import ExitCode
from proofbox.cli.shared.terminal import Terminal


def add_parser(subparsers: Any) -> None:
    """Add the commands."""
    timeline = subparsers.add_parser(
        "timeline",
        parents=[service_options()],
        help="show the timeline of a conversation as a model reads it",
        description="Show the timeline of a conversation as a model reads it; with --json, its blocks.",
    )
    timeline.set_defaults(run=_timeline)
    timeline.add_argument("conversation", metavar="CONVERSATION", help="the id of the conversation")
    timeline.add_argument("--after", type=int, default=0, metavar="N", help="only blocks after position N")
    parser = subparsers.add_parser("conversations", help="list and delete conversations")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser(
        "ls", parents=[service_options()], help="list conversations", description="List conversations."
    )
    listing.set_defaults(run=_list)
    remove = actions.add_parser(
        "rm",
        parents=[service_options()],
        help="delete conversations with all their files",
        description="Delete conversations with all their files and calls.",
    )
    remove.set_defaults(run=_remove)
    remove.add_argument("conversations", nargs="+", metavar="CONVERSATION", help="the ids of the conversations")


def _timeline(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with connect(args, terminal) as client:
        if terminal.is_json:
            blocks = client.timeline(args.conversation, after=args.after)
            terminal.print_json({"blocks": [block.model_dump(mode="json", exclude_none=True) for block in blocks]})
        else:
            text = client.timeline_text(args.conversation, after=args.after)
            terminal.write(text if text.endswith("\n") or not text else f"{text}\n")
    return ExitCode.OK


def _list(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with connect(args, terminal) as client:
        listed = [conversation.model_dump(mode="json") for conversation in client.conversations()]
    if terminal.is_json:
        terminal.print_json({"conversations": listed})
    else:
        columns = ("conversation_id", "last_used_at", "turns", "files", "size_bytes")
        terminal.table(columns, [tuple(row[column] for column in columns) for row in listed])
    return ExitCode.OK


def _remove(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with connect(args, terminal) as client:
        for conversation in args.conversations:
            client.delete_conversation(conversation)
            terminal.note(f"deleted {conversation}")
    if terminal.is_json:
        terminal.print_json({"deleted": args.conversations})
    return ExitCode.OK
