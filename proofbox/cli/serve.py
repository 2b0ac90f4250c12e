"""``proofbox serve``: the HTTP API."""

import argparse
import os
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "serve",
        help="serve the HTTP API",
        description="Serve the HTTP API until SIGINT or SIGTERM. The address is the most frequent setting; all "
        "others are environment variables PROOFBOX_… or in a TOML file, listed with their defaults in "
        "docs/settings.md. 'proofbox config check' lists mistakes.",
        epilog="frequent settings: PROOFBOX_DATA_DIR (files and database), PROOFBOX_POOL_SIZE (containers that "
        "wait), PROOFBOX_AUTH (who needs a key), PROOFBOX_LOG_FORMAT=json",
    )
    parser.set_defaults(run=run)
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration file; PROOFBOX_CONFIG if not given"
    )
    parser.add_argument("--host", help="address to listen on; PROOFBOX_HOST or 127.0.0.1 if not given")
    parser.add_argument("--port", type=_port, help="port to listen on; PROOFBOX_PORT or 8080 if not given")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from proofbox.service.app.config.check import refuse_mistakes  # noqa: PLC0415 - loaded by this command only
    from proofbox.service.app.logs import configure_logs  # noqa: PLC0415
    from proofbox.service.app.serving import serve  # noqa: PLC0415
    from proofbox.service.app.settings import Settings  # noqa: PLC0415

    if args.config is not None:
        os.environ["PROOFBOX_CONFIG"] = str(args.config)
    options = {name: value for name, value in (("host", args.host), ("port", args.port)) if value is not None}
    refuse_mistakes(os.environ, options)
    settings = Settings(**options)
    configure_logs(settings)
    serve(settings)
    return 0


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:  # noqa: PLR2004 - the largest port
        raise argparse.ArgumentTypeError(f"'{text}' is not a port (0 to 65535)")
    return int(text)
