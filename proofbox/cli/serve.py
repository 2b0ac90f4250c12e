"""``proofbox serve``: the HTTP API."""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "serve",
        help="serve the HTTP API",
        description="Serve the HTTP API until SIGINT or SIGTERM. The address is the most frequent setting; all "
        "others are environment variables PROOFBOX_…, listed with their defaults in docs/settings.md.",
        epilog="frequent settings: PROOFBOX_DATA_DIR (files and database), PROOFBOX_POOL_SIZE (containers that "
        "wait), PROOFBOX_AUTH (who needs a key), PROOFBOX_LOG_FORMAT=json",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--host", help="address to listen on; PROOFBOX_HOST or 127.0.0.1 if not given")
    parser.add_argument("--port", type=_port, help="port to listen on; PROOFBOX_PORT or 8080 if not given")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import logging  # noqa: PLC0415 - the service is loaded by this command only

    from proofbox.service.app.serving import serve  # noqa: PLC0415
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.observability.log_format import configure  # noqa: PLC0415

    configure("text", logging.INFO)
    given = {"host": args.host, "port": args.port}
    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    configure(settings.log_format)
    serve(settings)
    return 0


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:  # noqa: PLR2004 - the largest port
        raise argparse.ArgumentTypeError(f"'{text}' is not a port (0 to 65535)")
    return int(text)
