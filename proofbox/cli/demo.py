"""``proofbox demo``: two turns of an agent on real data."""

import argparse
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser("demo", help="run two turns of an agent on real data, on this machine")
    parser.set_defaults(run=run)
    parser.add_argument("--out", type=Path, default=Path("demo-out"), metavar="DIR", help="folder for the files")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    import asyncio  # noqa: PLC0415 - the whole service
    import logging  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    from proofbox.cli.local.demo_calls import demo  # noqa: PLC0415
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.observability.log_format import configure  # noqa: PLC0415

    configure("text", logging.WARNING)
    # A store of its own, so that a service that runs on the same machine is not disturbed.
    with tempfile.TemporaryDirectory(prefix="proofbox-") as folder:
        settings = Settings.of_local_command(data_dir=Path(folder))
        return asyncio.run(demo(settings, args.out))
