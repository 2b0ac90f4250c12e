"""``proofbox tools``: the catalogue of a service."""

import argparse
import json
from typing import Any

from proofbox.cli.connection import connect
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import ExitCode, usage_error
from proofbox.cli.shared.terminal import Terminal

_SENTENCE_CHARS = 100


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "tools",
        parents=[service_options()],
        help="list the tools of the service, or show one",
        description="List the tools of the service; show one with its parameters; or print all as function "
        "definitions for a model.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("tool", nargs="?", metavar="TOOL", help="show this tool and its parameters")
    parser.add_argument("--format", choices=["openai", "anthropic"], help="print function definitions as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    terminal = Terminal.of(args)
    if args.tool and args.format:
        raise usage_error("give TOOL or --format, not both", field="--format")
    with connect(args, terminal, is_stored=False) as client:
        if args.format:
            terminal.print(json.dumps(client.function_definitions(args.format), indent=2))
            return ExitCode.OK
        tools = client.tools()
    chosen = [tool for tool in tools if args.tool in (None, tool.tool_id)]
    if not chosen:
        raise usage_error(f"there is no tool '{args.tool}'", field="TOOL", hint="'proofbox tools' lists them")
    if terminal.is_json:
        terminal.print_json({"tools": [tool.model_dump(mode="json") for tool in chosen]})
    elif args.tool:
        terminal.print(f"{chosen[0].description}\n")
        terminal.print(json.dumps(chosen[0].params_schema, indent=2))
    else:
        terminal.table(
            ("tool", "description"), [(tool.tool_id, _first_sentence(tool.description)) for tool in chosen]
        )
    return ExitCode.OK


def _first_sentence(text: str) -> str:
    sentence = text.partition("\n")[0].partition(". ")[0].removesuffix(".")
    return sentence if len(sentence) <= _SENTENCE_CHARS else f"{sentence[: _SENTENCE_CHARS - 1]}…"
