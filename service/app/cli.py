"""The command line: ``proofbox serve``, ``keys``, ``exec``, ``render``, ``demo``, ``audit``, ``rerun``."""

import argparse
import asyncio
import contextlib
import json
import logging
import os
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from proofbox.cli import backup, gc
from proofbox.service.app import cli_keys
from proofbox.service.app.settings import Settings
from proofbox.service.errors import ServiceError
from proofbox.service.observability.log_format import configure


def program() -> NoReturn:
    """The program: `main`, and its end.

    What is left to do then is to take the modules apart: half a second that a restart would wait for.
    """
    status = main()
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BrokenPipeError):  # the reader closed the pipe
            stream.flush()
    os._exit(status)


def main(argv: list[str] | None = None) -> int:
    """Run one command; return 0 if it succeeded, 1 if a call failed, 2 if it could not run."""
    arguments = _parser().parse_args(argv)
    configure("text", logging.INFO if arguments.command == "serve" else logging.WARNING)
    try:
        return _run(arguments)
    except ServiceError as exc:
        sys.stderr.write(f"proofbox: {exc.message}\n")
    except ValidationError as exc:
        for error in exc.errors(include_url=False):
            where = ".".join(str(part) for part in error["loc"])
            sys.stderr.write(f"proofbox: PROOFBOX_{where.upper()}: {error['msg']}\n")
    except OSError as exc:
        sys.stderr.write(f"proofbox: {exc}\n")
    except KeyboardInterrupt:
        return 130
    return 2


def _run(arguments: argparse.Namespace) -> int:
    # Each command imports only what it needs; its arguments are checked before that.
    if arguments.command == "serve":
        from proofbox.service.app.serving import serve  # noqa: PLC0415

        given = {"host": arguments.host, "port": arguments.port}
        settings = Settings(**{name: value for name, value in given.items() if value is not None})
        configure(settings.log_format)
        serve(settings)
        return 0
    if arguments.command == "keys":
        return asyncio.run(cli_keys.run(Settings(), arguments))
    if arguments.command in {"backup", "restore"}:
        return backup.run(arguments)
    if arguments.command == "gc":
        return gc.run(arguments)
    if arguments.command in {"audit", "rerun"}:
        return _look_back(arguments)
    if arguments.command == "links":
        return cli_keys.rotate_links(Settings(), at_once=arguments.at_once)
    from proofbox.service.app.cli_demo import demo  # noqa: PLC0415
    from proofbox.service.app.cli_local import execute, render  # noqa: PLC0415

    # A store of its own for each job, so that a service that runs on the same machine is not disturbed.
    with contextlib.ExitStack() as stack:
        data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proofbox-")))
        settings = Settings(data_dir=data_dir, pool_size=1, audit_head_s=0)
        if arguments.command == "demo":
            return asyncio.run(demo(settings, arguments.out))
        if arguments.command == "render":
            return asyncio.run(
                render(
                    settings,
                    source=arguments.source,
                    out=arguments.out,
                    params={"title": arguments.title, "theme": arguments.theme, **arguments.params},
                    watch=arguments.watch,
                )
            )
        return asyncio.run(
            execute(
                settings,
                code=arguments.code,
                contract=arguments.contract.split(),
                inputs=[Path(name) for name in arguments.inputs.split()],
                out=arguments.out,
            )
        )


def _look_back(arguments: argparse.Namespace) -> int:
    from proofbox.service.app import cli_audit  # noqa: PLC0415

    if arguments.command == "rerun":
        return asyncio.run(
            cli_audit.rerun(
                Settings(pool_size=0), tool_call_id=arguments.call, conversation_id=arguments.conversation
            )
        )
    if arguments.action == "rotate-key":
        return cli_audit.rotate_key(Settings())
    if arguments.action == "begin-anew":
        return asyncio.run(cli_audit.begin_anew(Settings()))
    if arguments.action == "export":
        return cli_audit.export(
            Settings(),
            since=arguments.since or "",
            tenant=arguments.tenant,
            project=arguments.project,
            heads=arguments.heads,
        )
    noted = cli_audit.Noted(arguments.expect, arguments.key, arguments.heads)
    return cli_audit.verify(Settings(), file=arguments.file, noted=noted, answers=arguments.answers)


