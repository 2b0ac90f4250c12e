"""``proofbox login`` and ``logout``: save the URL and key of a service."""

import argparse
import getpass
import sys
from typing import Any

from proofbox.cli.connection import check_url
from proofbox.cli.options import output_options
from proofbox.cli.shared.exit_codes import CommandError, ExitCode, usage_error
from proofbox.cli.shared.profiles import DEFAULT, Profile, load_profiles, profiles_path, save_profiles
from proofbox.cli.shared.terminal import Terminal


def add_parser(subparsers: Any) -> None:
    """Add the commands."""
    login = subparsers.add_parser(
        "login",
        parents=[output_options()],
        help="save the URL and key of a service for all commands",
        description="Save the URL and key of a service in a file that only you can read. The key is asked for, or "
        "read from stdin; an empty one is for a service without keys. Without a URL, list what is saved.",
    )
    login.set_defaults(run=_login)
    login.add_argument(
        "login_url", nargs="?", metavar="URL", help="the service, such as https://proofbox.example.org"
    )
    login.add_argument(
        "--profile", default=None, metavar="NAME", help=f"name of what is saved (default: {DEFAULT})"
    )
    logout = subparsers.add_parser("logout", parents=[output_options()], help="remove a saved service and its key")
    logout.set_defaults(run=_logout)
    logout.add_argument("--profile", default=None, metavar="NAME", help="which one; the current one if not given")


def _login(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    if args.login_url is None:
        return _use_or_list(args, terminal)
    url = check_url(args.login_url, "URL")
    key = _read_key()
    _check(url, key)
    saved = load_profiles()
    name = args.profile or DEFAULT
    saved.profiles[name] = Profile(url, key or None)
    saved.current = name
    path = save_profiles(saved)
    if terminal.is_json:
        terminal.print_json({"profile": name, "url": url, "path": str(path)})
    else:
        terminal.note(f"saved profile {name} in {path}; commands use {url} now")
    return ExitCode.OK


def _use_or_list(args: argparse.Namespace, terminal: Terminal) -> int:
    """Make a saved profile the current one, or list all."""
    saved = load_profiles()
    if args.profile is not None:
        if args.profile not in saved.profiles:
            raise usage_error(
                f"there is no profile '{args.profile}'", field="--profile", hint="give a URL to save it"
            )
        saved.current = args.profile
        save_profiles(saved)
    rows = [
        {
            "profile": name,
            "url": profile.url,
            "has_key": profile.api_key is not None,
            "current": name == saved.current,
        }
        for name, profile in saved.profiles.items()
    ]
    if terminal.is_json:
        terminal.print_json({"profiles": rows, "path": str(profiles_path())})
    else:
        terminal.table(
            ("", "profile", "url", "key"),
            [
                ("*" if r["current"] else " ", r["profile"], r["url"], "saved" if r["has_key"] else "none")
                for r in rows
            ],
        )
    return ExitCode.OK


def _logout(args: argparse.Namespace) -> int:
    terminal = Terminal.of(args)
    saved = load_profiles()
    name = args.profile or saved.current
    if saved.profiles.pop(name, None) is None:
        raise usage_error(f"there is no profile '{name}'", field="--profile")
    if saved.current == name:
        saved.current = next(iter(saved.profiles), DEFAULT)
    save_profiles(saved)
    if terminal.is_json:
        terminal.print_json({"removed": name})
    else:
        terminal.note(f"removed profile {name}; the key itself works until it is revoked")
    return ExitCode.OK


def _read_key() -> str:
    """The key: asked for on a terminal, else the first line of stdin. It is no option: others see those."""
    if sys.stdin.isatty():
        return getpass.getpass("API key (empty for none): ").strip()
    return sys.stdin.readline().strip()


def _check(url: str, key: str) -> None:
    """Check that the service answers and knows the key.

    Raises:
        CommandError: it is not ready.
        ProofboxError: it cannot be reached, or refuses the key.
    """
    from proofbox.client import Client  # noqa: PLC0415 - takes longer than all else here

    with Client(url, key, retries=0) as client:
        health = client.health()
        if not health.is_ready:
            detail = health.problem.detail if health.problem is not None else "no reason given"
            raise CommandError(f"the service is not ready: {detail}", code="not_ready", retryable=True)
        client.tools()
