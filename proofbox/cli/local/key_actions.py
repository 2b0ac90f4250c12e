"""Create, list, rotate and revoke API keys in the database, also while the service runs."""

import argparse
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from proofbox.cli.keys import NONE
from proofbox.service.access.api_keys import (
    ApiKey,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.app.settings import Settings
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.database import Database
from proofbox.service.storage.link_keys import LinkKeyFile


def rotate_links(settings: Settings, *, at_once: bool, is_json: bool = False) -> int:
    """Sign links with another key from now on.

    Raises:
        StoreFailedError: the file of keys cannot be read or made.
    """
    key_id = LinkKeyFile(settings.keys_folder).rotate(settings.link_s, at_once=at_once)
    if is_json:
        _print(json.dumps({"key": key_id, "older_links_work_s": 0 if at_once else settings.link_s}))
        return 0
    older = "do not work any more" if at_once else f"work until they expire, within {settings.link_s} s"
    sys.stderr.write(f"links are signed with the key {key_id} now; those that were made before {older}\n")
    return 0


async def run(settings: Settings, arguments: argparse.Namespace) -> int:
    """Run one action of keys.

    Raises:
        ServiceError: the database cannot be used, or the key does not exist.
    """
    async with _store(settings) as store:
        if arguments.action == "create":
            key, secret = _make_key(settings, arguments)
            await store.add(key)
            _show(key, arguments, secret=secret)
        elif arguments.action == "rotate":
            secret = new_secret(arguments.key_id)
            until = datetime.now(UTC) + arguments.overlap
            key = await store.rotate(arguments.key_id, secret_sha256(secret), _utc(until))
            _show(key, arguments, secret=secret)
        elif arguments.action == "revoke":
            _show(await store.revoke(arguments.key_id), arguments)
        else:
            _list(await store.all(), arguments)
    return 0


@asynccontextmanager
async def _store(settings: Settings) -> AsyncIterator[SqlApiKeys]:
    database = Database(settings.data_dir, settings.database_url, settings.database_timeout_s)
    await database.open_beside()
    try:
        yield SqlApiKeys(database)
    finally:
        await database.close()


def _make_key(settings: Settings, arguments: argparse.Namespace) -> tuple[ApiKey, str]:
    key_id, now = new_key_id(), datetime.now(UTC)
    secret = new_secret(key_id)
    key = ApiKey(
        id=key_id,
        name=arguments.name,
        tenant=arguments.tenant or settings.tenant,
        project=None if arguments.any_project else arguments.project or settings.project,
        user_type=arguments.user_type,
        user=arguments.user,
        permissions=arguments.scopes,
        sha256=secret_sha256(secret),
        created=_utc(now),
        limits=dict(arguments.limit),
        network=_list_of(arguments.network),
        packages=_list_of(arguments.package),
        expires=None if arguments.expires is None else _utc(now + arguments.expires),
    )
    return key, secret


def _list_of(given: list[str] | None) -> tuple[str, ...] | None:
    """What an option that may be repeated names; None if it is not given."""
    return None if given is None else tuple(sorted({*given} - {NONE}))


def _show(key: ApiKey, arguments: argparse.Namespace, secret: str | None = None) -> None:
    fields = _fields_of(key)
    if arguments.json:
        _print(json.dumps({**fields, "secret": secret} if secret else fields))
        return
    for name, value in fields.items():
        sys.stderr.write(f"{name:<10} {value}\n")
    if secret is not None:
        sys.stderr.write("The secret is shown only this once; the service stores its hash.\n")
        _print(secret)


def _list(keys: list[ApiKey], arguments: argparse.Namespace) -> None:
    rows_of_keys = [_fields_of(key) for key in keys]
    if arguments.json:
        _print(json.dumps(rows_of_keys))
        return
    columns = ("id", "name", "tenant", "project", "state", "expires", "used", "scopes")
    rows = [columns, *(tuple(str(key[name]) for name in columns) for key in rows_of_keys)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(columns))]
    for row in rows:
        _print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def _fields_of(key: ApiKey) -> dict[str, Any]:
    now = datetime.now(UTC)
    state = "revoked" if key.revoked else "works" if key.works_at(now) else "expired"
    old_works = state == "works" and key.old_until is not None and key.old_until > _utc(now)
    return {
        "id": key.id,
        "name": key.name,
        "tenant": key.tenant,
        "project": key.project if key.project is not None else "*",
        "user": key.user or "-",
        "scopes": ",".join(sorted(key.permissions)),
        "limits": dict(key.limits),
        "network": None if key.network is None else list(key.network),
        "packages": None if key.packages is None else list(key.packages),
        "state": state,
        "created": key.created,
        "expires": key.expires or "never",
        "revoked": key.revoked or "-",
        "used": key.used or "never",
        "old_secret": f"works until {key.old_until}" if old_works else "-",
    }


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