def _moment(text: str) -> str:
    """A time as the stores write it: UTC, milliseconds, ``Z``."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError("not a time such as 2026-07-04 or 2026-07-04T13:18:00Z") from exc
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("not a JSON object")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="proofbox", description="Promised files, proven.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve the HTTP API")
    serve.add_argument("--host", help="address to listen on; PROOFBOX_HOST or 127.0.0.1 if not given")
    serve.add_argument("--port", type=int, help="port to listen on; PROOFBOX_PORT or 8080 if not given")
    cli_keys.add_parser(commands)
    backup.add_parser(commands)
    gc.add_parser(commands)
    run = commands.add_parser("exec", help="run one script in a sandbox and check the files that it promises")
    run.add_argument("code", type=Path, help="the script: .py or .sh")
    run.add_argument("--contract", required=True, help="names of the promised files, separated by spaces")
    run.add_argument("--in", dest="inputs", default="", help="files that the script reads as attachments/<name>")
    run.add_argument("--out", type=Path, default=Path("out"), help="folder that the produced files are put into")
    draw = commands.add_parser("render", help="render a Markdown or HTML file to PDF, PNG, DOCX or PPTX")
    draw.add_argument("source", type=Path, help="the document; files beside it may be named in it")
    draw.add_argument("out", type=Path, help="the file to write: its extension is the format")
    draw.add_argument("--title", default="", help="the document's title")
    draw.add_argument("--theme", default="plain", help="plain, dark, brand, paper, or a theme file beside it")
    draw.add_argument(
        "--params",
        type=_json_object,
        default={},
        help="the tool's other parameters as JSON, such as '{\"toc\": true}'",
    )
    draw.add_argument("--watch", action="store_true", help="render again whenever the document changes")
    _add_looking_back(commands)
    demo = commands.add_parser("demo", help="run two turns of an agent on real data")
    demo.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder that the produced files are put into"
    )
    return parser


def _add_looking_back(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    again = commands.add_parser("rerun", help="run a stored call again on the inputs that it had, and compare")
    again.add_argument("call", help="the tool_call_id")
    again.add_argument("--conversation", help="its conversation; needed if several have a call of that id")
    audit = commands.add_parser(
        "audit", help="read and check the audit lines of calls; the service may run meanwhile"
    )
    actions = audit.add_subparsers(dest="action", required=True)
    verify = actions.add_parser(
        "verify", help="check that no line was changed, taken out or put in, and that all signed heads fit"
    )
    verify.add_argument("--file", type=Path, help="lines that were exported, in place of the database's")
    verify.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="SHA256",
        help="a line that has to be there, noted elsewhere",
    )
    verify.add_argument("--heads", type=Path, help="a copy of the signed heads, in place of the service's file")
    verify.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="ID",
        help="the key that the heads begin with, noted elsewhere",
    )
    verify.add_argument("--answers", action="store_true", help="check the stored answers against their lines too")
    export = actions.add_parser("export", help="print audit lines, one JSON object a line")
    export.add_argument("--since", type=_moment, help="only calls that ended then or later, UTC")
    export.add_argument("--tenant", help="only this tenant's")
    export.add_argument("--project", help="only this project's")
    export.add_argument("--heads", action="store_true", help="print the signed heads of these lines after them")
    actions.add_parser("rotate-key", help="sign heads with another key from now on, which the old key signs")
    actions.add_parser(
        "begin-anew",
        help="put a lost key and its heads aside, so that the next start makes others; not for a service that runs",
    )


if __name__ == "__main__":
    program()
