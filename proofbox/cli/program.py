"""The program ``proofbox``: parse the options, run one command, report its error, return its exit code."""

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from proofbox.cli.commands import build_parser, version_text
from proofbox.cli.options import UsageError
from proofbox.cli.shared.exit_codes import CommandError, ExitCode, usage_error


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without arguments, those of the process, which ends with it."""
    if argv is not None:
        return _run(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the locale cannot show is no error
    return _exit_process(_run(sys.argv[1:]))


def _run(argv: Sequence[str]) -> int:
    is_json = "--json" in argv
    try:
        return _dispatch(argv)
    except UsageError as exc:
        error = usage_error(exc.message, hint=f"'{exc.parser.prog} --help' lists the options")
    except KeyboardInterrupt:
        error = CommandError("interrupted", code="interrupted", exit_code=ExitCode.INTERRUPTED)
    except BrokenPipeError:  # the reader of the output ended, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    except Exception as exc:  # noqa: BLE001 - each error becomes one sentence
        from proofbox.cli.shared.failures import describe_error  # noqa: PLC0415 - only when something failed

        error = describe_error(exc)
    with contextlib.suppress(BrokenPipeError):  # the exit code is all that is left
        _report(error, is_json=is_json)
    return error.exit_code


def _dispatch(argv: Sequence[str]) -> int:
    parser = build_parser(argv)
    args = parser.parse_args(argv)
    if args.version:
        sys.stdout.write(f"{version_text()}\n")
        return ExitCode.OK
    if args.command is None:
        sys.stderr.write(parser.format_help())
        return ExitCode.USAGE
    return int(args.run(args))


def _report(error: CommandError, *, is_json: bool) -> None:
    from proofbox.cli.shared.terminal import to_json, visible  # noqa: PLC0415 - only when something failed

    if is_json:
        sys.stdout.write(to_json(error.as_json()) + "\n")
        sys.stdout.flush()
    else:
        sys.stderr.write(f"proofbox: {visible(error.as_text())}\n")


def _exit_process(status: int) -> NoReturn:
    """End the process without taking its modules apart: half a second that a restart would wait for."""
    if "logging" in sys.modules:
        sys.modules["logging"].shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError):  # the reader closed the pipe
            stream.flush()
    os._exit(status)
