"""``proofbox doctor``: check this machine, the settings and the engine, and run one sandbox."""

import argparse
import os
import sys
from typing import Any

from proofbox.cli.connection import note_local_store
from proofbox.cli.shared.terminal import to_json

_COLOURS = {"ok": "32", "warn": "33", "fail": "31"}
_NAME_COLUMNS = 12


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "doctor",
        help="check this machine, the settings and the engine, and run one sandbox",
        description="Each line is a check: ok, warn or fail, and what to do. Exit status 1 if one failed.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    parser.add_argument("--no-trial", action="store_true", help="do not run a sandbox")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from proofbox.cli.checks.machine import check_all  # noqa: PLC0415 - the service is loaded by this command only
    from proofbox.service.api.app import release  # noqa: PLC0415

    note_local_store("this machine and its settings")
    findings = []
    for finding in check_all(has_trial=not args.no_trial):
        findings.append(finding)
        if not args.json:
            _print(finding)
    has_failed = any(finding.status == "fail" for finding in findings)
    if args.json:
        value = {"ok": not has_failed, "version": release(), "checks": [finding.as_json() for finding in findings]}
        sys.stdout.write(to_json(value) + "\n")
    return 1 if has_failed else 0


def _print(finding: Any) -> None:
    status = f"{finding.status:<4}"
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        status = f"\x1b[{_COLOURS[finding.status]}m{status}\x1b[0m"
    sys.stdout.write(f"{status}  {finding.name:<{_NAME_COLUMNS}}{finding.detail}\n")
    if finding.remedy:
        sys.stdout.write(f"{'':{_NAME_COLUMNS + 6}}→ {finding.remedy}\n")
    sys.stdout.flush()
