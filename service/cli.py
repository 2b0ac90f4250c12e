"""The command line: ``proofbox serve``, ``keys``, ``exec``, ``render`` and ``demo``."""

import argparse
import asyncio
import contextlib
import json
import logging
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from service import key_commands
from service.core.errors import ServiceError
from service.settings import Settings


def main(argv: list[str] | None = None) -> int:
    """Runs one command; the exit status is 0 if it did what it was asked, 1 if a call failed, 2 if it could not."""
    arguments = _parser().parse_args(argv)
    logging.basicConfig(
        level=logging.INFO if arguments.command == "serve" else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    # Its lines about itself; what has become of the schema is said by the store.
    logging.getLogger("alembic").setLevel(logging.WARNING)
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
    # Each command loads only what it needs; a mistake in its arguments is told before that.
    if arguments.command == "serve":
        from service.main import serve  # noqa: PLC0415

        given = {"host": arguments.host, "port": arguments.port}
        serve(Settings(**{name: value for name, value in given.items() if value is not None}))
        return 0
    if arguments.command == "keys":
        return asyncio.run(key_commands.run(Settings(), arguments))
    from service.demo import demo  # noqa: PLC0415
    from service.local_jobs import execute, render  # noqa: PLC0415

    # A store of its own for each job, so that a service that runs on the same machine is not disturbed.
    with contextlib.ExitStack() as stack:
        data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proofbox-")))
        settings = Settings(data_dir=data_dir, pool_size=1)
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


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"it is no JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError("it is no JSON object")
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="proofbox", description="Promised files, proven.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve the HTTP API")
    serve.add_argument("--host", help="address to listen on; PROOFBOX_HOST or 127.0.0.1 if not given")
    serve.add_argument("--port", type=int, help="port to listen on; PROOFBOX_PORT or 8080 if not given")
    key_commands.add_parser(commands)
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
    demo = commands.add_parser("demo", help="run the story of two turns on real data")
    demo.add_argument(
        "--out", type=Path, default=Path("demo-out"), help="folder that the produced files are put into"
    )
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
