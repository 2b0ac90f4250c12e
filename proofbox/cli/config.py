"""``proofbox config``: check the configuration of a service, and show what is in effect."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofbox.cli.options import output_options
from proofbox.cli.shared.exit_codes import ExitCode
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from proofbox.service.app.config.effective import EffectiveSetting

_VARIABLE = "PROOFBOX_CONFIG"


def add_parser(subparsers: Any) -> None:
    """Add the commands."""
    parser = subparsers.add_parser(
        "config",
        help="check the configuration of a service, show what is in effect",
        description="The configuration is the environment and a TOML file, which PROOFBOX_CONFIG or "
        "'proofbox serve --config' names. The environment wins.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    check = actions.add_parser(
        "check",
        help="list all mistakes: unknown settings, wrong values, settings that do not fit together",
        parents=[output_options()],
    )
    check.set_defaults(run=_check)
    show = actions.add_parser(
        "show", help="print each setting with its value and source, as TOML", parents=[output_options()]
    )
    show.set_defaults(run=_show)
    show.add_argument("--changed", action="store_true", help="only settings that are not as by default")
    for action in (check, show):
        action.add_argument(
            "file", nargs="?", type=Path, metavar="FILE", help=f"the file; {_VARIABLE} if not given, else none"
        )


def _check(args: argparse.Namespace) -> int:
    from proofbox.service.app.config.check import find_mistakes  # noqa: PLC0415 - the service

    _use(args.file)
    terminal = Terminal.of(args)
    mistakes = find_mistakes(os.environ)
    if terminal.is_json:
        file = os.environ.get(_VARIABLE) or None
        listed = [mistake.as_json() for mistake in mistakes]
        terminal.print_json({"ok": not mistakes, "file": file, "mistakes": listed})
    for mistake in mistakes:
        if not terminal.is_json:
            terminal.print_error(mistake.sentence)
    if not mistakes:
        terminal.note(
            f"the configuration is right: {os.environ.get(_VARIABLE) or 'no file, the environment alone'}"
        )
    return ExitCode.USAGE if mistakes else ExitCode.OK


def _show(args: argparse.Namespace) -> int:
    from proofbox.service.app.config.effective import effective_settings  # noqa: PLC0415 - the service

    _use(args.file)
    terminal = Terminal.of(args)
    found = [row for row in effective_settings(os.environ) if not args.changed or row.source != "default"]
    if terminal.is_json:
        rows = {row.name: {"value": row.value, "source": row.source} for row in found}
        terminal.print_json({"settings": rows})
    else:
        for row in found:
            terminal.print(_line(row))
    return ExitCode.OK


def _use(file: Path | None) -> None:
    if file is not None:
        os.environ[_VARIABLE] = str(file)


def _line(row: "EffectiveSetting") -> str:
    """A line of TOML; a comment for what cannot be written in a file."""
    from proofbox.service.app.config.toml_text import to_toml  # noqa: PLC0415 - the service

    if row.is_secret:
        return f"# {row.name} is hidden  # {row.source}"
    if row.value is None:
        return f"# {row.name} is not set  # {row.source}"
    return f"{row.name} = {to_toml(row.value)}  # {row.source}"
