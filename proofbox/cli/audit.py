"""``proofbox audit`` and ``proofbox rerun``: the audit lines of calls in the database of this machine."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofbox.service.app.settings import Settings


def add_parser(subparsers: Any) -> None:
    """Add the commands."""
    again = subparsers.add_parser("rerun", help="run a stored call again on the inputs that it had, and compare")
    again.set_defaults(run=_rerun)
    again.add_argument("call", help="the tool_call_id")
    again.add_argument("--conversation", help="its conversation; needed if several have a call of that id")
    again.add_argument("--json", action="store_true", help="print the report as one line of JSON")
    audit = subparsers.add_parser(
        "audit", help="read and check the audit lines of calls; the service may run meanwhile"
    )
    actions = audit.add_subparsers(dest="action", required=True)
    _add_verify(actions)
    export = actions.add_parser("export", help="print audit lines, one JSON object a line")
    export.set_defaults(run=_export)
    export.add_argument("--since", type=_moment, help="only calls that ended then or later, UTC")
    export.add_argument("--tenant", help="only this tenant's")
    export.add_argument("--project", help="only this project's")
    export.add_argument("--json", action="store_true", help="what it prints is JSON with or without it")
    export.add_argument("--heads", action="store_true", help="print the signed heads of these lines after them")
    rotate = actions.add_parser(
        "rotate-key", help="sign heads with another key from now on, which the old key signs"
    )
    rotate.set_defaults(run=_rotate_key)
    begin = actions.add_parser(
        "begin-anew",
        help="put a lost key and its heads aside, so that the next start makes others; not for a service that runs",
    )
    begin.set_defaults(run=_begin_anew)
    for action in (rotate, begin):
        action.add_argument("--json", action="store_true", help="print one JSON value")


def _add_verify(actions: Any) -> None:
    verify = actions.add_parser(
        "verify", help="check that no line was changed, taken out or put in, and that all signed heads fit"
    )
    verify.set_defaults(run=_verify)
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
    verify.add_argument("--json", action="store_true", help="print one JSON value")


def _settings(**fields: Any) -> "Settings":
    import logging  # noqa: PLC0415 - only this command needs the service

    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from proofbox.service.observability.log_format import configure  # noqa: PLC0415

    configure("text", logging.WARNING)
    return Settings(**fields)


def _rerun(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415

    from proofbox.cli.local import audit_actions  # noqa: PLC0415 - the whole service

    settings = _settings(pool_size=0)
    return asyncio.run(
        audit_actions.rerun(settings, tool_call_id=args.call, conversation_id=args.conversation, is_json=args.json)
    )


def _rotate_key(args: argparse.Namespace) -> int:
    from proofbox.cli.local import audit_actions  # noqa: PLC0415 - the whole service

    return audit_actions.rotate_key(_settings(), is_json=args.json)


def _begin_anew(args: argparse.Namespace) -> int:
    import asyncio  # noqa: PLC0415

    from proofbox.cli.local import audit_actions  # noqa: PLC0415 - the whole service

    return asyncio.run(audit_actions.begin_anew(_settings(), is_json=args.json))


def _export(args: argparse.Namespace) -> int:
    from proofbox.cli.local import audit_actions  # noqa: PLC0415 - the whole service

    return audit_actions.export(
        _settings(),
        since=args.since or "",
        tenant=args.tenant,
        project=args.project,
        heads=args.heads,
    )


def _verify(args: argparse.Namespace) -> int:
    from proofbox.cli.local import audit_actions  # noqa: PLC0415 - the whole service

    noted = audit_actions.Noted(args.expect, args.key, args.heads)
    return audit_actions.verify(_settings(), file=args.file, noted=noted, answers=args.answers, is_json=args.json)


def _moment(text: str) -> str:
    """A time as the stores write it: UTC, milliseconds, ``Z``."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError("not a time such as 2026-07-04 or 2026-07-04T13:18:00Z") from exc
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
