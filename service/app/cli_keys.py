"""``proofbox keys …``: making, listing, renewing and ending API keys, also while the service runs."""

import argparse
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from proofbox.service.access.api_keys import (
    USUAL_PERMISSIONS,
    ApiKey,
    Permission,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.quotas import ALLOWANCE_NAMES
from proofbox.service.app.settings import Settings
from proofbox.service.storage.api_keys import SqlApiKeys
from proofbox.service.storage.database import Database
from proofbox.service.storage.link_keys import LinkKeyFile

_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,100}")
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LIMIT_MAX = 2**53


def add_parser(commands: Any) -> None:
    """Add the command to those of the program."""
    keys = commands.add_parser("keys", help="make, list, rotate and revoke API keys")
    actions = keys.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make a key and print its secret, once")
    create.add_argument("--name", required=True, type=_name, help="what the key is for")
    create.add_argument("--tenant", type=_name, help="tenant that it speaks for; PROOFBOX_TENANT if not given")
    create.add_argument("--project", type=_name, help="project; PROOFBOX_PROJECT if not given")
    create.add_argument(
        "--any-project", action="store_true", help="any project: requests name it by Proofbox-Project"
    )
    create.add_argument("--user-type", type=_name, help="user type; PROOFBOX_USER_TYPE if not given")
    create.add_argument("--user", type=_name, help="user; PROOFBOX_USER if not given")
    create.add_argument(
        "--scopes",
        type=_permissions,
        default=USUAL_PERMISSIONS,
        help=f"what it may do, separated by commas: {', '.join(Permission)}; all but metrics:read if not given",
    )
    create.add_argument("--expires", type=_duration, help="after which time it ends: 30d, 12h; never if not given")
    create.add_argument(
        "--limit",
        action="append",
        default=[],
        type=_limit,
        metavar="NAME=NUMBER",
        help=f"a limit of its own, 0 for none: {', '.join(ALLOWANCE_NAMES)}",
    )
    listing = actions.add_parser("list", help="list all keys, without their secrets")
    rotate = actions.add_parser("rotate", help="give a key another secret and print it, once")
    rotate.add_argument("key_id", help="the key, by its id")
    rotate.add_argument(
        "--overlap", type=_duration, default=timedelta(days=1), help="how long the old secret still works: 1d, 0s"
    )
    revoke = actions.add_parser("revoke", help="end a key; within a second, and for good")
    revoke.add_argument("key_id", help="the key, by its id")
    for action in (create, listing, rotate, revoke):
        action.add_argument("--json", action="store_true", help="print JSON")

    links = commands.add_parser("links", help="rotate the key that signs download links of the folder store")
    links.add_argument("action", choices=["rotate"], help="sign with another key from now on")
    links.add_argument("--at-once", action="store_true", help="let no link work that was made before")


def rotate_links(settings: Settings, *, at_once: bool) -> int:
    """Sign links with another key from now on.

    Raises:
        StoreFailedError: the file of keys cannot be read or made.
    """
    key_id = LinkKeyFile(settings.data_dir).rotate(settings.link_s, at_once=at_once)
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
        expires=None if arguments.expires is None else _utc(now + arguments.expires),
    )
    return key, secret


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


# ---- what is written behind an argument ----


def _name(text: str) -> str:
    if _NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError("use 1 to 100 characters of A-Z a-z 0-9 _ . @ -")
    return text


def _permissions(text: str) -> frozenset[Permission]:
    try:
        return frozenset(Permission(name.strip()) for name in text.split(","))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{exc}; there are {', '.join(Permission)}") from exc


def _duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError("write a number and s, m, h or d: 30d, 12h")
    return timedelta(seconds=int(match[1]) * _UNITS_S[match[2]])


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in ALLOWANCE_NAMES or not (number.isascii() and number.isdigit()) or int(number) > _LIMIT_MAX:
        raise argparse.ArgumentTypeError(f"write NAME=NUMBER, a name of {', '.join(ALLOWANCE_NAMES)}")
    return name, int(number)
