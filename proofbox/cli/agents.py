"""``proofbox agents``: configurations of agents."""

import argparse
import json
from pathlib import Path
from typing import Any

from proofbox.cli.connection import connect
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import ExitCode, usage_error
from proofbox.cli.shared.inputs import StandardInput, file_error, read_text
from proofbox.cli.shared.terminal import Terminal


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser("agents", help="import configurations of agents")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    importing = actions.add_parser(
        "import",
        parents=[service_options()],
        help="convert a configuration of version 1",
        description="Convert a configuration of version 1 and print what became of each tool; --json has the "
        "configuration too. Tools that need review are not saved.",
    )
    importing.set_defaults(run=_import)
    importing.add_argument("config", metavar="FILE", help="the configuration as JSON; - reads it from stdin")
    importing.add_argument("--save-as", metavar="AGENT", help="write it as the newest version of this agent")
    importing.add_argument("-o", "--out", type=Path, metavar="FILE", help="file for the configuration in version 2")


def _import(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    config = _read_config(args.config)
    with connect(args, terminal, is_stored=args.save_as is not None) as client:
        imported = client.import_agent(config, save_as=args.save_as)
    if args.out is not None:
        try:
            args.out.write_text(json.dumps(imported.config, indent=2, ensure_ascii=False) + "\n", "utf-8")
        except OSError as exc:
            raise file_error(args.out, exc, "--out") from exc
    if terminal.is_json:
        terminal.print_json(imported.model_dump(mode="json"))
        return ExitCode.OK
    changes = [f"{part.from_} → {part.to or 'nothing'}" for part in imported.report]
    names = [part.tool or part.from_ for part in imported.report]
    statuses = [part.status for part in imported.report]
    terminal.table(("part", "status", "change"), list(zip(names, statuses, changes, strict=True)))
    for part in imported.report:
        if part.message:
            terminal.print(f"{part.tool or part.from_}: {part.message}")
    if imported.saved is not None:
        terminal.note(f"saved agent {imported.saved.agent_id}, version {imported.saved.version}")
        for warning in imported.saved.warnings:
            terminal.note(f"warning {warning.code}: {warning.message}")
    return ExitCode.OK


def _read_config(name: str) -> dict[str, Any]:
    try:
        value = json.loads(read_text(name, "FILE", StandardInput()))
    except (ValueError, RecursionError) as exc:
        raise usage_error(f"{name}: not JSON: {exc}", field="FILE") from exc
    if not isinstance(value, dict):
        raise usage_error(f"{name}: not a JSON object", field="FILE", hint="give the configuration of an agent")
    return value
