"""``proofbox call``: any tool of the catalogue."""

import argparse
import json
from pathlib import Path
from typing import Any

from proofbox.cli.connection import connect
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import usage_error
from proofbox.cli.shared.inputs import StandardInput, read_text
from proofbox.cli.shared.live_calls import CALL_ID_HELP, call_names, live_call
from proofbox.cli.shared.outcomes import Outcome, output_folder, produced_files, save_files
from proofbox.cli.shared.terminal import Terminal


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "call",
        parents=[service_options()],
        help="call any tool that 'proofbox tools' lists",
        description="Call a tool and print its report; --json has its blocks too. With --out, the produced files "
        "are saved.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("tool", metavar="TOOL", help="the tool's id, such as react.read")
    parser.add_argument(
        "params", nargs="?", default="{}", metavar="PARAMS", help="its parameters: JSON, @FILE, or - for stdin"
    )
    parser.add_argument("--code", metavar="FILE", help="the program of an exec tool; - reads it from stdin")
    parser.add_argument("-c", "--conversation", metavar="ID", help="the conversation; a new one if not given")
    parser.add_argument("--turn", metavar="ID", help="the turn (default: turn_1)")
    parser.add_argument("--call-id", metavar="ID", help=CALL_ID_HELP)
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="folder for the produced files")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    terminal = Terminal.of(args)
    stdin = StandardInput()
    params = _params(args.params, stdin)
    code = None if args.code is None else read_text(args.code, "--code", stdin)
    names = call_names(args.conversation, args.turn, args.call_id)
    is_stored = args.conversation is not None or args.call_id is not None
    with output_folder(args.out, "--out"), connect(args, terminal, is_stored=is_stored) as client:
        with live_call(client, names, terminal) as show:
            response = client.call(
                args.tool,
                params,
                code=code,
                conversation=names.conversation,
                turn=names.turn,
                call_id=names.call_id,
                on_event=show,
            )
        outcome = Outcome(names, response)
        if args.out is not None:
            save_files(outcome, produced_files(client, outcome), args.out)
    if terminal.is_json:
        blocks = [block.model_dump(mode="json", exclude_none=True) for block in response.blocks]
        terminal.print_json({**outcome.as_json(), "blocks": blocks})
    else:
        outcome.print(terminal, is_report_result=response.output.combined == "")
    return outcome.exit_code


def _params(text: str, stdin: StandardInput) -> dict[str, Any]:
    name = "-" if text == "-" else text[1:] if text.startswith("@") else None
    content = text if name is None else read_text(name, "PARAMS", stdin)
    try:
        value = json.loads(content)
    except ValueError as exc:
        raise usage_error(
            f"not JSON: {exc}", field="PARAMS", hint='such as \'{"paths": ["turn_1/files/a.md"]}\''
        ) from exc
    if not isinstance(value, dict):
        raise usage_error("not a JSON object", field="PARAMS")
    return value
