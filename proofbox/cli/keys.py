"""``proofbox keys`` and ``links``: API keys, and the key that signs download links, in the local store."""

import argparse
import re
from datetime import timedelta
from typing import Any

from proofbox.cli.connection import note_local_store, store_of
from proofbox.service.access.api_keys import USUAL_PERMISSIONS, Permission

LIMIT_NAMES = (
    "requests_per_minute",
    "calls_per_minute",
    "upload_bytes_per_minute",
    "running_calls",
    "queued_calls",
    "stored_bytes",
    "package_count",
    "package_bytes",
    "package_install_s",
)
"""As `proofbox.service.access.quotas` has them, whose import takes too long for ``--help``."""
_NAME = re.compile(r"[A-Za-z0-9_.@-]{1,100}")
_DURATION = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LIMIT_MAX = 2**53
_UNUSUAL = ", ".join(each for each in Permission if each not in USUAL_PERMISSIONS)
NONE = "none"
"""In place of a host of ``--network``, or of a name of ``--package``."""


def add_parser(subparsers: Any) -> None:
    """Add the commands."""
    keys = subparsers.add_parser("keys", help="make, list, rotate and revoke API keys")
    actions = keys.add_subparsers(dest="action", required=True)
    create = actions.add_parser("create", help="make a key and print its secret, once")
    _add_create_arguments(create)
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
    keys.set_defaults(run=_run_keys)

    links = subparsers.add_parser("links", help="rotate the key that signs download links of the folder store")
    links.add_argument("action", choices=["rotate"], help="sign with another key from now on")
    links.add_argument("--at-once", action="store_true", help="let no link work that was made before")
    links.add_argument("--json", action="store_true", help="print JSON")
    links.set_defaults(run=_rotate_links)


def _add_create_arguments(create: argparse.ArgumentParser) -> None:
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
        help=f"what it may do, separated by commas: {', '.join(Permission)}; if not given, all but {_UNUSUAL}",
    )
    create.add_argument("--expires", type=_duration, help="after which time it ends: 30d, 12h; never if not given")
    create.add_argument(
        "--limit",
        action="append",
        default=[],
        type=_limit,
        metavar="NAME=NUMBER",
        help=f"a limit of its own, 0 for none: {', '.join(LIMIT_NAMES)}; of packages at most the operator's",
    )
    create.add_argument(
        "--network",
        action="append",
        type=_network,
        metavar="HOST:PORT",
        help="a host that its programs may connect to, of those of PROOFBOX_SANDBOX_NETWORK; none: no host; "
        "all of those if not given",
    )
    create.add_argument(
        "--package",
        action="append",
        type=_package,
        metavar="NAME",
        help="a package that its calls may ask for, of those of PROOFBOX_PACKAGE_NAMES; none: no package; "
        "all of those if not given",
    )


def _run_keys(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415

    from proofbox.cli.local import key_actions  # noqa: PLC0415 - the stores of the service
    from proofbox.service.app.settings import Settings  # noqa: PLC0415

    settings = Settings()
    note_local_store(store_of(settings.data_dir, settings.database_url.get_secret_value()))
    return asyncio.run(key_actions.run(settings, args))


def _rotate_links(args: argparse.Namespace) -> int:
    from proofbox.cli.local import key_actions  # noqa: PLC0415 - the stores of the service
    from proofbox.service.app.settings import Settings  # noqa: PLC0415

    settings = Settings()
    note_local_store(store_of(settings.data_dir, ""))
    return key_actions.rotate_links(settings, at_once=args.at_once, is_json=args.json)


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


def _network(text: str) -> str:
    from proofbox.contracts.network import Endpoint  # noqa: PLC0415 - pydantic takes too long for --help

    try:
        return NONE if text == NONE else str(Endpoint.parse(text))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _package(text: str) -> str:
    from proofbox.contracts.packages.requirements import is_name, normal_name  # noqa: PLC0415 - the same

    if not is_name(text):
        raise argparse.ArgumentTypeError(
            f"{text!a} is not the name of a package; write it without versions, extras"
        )
    return normal_name(text)


def _limit(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if name not in LIMIT_NAMES or not (number.isascii() and number.isdigit()) or int(number) > _LIMIT_MAX:
        raise argparse.ArgumentTypeError(f"write NAME=NUMBER, a name of {', '.join(LIMIT_NAMES)}")
    return name, int(number)
