"""``proofbox mcp``: an MCP server over standard input and output, in front of a service."""

import argparse
import contextlib
from typing import Any

from proofbox.cli.connection import resolve_target
from proofbox.cli.options import CommandParser

_DESCRIPTION = """\
Serve MCP over standard input and output, for hosts that start their servers as programs.

The tools are those of the service at --url, PROOFBOX_URL or the one saved by 'proofbox login', with the key of
PROOFBOX_API_KEY or the saved one. Without a URL, or with --local, this process runs a service of its own,
on the local store or, while another process uses that, on a temporary one."""


def add_parser(subparsers: Any) -> None:
    """Add the parser of the command."""
    parser: CommandParser = subparsers.add_parser(
        "mcp", help="serve MCP over standard input and output", description=_DESCRIPTION
    )
    group = parser.add_argument_group("service")
    group.add_argument("--url", metavar="URL", help="the service; PROOFBOX_URL or the saved one if not given")
    group.add_argument("--profile", metavar="NAME", help="a service that was saved by 'proofbox login'")
    group.add_argument("--local", action="store_true", help="a service in this process, although one is known")
    results = parser.add_argument_group("results, for hosts that fail on parts of them")
    results.add_argument("--no-resource-links", action="store_true", help="leave links to files out")
    results.add_argument("--no-structured-content", action="store_true", help="leave structured content out")


def run(args: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    import asyncio  # noqa: PLC0415 - as below

    from proofbox.cli.mcp_bridge import serve  # noqa: PLC0415 - imports the HTTP client

    target = resolve_target(args)
    with contextlib.ExitStack() as stack:
        url, key = target.url, target.api_key
        if url is None:
            from proofbox.cli.local_service import run_lasting_service  # noqa: PLC0415 - the whole service

            url, key = stack.enter_context(run_lasting_service())
        off = [name for name in ("resource_links", "structured_content") if getattr(args, f"no_{name}")]
        asyncio.run(serve(url, key, off))
    return 0
