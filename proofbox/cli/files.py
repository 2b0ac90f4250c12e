"""``proofbox files``: the files of a conversation."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofbox.cli.connection import connect
from proofbox.cli.options import service_options
from proofbox.cli.shared.exit_codes import ExitCode, usage_error
from proofbox.cli.shared.inputs import STDIN, StandardInput, parse_inputs
from proofbox.cli.shared.live_calls import FIRST_TURN
from proofbox.cli.shared.outcomes import safe_name, save_file
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from proofbox.client import Client


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser("files", help="list, download, upload and delete the files of a conversation")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = _add(actions, "ls", "list the files of a conversation")
    listing.set_defaults(run=_list)
    get = _add(actions, "get", "download files")
    get.set_defaults(run=_get)
    get.add_argument("paths", nargs="+", metavar="PATH", help="turn_1/files/NAME, fi:turn_1.files/NAME, or NAME")
    get.add_argument("-o", "--out", metavar="DIR", default=".", help="folder to save in; - writes to stdout")
    put = _add(actions, "put", "upload files as attachments")
    put.set_defaults(run=_put)
    put.add_argument("sources", nargs="+", metavar="FILE", help="PATH, NAME=PATH, or NAME=- for stdin")
    put.add_argument("--turn", default=FIRST_TURN, metavar="ID", help="the turn that they belong to")
    remove = _add(actions, "rm", "delete files, with all their versions")
    remove.set_defaults(run=_remove)
    remove.add_argument("paths", nargs="+", metavar="PATH", help="turn_1/files/NAME, fi:turn_1.files/NAME, or NAME")


def _add(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, parents=[service_options()], help=text)
    parser.description = f"{text[0].upper()}{text[1:]}."
    parser.add_argument("conversation", metavar="CONVERSATION", help="the id of the conversation")
    return parser


def _list(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    with connect(args, terminal) as client:
        files = list(client.files(args.conversation))
    if terminal.is_json:
        fields = ("path", "name", "size_bytes", "media_type", "sha256", "turn", "created")
        terminal.print_json({"files": [{name: getattr(file, name) for name in fields} for file in files]})
    else:
        rows = [(file.path, f"{file.size_bytes:,}", file.media_type, file.created) for file in files]
        terminal.table(("path", "bytes", "type", "created"), rows)
    return ExitCode.OK


def _get(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    is_stdout = args.out == STDIN
    if is_stdout and (len(args.paths) > 1 or terminal.is_json):
        raise usage_error("stdout takes one file, and no --json", field="--out", hint="name a folder")
    with connect(args, terminal) as client:
        paths = [_resolve(client, args.conversation, path) for path in args.paths]
        if is_stdout:
            for piece in client.download(args.conversation, paths[0]).stream():
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            return ExitCode.OK
        saved = []
        for path, target in _targets(paths, Path(args.out)).items():
            save_file(client.download(args.conversation, path), target)
            saved.append({"path": path, "saved_as": str(target)})
            terminal.note(f"saved {target}")
    if terminal.is_json:
        terminal.print_json({"files": saved})
    return ExitCode.OK


def _targets(paths: list[str], folder: Path) -> dict[str, Path]:
    """Where each file is saved.

    Raises:
        CommandError: two of them have one name, so that the second would replace the first.
    """
    targets: dict[str, Path] = {}
    for path in paths:
        target = folder / safe_name(path)
        other = next((known for known, taken in targets.items() if taken == target and known != path), None)
        if other is not None:
            raise usage_error(
                f"{other} and {path} would both be saved as {target}",
                field="PATH",
                hint="download them one after the other, with another --out",
            )
        targets[path] = target
    return targets


def _put(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    files = parse_inputs(args.sources, StandardInput(), "FILE")
    uploaded = []
    with connect(args, terminal) as client:
        for name, source in files.items():
            attachment = client.upload(args.conversation, name, source, turn=args.turn)
            uploaded.append(attachment.model_dump(mode="json"))
            if not terminal.is_json:
                terminal.print(attachment.physical_path)
    if terminal.is_json:
        terminal.print_json({"files": uploaded})
    return ExitCode.OK


def _remove(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    removed = []
    with connect(args, terminal) as client:
        for path in [_resolve(client, args.conversation, path) for path in args.paths]:
            client.delete_file(args.conversation, path)
            removed.append(path)
            terminal.note(f"deleted {path}")
    if terminal.is_json:
        terminal.print_json({"deleted": removed})
    return ExitCode.OK


def _resolve(client: "Client", conversation: str, text: str) -> str:
    """The logical path of a file; a bare name means the newest file of that name.

    Raises:
        CommandError: the path has no valid form, or no file has the name.
    """
    from proofbox.contracts.logical_paths import parse  # noqa: PLC0415 - the client loads it too
    from proofbox.contracts.paths import FilePath, UnsafePathError  # noqa: PLC0415

    try:
        if text.startswith("fi:") or (text.startswith("turn_") and "/" in text):
            path = FilePath.from_logical(text) if text.startswith("fi:") else FilePath.from_physical(text)
            return path.logical
        if text[2:3] == ":":
            return str(parse(text))
    except UnsafePathError as exc:
        raise usage_error(str(exc), field="PATH") from exc
    named = [
        file.path for file in client.files(conversation) if file.name == text or file.path.endswith(f"/{text}")
    ]
    if not named:
        raise usage_error(f"no file is called '{text}'", field="PATH", hint=f"proofbox files ls {conversation}")
    return str(named[-1])
