"""``proofbox image``: build the sandbox image, add packages to it, show it."""

import argparse
import json
import subprocess
import sys
from typing import Any, TextIO


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "image",
        help="build the sandbox image, add packages to it, show it",
        description="The image that every call runs in. Its name has a hash of its files, so that services of "
        "several versions can use one engine. Its build needs the docker command and takes a few minutes; as root "
        "on Debian or Ubuntu it installs an engine if there is none.",
    )
    parser.set_defaults(run=run)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="build what is missing; returns at once if nothing changed")
    build.add_argument("--fresh", action="store_true", help="build all of it again, with Debian's updates")
    build.add_argument("--json", action="store_true", help="print one JSON value; the progress goes to stderr")
    variant = actions.add_parser("add", help="build an image with more packages, for PROOFBOX_IMAGE")
    variant.add_argument("tag", help="its tag: it is called proofbox-sandbox:TAG")
    variant.add_argument(
        "--pip", nargs="+", default=[], metavar="NAME", help="Python packages, with version or not"
    )
    variant.add_argument("--apt", nargs="+", default=[], metavar="NAME", help="Debian packages")
    show = actions.add_parser("show", help="print the image in use, and whether the engine has it")
    show.add_argument("--json", action="store_true", help="print one JSON value")
    name = actions.add_parser("name", help="print the name of the image in use")
    name.add_argument("--json", action="store_true", help="print one JSON value")
    actions.add_parser("clean", help="remove all images of these commands from the engine")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    from proofbox.service.app.settings import Settings  # noqa: PLC0415 - the service is loaded by this command only

    if args.action == "build":
        return _build(Settings(), is_fresh=args.fresh, is_json=args.json)
    if args.action == "clean":
        return _run_script("build.sh", "--clean")
    if args.action == "add":
        packages = {"--pip": " ".join(args.pip), "--apt": " ".join(args.apt)}
        options = [text for option, names in packages.items() if names for text in (option, names)]
        return _run_script("variant.sh", args.tag, *options)
    if args.action == "name":
        image = Settings().sandbox_image
        sys.stdout.write(f"{json.dumps({'image': image}) if args.json else image}\n")
        return 0
    return _show(Settings(), is_json=args.json)


def _build(settings: Any, *, is_fresh: bool, is_json: bool) -> int:
    status = _run_script("build.sh", *(["--fresh"] if is_fresh else []), stdout=sys.stderr if is_json else None)
    if is_json and status == 0:
        sys.stdout.write(json.dumps({"image": settings.sandbox_image}) + "\n")
    return status


def _run_script(name: str, *arguments: str, stdout: TextIO | None = None) -> int:
    from proofbox.service.app.own_image import FOLDER  # noqa: PLC0415 - as above

    return subprocess.run(["bash", FOLDER / name, *arguments], check=False, stdout=stdout).returncode  # noqa: S603, S607 - ours


def _show(settings: Any, *, is_json: bool) -> int:
    from proofbox.cli.checks.engine_facts import find_image, open_engine  # noqa: PLC0415 - as above

    with open_engine(settings) as engine:
        image = find_image(engine, settings)
    if is_json:
        sys.stdout.write(json.dumps(image.as_json()) + "\n")
    else:
        sys.stdout.write(f"{image.sentence}\n")
    return 0 if image.is_present else 1
