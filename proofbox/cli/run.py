"""``proofbox run`` (``exec``): run a program in a sandbox and check the files that it promises."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofbox.cli.connection import connect, resolve_target
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import ExitCode, usage_error
from proofbox.cli.shared.inputs import STDIN, StandardInput, parse_inputs, read_text
from proofbox.cli.shared.live_calls import CALL_ID_HELP, call_names, live_call
from proofbox.cli.shared.outcomes import Outcome, output_folder, save_files
from proofbox.cli.shared.promises import parse_promises
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from proofbox.client import Client

_LANGUAGES = {".py": "python", ".sh": "bash", ".js": "node"}
_DESCRIPTION = """\
Run a program in a sandbox and check the files that it promises.

The program's output appears as it comes. Then the report and the saved files are listed on stderr. Without
--promise the program only explores: what it prints is the result."""
_EXAMPLES = """\
examples:
  proofbox run analysis.py --in 'my data.csv' --promise report.pdf
  proofbox run analysis.py --promise 'result.csv: min_rows=3, columns=name,price'
  echo 'print(6 * 7)' | proofbox run -
  psql -c 'copy t to stdout csv' | proofbox run analysis.py --in table.csv=- --promise chart.png"""


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "run",
        aliases=["exec"],
        parents=[service_options()],
        help="run a program in a sandbox and check the files that it promises",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.set_defaults(run=run)
    parser.add_argument("code", metavar="CODE", help="the program: .py, .sh or .js; - reads it from stdin")
    parser.add_argument(
        "-p",
        "--promise",
        dest="promises",
        action="append",
        default=[],
        metavar="NAME",
        help="a file that the program creates: a name, a pattern such as 'charts/*.png', 'NAME: CHECK=VALUE, …', "
        "or JSON; may be repeated",
    )
    parser.add_argument("--contract", default="", metavar="NAMES", help=argparse.SUPPRESS)  # older spelling
    parser.add_argument(
        "-i",
        "--in",
        dest="inputs",
        action="append",
        default=[],
        metavar="FILE",
        help="a file that the program reads by its name: PATH, NAME=PATH, or NAME=- for stdin; may be repeated",
    )
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("out"), metavar="DIR", help="folder for the files (default: out)"
    )
    _add_program_options(parser)
    _add_call_options(parser)


def _add_program_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("program")
    group.add_argument(
        "--language", choices=list(_LANGUAGES.values()), help="the language, if CODE does not show it"
    )
    group.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="time limit of the program")
    group.add_argument(
        "--arg", dest="args", action="append", default=[], metavar="TEXT", help="an argument; may be repeated"
    )
    group.add_argument(
        "--env",
        type=_variable,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an environment variable; may be repeated",
    )
    group.add_argument(
        "--network",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="a host that the program may connect to, such as pypi.org:443; may be repeated",
    )
    group.add_argument(
        "--package",
        action="append",
        default=[],
        dest="packages",
        metavar="NAME==VERSION",
        help="a package of the operator's index, such as scikit-image==0.25.*; may be repeated",
    )
    group.add_argument("--stdin", metavar="FILE", help="the program's standard input; - passes stdin on")


def _add_call_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("conversation")
    group.add_argument("-c", "--conversation", metavar="ID", help="go on in a conversation and its files")
    group.add_argument("--turn", metavar="ID", help="the turn (default: turn_1)")
    group.add_argument("--call-id", metavar="ID", help=CALL_ID_HELP)
    group.add_argument("--detach", action="store_true", help="start the call, print its ids and return")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    terminal = Terminal.of(args)
    stdin = StandardInput()
    language = _language(args)
    files = parse_inputs(args.inputs, stdin)
    program = read_text(args.code, "CODE", stdin)
    given = None if args.stdin is None else read_text(args.stdin, "--stdin", stdin)
    name = "program" if args.code == STDIN else Path(args.code).stem
    options: dict[str, Any] = {
        "language": language,
        "files": files,
        "promises": parse_promises([*args.promises, *args.contract.split()], f"promised by {name}"),
        "prog_name": name,
        "timeout_s": args.timeout,
        "args": args.args or None,
        "env": dict(args.env) or None,
        "network": args.network or None,
        "packages": args.packages or None,
        "stdin": given,
    }
    if args.detach and resolve_target(args).url is None:
        # The call must outlive this process, which a local service would not.
        raise usage_error("--detach needs a service", field="--detach", hint="give --url, or run without it")
    given_options = {name: value for name, value in options.items() if value is not None}
    folder = args.out if options["promises"] and not args.detach else None
    with output_folder(folder, "--out"), connect(args, terminal, is_stored=_is_stored(args)) as client:
        if args.detach:
            return _detach(client, args, terminal, program, given_options)
        return _run(client, args, terminal, program, given_options)


def _run(
    client: "Client", args: argparse.Namespace, terminal: Terminal, program: str, options: dict[str, Any]
) -> int:
    names = call_names(args.conversation, args.turn, args.call_id)
    ids: dict[str, Any] = {"conversation": names.conversation, "turn": names.turn, "call_id": names.call_id}
    with live_call(client, names, terminal) as show:
        result = client.run(program, **ids, **options, on_event=show)
    outcome = Outcome(names, result.response)
    save_files(outcome, result.files, args.out)
    outcome.print(terminal, is_stored=_is_stored(args) or resolve_target(args).url is not None)
    return outcome.exit_code


def _is_stored(args: argparse.Namespace) -> bool:
    """Whether a later command can name the call, so that a local store must outlive this one."""
    return args.conversation is not None or args.call_id is not None


def _detach(
    client: "Client", args: argparse.Namespace, terminal: Terminal, program: str, options: dict[str, Any]
) -> int:
    """Start the call, and print its ids."""
    names = call_names(args.conversation, args.turn, args.call_id)
    for name, source in options.pop("files").items():
        client.upload(names.conversation, name, source, turn=names.turn)
    tool_id = f"exec_tools.execute_code_{options.pop('language')}"
    contract = options.pop("promises")
    promised = {"contract": contract} if contract else {"explore": True}
    ids: dict[str, Any] = {"conversation": names.conversation, "turn": names.turn, "call_id": names.call_id}
    client.start(tool_id, {**promised, **options}, code=program, **ids)
    if terminal.is_json:
        terminal.print_json(ids)
    else:
        terminal.print(names.call_id)
        terminal.note(f"watch it: proofbox watch {names.call_id} --conversation {names.conversation}")
    return ExitCode.OK


def _language(args: argparse.Namespace) -> str:
    """The language of the program.

    Raises:
        CommandError: neither the option nor the name of the file shows it.
    """
    if args.language:
        return str(args.language)
    if args.code == STDIN:
        return "python"
    language = _LANGUAGES.get(Path(args.code).suffix.lower())
    if language is None:
        known = ", ".join(_LANGUAGES)
        raise usage_error(f"{args.code}: the language is not known by its name ({known})", hint="give --language")
    return language


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above 0")
    return value


def _variable(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value
