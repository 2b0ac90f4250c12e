"""``proofbox status``, ``watch`` and ``cancel``: a call that was made before."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofbox.cli.connection import connect
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import CommandError, ExitCode
from proofbox.cli.shared.live_calls import FIRST_TURN, live_call
from proofbox.cli.shared.outcomes import CallNames, Outcome, exit_code_of, output_folder, produced_files, save_files
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from proofbox.client import CallEvent, Client
    from proofbox.contracts.problems import Problem
    from proofbox.contracts.tool_call_response import CallStatus


def add_parser(subparsers: Any) -> None:
    """Add the commands."""
    status = _add(subparsers, "status", "show how a call stands, and its answer if it has ended")
    status.set_defaults(run=_status)
    watch = _add(subparsers, "watch", "show the events of a call until it ends; Ctrl-C leaves it running")
    watch.set_defaults(run=_watch)
    watch.add_argument("-o", "--out", type=Path, metavar="DIR", help="folder for the produced files")
    cancel = _add(subparsers, "cancel", "cancel a call that waits or runs")
    cancel.set_defaults(run=_cancel)


def _add(subparsers: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        name, parents=[service_options()], help=text, description=f"{text[0].upper()}{text[1:]}."
    )
    parser.add_argument("call", metavar="CALL", help="the id of the call")
    parser.add_argument(
        "-c", "--conversation", metavar="ID", help="its conversation; needed if several have the id"
    )
    return parser


def _status(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with connect(args, terminal) as client:
        status = client.status(args.call, args.conversation)
    _print_status(terminal, status)
    return ExitCode.OK


def _cancel(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with connect(args, terminal) as client:
        status = client.cancel(args.call, args.conversation)
    _print_status(terminal, status)
    return ExitCode.OK


def _print_status(terminal: Terminal, status: "CallStatus") -> None:
    if terminal.is_json:
        terminal.print_json(status.model_dump(mode="json", exclude_none=True))
        return
    terminal.print(str(status.status))
    if status.response is not None:
        terminal.print(status.response.text)
    if status.problem is not None:
        terminal.print(f"{status.problem.code}: {status.problem.detail}")


def _watch(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with output_folder(args.out, "--out"), connect(args, terminal) as client:
        return _watch_call(client, args, terminal)


def _watch_call(client: "Client", args: argparse.Namespace, terminal: Terminal) -> int:
    names = CallNames(args.call, args.conversation or "", FIRST_TURN)
    last: CallEvent | None = None
    with live_call(client, names, terminal, is_cancelled=False) as show:
        for event in client.events(args.call, args.conversation):
            if terminal.is_json:
                data = event.data.model_dump(mode="json", exclude_none=True)
                terminal.print_json({"id": event.id, "event": event.name, "data": data})
            show(event)
            last = event
    if last is None or last.name not in {"result", "error"}:
        raise CommandError("the events ended before the call did", code="incomplete", retryable=True)
    if last.name == "error":
        raise _as_error(last.data)  # type: ignore[arg-type]  # the data of this event
    conversation = args.conversation or client.status(args.call).conversation_id
    outcome = Outcome(CallNames(args.call, conversation, _turn_of(last.data)), last.data)  # type: ignore[arg-type]
    if args.out is not None:
        save_files(outcome, produced_files(client, outcome), args.out)
    if not terminal.is_json:
        outcome.print(terminal)
    return exit_code_of(outcome.response.error)


def _turn_of(response: Any) -> str:
    return next((block.turn_id for block in response.blocks if block.turn_id), FIRST_TURN)


def _as_error(problem: "Problem") -> CommandError:
    is_cancelled = problem.code == "cancelled"
    return CommandError(
        problem.detail,
        code=str(problem.code),
        exit_code=ExitCode.INTERRUPTED if is_cancelled else ExitCode.ERROR,
        retryable=problem.retryable,
    )
