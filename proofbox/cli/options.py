"""Options that several commands share."""

import argparse
import json
import os
import sys
from typing import Any, NoReturn

_WIDTH_MAX = 100
_NAME_COLUMNS = 18


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help with line breaks as they are written. With the width, argparse need not import shutil and archives."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": _width(), "max_help_position": _NAME_COLUMNS, **options})

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Wrap only lines that are too long."""
        import textwrap  # noqa: PLC0415 - as argparse does

        lines = [textwrap.wrap(line, width) if len(line) > self._width else [line] for line in text.splitlines()]
        return "\n".join(indent + line for wrapped in lines for line in wrapped or [""])


def _width() -> int:
    try:
        return min(os.get_terminal_size(sys.stdout.fileno()).columns - 2, _WIDTH_MAX)
    except (OSError, ValueError):  # not a terminal
        return _WIDTH_MAX


class CommandParser(argparse.ArgumentParser):
    """A parser that raises an error instead of ending the process, and knows no abbreviated options."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, "formatter_class": HelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """Raise the error of wrong options."""
        raise UsageError(message, self)


class UsageError(Exception):
    """Wrong options.

    Attributes:
        message: what is wrong.
        parser: the parser of the command.
    """

    def __init__(self, message: str, parser: argparse.ArgumentParser) -> None:
        super().__init__(message)
        self.message = message
        self.parser = parser


def output_options() -> argparse.ArgumentParser:
    """Options about what is printed."""
    options = CommandParser(add_help=False)
    group = options.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON value, also for an error")
    group.add_argument("-q", "--quiet", action="store_true", help="print only results and errors")
    group.add_argument("--no-color", action="store_true", help="no colours; NO_COLOR does the same")
    return options


def service_options() -> argparse.ArgumentParser:
    """Options about the service in use, and about what is printed."""
    options = CommandParser(add_help=False, parents=[output_options()])
    group = options.add_argument_group("service")
    group.add_argument("--url", metavar="URL", help="the service; PROOFBOX_URL or the saved one if not given")
    group.add_argument("--profile", metavar="NAME", help="a service that was saved by 'proofbox login'")
    group.add_argument(
        "--local", action="store_true", help="this machine's sandbox engine, although a service is known"
    )
    return options


def parse_json_object(text: str) -> dict[str, Any]:
    """A JSON object of an option.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        value = json.loads(text or "{}")
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("not a JSON object")
    return value
