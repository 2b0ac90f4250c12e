"""``proofbox backup`` and ``proofbox restore``: the data of a service in one file, also while it runs."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofbox.cli.options import output_options
from proofbox.cli.shared.terminal import Terminal

_ELSEWHERE = (
    "backup: the {what} on a server, so this command cannot make one file of the data; use pg_dump for PostgreSQL "
    "first, then copy the bucket or rely on its versioning (docs/backup.md), and run 'proofbox backup --check'"
)


def add_parser(commands: Any) -> None:
    """Add both commands to those of the program."""
    backup = commands.add_parser(
        "backup",
        parents=[output_options()],
        help="write records and files of the data folder into one file; the service may run meanwhile",
    )
    what = backup.add_mutually_exclusive_group(required=True)
    what.add_argument("file", type=Path, nargs="?", help="the file to write, a tar archive; it may not exist")
    what.add_argument(
        "--check",
        action="store_true",
        help="write nothing; check that the bytes of all files are there and unchanged, on every kind of store",
    )
    restore = commands.add_parser(
        "restore",
        parents=[output_options()],
        help="make a data folder from a backup; the folder has to be empty",
    )
    restore.add_argument("file", type=Path, help="the file that 'proofbox backup' wrote")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the two commands; 0 if all is well, 1 if files are missing or damaged.

    Raises:
        ServiceError: it could not be done; the message has the remedy.
    """
    terminal = Terminal.of(arguments)
    if arguments.command == "restore":
        return _restore(arguments.file, terminal)
    if not arguments.check:
        return _backup(arguments.file, terminal)
    import asyncio  # noqa: PLC0415 - each command imports only what it needs

    return asyncio.run(_check(terminal))


def _backup(file: Path, terminal: Terminal) -> int:
    from proofbox.service.api.app import release  # noqa: PLC0415 - each command imports only what it needs
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.errors import StoreFailedError  # noqa: PLC0415
    from proofbox.service.storage.backup import Backup  # noqa: PLC0415

    settings = Settings()
    places = {"records are": settings.database_url.get_secret_value(), "files are": settings.s3_bucket}
    elsewhere = [what for what, value in places.items() if value]
    if elsewhere:
        raise StoreFailedError(_ELSEWHERE.format(what=" and the ".join(elsewhere)))
    _, heads = settings.audit_files
    end = Backup(settings.data_dir, heads, release(), terminal.note).write(file)
    terminal.note(f"{file}: {end.blobs} files of {end.blob_bytes} bytes, with the database")
    return _end(
        terminal,
        {"file": str(file), "files": end.blobs, "size_bytes": end.blob_bytes},
        end.damaged,
        "missing or damaged in the data folder, and not in the backup",
    )


def _restore(file: Path, terminal: Terminal) -> int:
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.errors import StoreFailedError  # noqa: PLC0415
    from proofbox.service.storage.restoration import count_agents, restore  # noqa: PLC0415

    settings = Settings()
    if settings.database_url.get_secret_value() or settings.s3_bucket:
        raise StoreFailedError(
            "restore: a backup file is for a data folder; unset PROOFBOX_DATABASE_URL and PROOFBOX_S3_BUCKET, or "
            "restore server and bucket by their own tools (docs/backup.md)"
        )
    head, end = restore(file, settings.data_dir)
    terminal.note(
        f"restored {end.blobs} files and the database of {head.created} into {settings.data_dir}; the next start "
        "makes new keys for download links and audit heads"
    )
    if agents := count_agents(settings.data_dir):
        terminal.print_error(
            f"warning: the webhook secrets of {agents} agents change, because gateway-key is in no backup; copy it "
            "from the old data folder before the first start, or give each receiver its new secret (docs/backup.md)"
        )
    found = {"data_dir": str(settings.data_dir), "created": head.created, "release": head.release}
    return _end(
        terminal, {**found, "files": end.blobs, "size_bytes": end.blob_bytes}, end.damaged, "not in the backup"
    )


async def _check(terminal: Terminal) -> int:
    from proofbox.service.app.blob_stores import build_blob_store  # noqa: PLC0415
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.storage.byte_check import check_bytes  # noqa: PLC0415
    from proofbox.service.storage.database import Database  # noqa: PLC0415

    settings = Settings()
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open_beside()
    try:
        check = await check_bytes(database, build_blob_store(settings), terminal.note)
    finally:
        await database.close()
    if not terminal.is_json:
        sizes = f"{check.checked} files of {check.size_bytes} bytes"
        terminal.print(f"{sizes}, {len(check.damaged)} missing or damaged")
    places = [
        {"sha256": damaged.sha256, "conversation_id": place.scope.conversation_id, "path": place.path}
        for damaged in check.damaged
        for place in damaged.places
    ]
    for place in places:
        terminal.note("missing or damaged: conversation {conversation_id}, {path}".format_map(place))
    found = {"files": check.checked, "size_bytes": check.size_bytes, "places": places}
    return _end(terminal, found, [damaged.sha256 for damaged in check.damaged], "missing or damaged")


def _end(terminal: Terminal, found: dict[str, Any], damaged: Sequence[str], what: str) -> int:
    """Print what was found; 1 if files are missing or damaged."""
    for sha256 in damaged:
        terminal.print_error(f"{what}: {sha256}")
    if terminal.is_json:
        terminal.print_json({**found, "damaged": list(damaged)})
    return 1 if damaged else 0
