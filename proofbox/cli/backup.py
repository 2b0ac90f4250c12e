"""``proofbox backup`` and ``proofbox restore``: the data of a service in one file, also while it runs."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

_ELSEWHERE = (
    "backup: the {what} on a server, so this command cannot make one file of the data; use pg_dump for PostgreSQL "
    "first, then copy the bucket or rely on its versioning (docs/backup.md), and run 'proofbox backup --check'"
)


def add_parser(commands: Any) -> None:
    """Add both commands to those of the program."""
    backup = commands.add_parser(
        "backup", help="write records and files of the data folder into one file; the service may run meanwhile"
    )
    what = backup.add_mutually_exclusive_group(required=True)
    what.add_argument("file", type=Path, nargs="?", help="the file to write, a tar archive; it may not exist")
    what.add_argument(
        "--check",
        action="store_true",
        help="write nothing; check that the bytes of all files are there and unchanged, on every kind of store",
    )
    restore = commands.add_parser("restore", help="make a data folder from a backup; the folder has to be empty")
    restore.add_argument("file", type=Path, help="the file that 'proofbox backup' wrote")


def run(arguments: argparse.Namespace) -> int:
    """Run one of the two commands; 0 if all is well, 1 if files are missing or damaged.

    Raises:
        ServiceError: it could not be done; the message has the remedy.
    """
    if arguments.command == "restore":
        return _restore(arguments.file)
    return asyncio.run(_check()) if arguments.check else _backup(arguments.file)


def _backup(file: Path) -> int:
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
    end = Backup(settings.data_dir, heads, release(), _progress).write(file)
    _progress(f"{file}: {end.blobs} files of {end.blob_bytes} bytes, with the database")
    for sha256 in end.damaged:
        _progress(f"missing or damaged in the data folder, and not in the backup: {sha256}")
    return 1 if end.damaged else 0


def _restore(file: Path) -> int:
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.errors import StoreFailedError  # noqa: PLC0415
    from proofbox.service.storage.restoration import restore  # noqa: PLC0415

    settings = Settings()
    if settings.database_url.get_secret_value() or settings.s3_bucket:
        raise StoreFailedError(
            "restore: a backup file is for a data folder; unset PROOFBOX_DATABASE_URL and PROOFBOX_S3_BUCKET, or "
            "restore server and bucket by their own tools (docs/backup.md)"
        )
    head, end = restore(file, settings.data_dir)
    _progress(
        f"restored {end.blobs} files and the database of {head.created} into {settings.data_dir}; the next start "
        "makes new keys for download links and audit heads"
    )
    for sha256 in end.damaged:
        _progress(f"not in the backup: {sha256}")
    return 1 if end.damaged else 0


async def _check() -> int:
    from proofbox.service.app.blob_stores import build_blob_store  # noqa: PLC0415
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.storage.byte_check import check_bytes  # noqa: PLC0415
    from proofbox.service.storage.database import Database  # noqa: PLC0415

    settings = Settings()
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open_beside()
    try:
        check = await check_bytes(database, build_blob_store(settings), _progress)
    finally:
        await database.close()
    for sha256 in check.damaged:
        _progress(f"missing or damaged: {sha256}")
    sys.stdout.write(
        f"{check.checked} files of {check.size_bytes} bytes, {len(check.damaged)} missing or damaged\n"
    )
    return 1 if check.damaged else 0


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")
