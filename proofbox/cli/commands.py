"""The table of commands, and the parser made of it."""

import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from proofbox.cli.options import CommandParser
from proofbox.cli.shared.exit_codes import MEANINGS

_DESCRIPTION = """\
Run code and render documents in a sandbox, and check the files that they promise.

Commands use the service at --url, PROOFBOX_URL or the one saved by 'proofbox login', with the key of
PROOFBOX_API_KEY or the saved one. Without a URL, or with --local, they use this machine's sandbox engine and a
private store. 'proofbox COMMAND --help' has the options of a command."""


@dataclass(frozen=True, slots=True)
class Command:
    """A module with commands: ``add_parser(subparsers)`` adds their parsers, ``run(args)`` runs one.

    Attributes:
        module: its name in `proofbox.cli`.
        names: the commands.
    """

    module: str
    names: tuple[str, ...]

    def load(self) -> ModuleType | None:
        """The module; None if this installation has no such part."""
        name = f"{__package__}.{self.module}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as exc:
            if exc.name != name:
                raise
            return None


COMMANDS = (
    Command("run", ("run", "exec")),
    Command("render", ("render",)),
    Command("call", ("call",)),
    Command("calls", ("status", "watch", "cancel")),
    Command("files", ("files",)),
    Command("conversations", ("timeline", "conversations")),
    Command("tools", ("tools",)),
    Command("agents", ("agents",)),
    Command("login", ("login", "logout")),
    Command("doctor", ("doctor",)),
    Command("image", ("image",)),
    Command("mcp", ("mcp",)),
    Command("serve", ("serve",)),
    Command("config", ("config",)),
    Command("keys", ("keys", "links")),
    Command("audit", ("audit", "rerun")),
    Command("check", ("check",)),
    Command("backup", ("backup", "restore")),
    Command("gc", ("gc",)),
    Command("dispatch", ("dispatch",)),
    Command("demo", ("demo",)),
    Command("completion", ("completion",)),
)


def build_parser(argv: Sequence[str] | None = None) -> CommandParser:
    """The parser; with arguments that begin with a command, only that command's part of it.

    Args:
        argv: the arguments of the process; None: a parser with all commands.
    """
    parser = CommandParser(prog="proofbox", description=_DESCRIPTION, epilog=_exit_codes())
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=CommandParser
    )
    named = argv[0] if argv else None
    wanted = [command for command in COMMANDS if named in command.names] or COMMANDS
    for command in wanted:
        module = command.load()
        if module is not None:
            _register(module, subparsers)
    return parser


def _register(module: ModuleType, subparsers: Any) -> None:
    """Add the parsers of a module; those that name no function of their own are run by ``run``."""
    before = set(subparsers.choices)
    module.add_parser(subparsers)
    for name in set(subparsers.choices) - before:
        parser = subparsers.choices[name]
        if hasattr(module, "run") and parser.get_default("run") is None:
            parser.set_defaults(run=module.run)


def _exit_codes() -> str:
    lines = [f"  {code.value:>3}  {text}" for code, text in MEANINGS.items()]
    return "\n".join(["exit codes:", *lines])


def version_text() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - only for --version

    try:
        return f"proofbox {version('proofbox')}"
    except PackageNotFoundError:
        return f"proofbox, not installed ({sys.prefix})"
