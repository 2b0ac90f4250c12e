"""``proofbox render``: a Markdown, HTML or CSV file as PDF, PNG, DOCX, PPTX or XLSX."""

import argparse
import contextlib
import re
import time
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofbox.cli.connection import connect
from proofbox.cli.document_files import referenced_files
from proofbox.cli.options import parse_json_object, service_options
from proofbox.cli.shared.exit_codes import CommandError, usage_error
from proofbox.cli.shared.inputs import StandardInput, read_bytes, read_text
from proofbox.cli.shared.live_calls import FIRST_TURN, call_names, live_call
from proofbox.cli.shared.outcomes import Outcome, output_folder, produced_files, save_file
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from proofbox.client import Client

_FORMATS = ("pdf", "docx", "pptx", "png", "xlsx")
_POLL_S = 0.5
_PARTIAL = re.compile(r"\.proofbox-[0-9a-f]+\.part")  # as the client names an unfinished download
_NEARBY_BYTES_MAX = 64 * 1024 * 1024


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "render",
        parents=[service_options()],
        help="render a Markdown or HTML file to PDF, PNG, DOCX, PPTX or XLSX",
        description="Render a document. The extension of OUT is the format. Pictures and style sheets that the "
        "document refers to are sent with it, if they are in its folder or below, and not hidden.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("source", metavar="IN", help="the document: .md, .html, .csv; - reads Markdown from stdin")
    parser.add_argument("out", type=Path, metavar="OUT", help="the file to write")
    parser.add_argument("--title", default="", help="the document's title")
    parser.add_argument("--theme", default="plain", help="plain, dark, brand, paper, or a theme file beside IN")
    parser.add_argument(
        "--params",
        type=parse_json_object,
        default={},
        metavar="JSON",
        help="the tool's other parameters, such as '{\"toc\": true}'",
    )
    parser.add_argument("--watch", action="store_true", help="render again whenever the document changes")
    parser.add_argument("-c", "--conversation", metavar="ID", help="the conversation that stores the file")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    terminal = Terminal.of(args)
    suffix = args.out.suffix.lower().removeprefix(".")
    if suffix not in _FORMATS:
        known = ", ".join(f".{output}" for output in _FORMATS)
        raise usage_error(f"{args.out}: the extension is not a format that can be rendered ({known})")
    source = None if args.source == "-" else Path(args.source)
    if source is None and args.watch:
        raise usage_error("stdin cannot be watched", field="--watch")
    text = read_text(args.source, "IN", StandardInput())
    is_stored = args.conversation is not None
    with output_folder(args.out.parent, "OUT"), connect(args, terminal, is_stored=is_stored) as client:
        while True:
            seen = None if source is None else file_times(source, args.out)
            status = _render(client, args, terminal, text, suffix)
            if not args.watch or source is None:
                return status
            text = _changed_text(source, args.out, seen)


def _render(client: "Client", args: argparse.Namespace, terminal: Terminal, text: str, suffix: str) -> int:
    source = None if args.source == "-" else Path(args.source)
    params = {
        "path": args.out.name,
        "content": text,
        "format": _source_format(source, suffix),
        "title": args.title,
        "theme": args.theme,
        **args.params,
    }
    names = call_names(args.conversation)
    assets = [] if source is None else nearby_assets(source, text, {**params, "content": ""})
    with live_call(client, names, terminal) as show:
        response = client.call(
            f"rendering_tools.write_{suffix}",
            params,
            conversation=names.conversation,
            turn=names.turn,
            call_id=names.call_id,
            assets=assets,
            on_event=show,
        )
    outcome = Outcome(names, response)
    if response.ok:
        for file in produced_files(client, outcome)[:1]:
            save_file(file, args.out)
            outcome.saved[file.path] = args.out
    outcome.print(terminal)
    return outcome.exit_code


def _source_format(source: Path | None, output: str) -> str:
    """What a file is by its extension; a workbook may be made of CSV."""
    extension = "" if source is None else source.suffix.lower()
    if output == "xlsx" and extension in {".csv", ".tsv"}:
        return "csv"
    return "html" if extension in {".html", ".htm"} else "markdown"


def file_times(source: Path, out: Path) -> dict[str, float]:
    """When a document and the files beside it were changed, by their names.

    Args:
        source: the document.
        out: the file that the command itself writes, which does not count; nor does its unfinished form.
    """
    written = out.resolve()
    times = {}
    for path in source.parent.iterdir():
        if _PARTIAL.fullmatch(path.name):
            continue
        with contextlib.suppress(OSError):  # removed meanwhile, or a broken link
            # A folder changes as well when the command writes into it.
            if path.resolve() != written and path.is_file():
                times[path.name] = path.stat().st_mtime
    return times


def _changed_text(source: Path, out: Path, seen: dict[str, float] | None) -> str:
    """Wait for a change of the file or of a file beside it; the text then."""
    while True:
        time.sleep(_POLL_S)
        if file_times(source, out) != seen:
            with contextlib.suppress(CommandError):  # an editor replaces the file
                return read_text(str(source), "IN", StandardInput())


def nearby_assets(source: Path, text: str, params: Mapping[str, Any]) -> list[dict[str, str]]:
    """The files below a document's folder that it refers to, as assets of the call.

    Args:
        source: the document.
        text: its content.
        params: the parameters of the call.

    Raises:
        CommandError: a file cannot be read, or all of them are too large for one request.
    """
    assets, total = [], 0
    for rel, path in referenced_files(source, text, params).items():
        total += path.stat().st_size
        if total > _NEARBY_BYTES_MAX:
            raise usage_error(
                f"{path}: the files that the document names are too large (limit {_NEARBY_BYTES_MAX:,} bytes)"
            )
        content = b64encode(read_bytes(path, "IN")).decode()
        assets.append({"physical_path": f"{FIRST_TURN}/files/{rel}", "base64": content})
    return assets
