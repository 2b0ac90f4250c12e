"""Which service a command uses: one at a URL, or one that this process runs on a private store."""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from proofbox.cli.shared.exit_codes import CommandError, usage_error
from proofbox.cli.shared.profiles import DEFAULT, load_profiles
from proofbox.cli.shared.terminal import Terminal

if TYPE_CHECKING:
    from proofbox.client import Client

URL_VARIABLE = "PROOFBOX_URL"
KEY_VARIABLE = "PROOFBOX_API_KEY"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True, slots=True)
class Target:
    """A service that a command uses.

    Attributes:
        url: its URL; None: this machine's sandbox engine, with a private store.
        api_key: the key for it.
        origin: where the URL comes from, for people.
    """

    url: str | None
    api_key: str | None = field(default=None, repr=False)
    origin: str = ""


def resolve_target(args: argparse.Namespace) -> Target:
    """The service of a command: by its options, else PROOFBOX_URL, else the current profile; else local.

    Raises:
        CommandError: the options contradict each other, or the profile or URL is wrong.
    """
    if args.local:
        if args.url or args.profile:
            raise usage_error("--local excludes --url and --profile", field="--local", hint="give one of them")
        return Target(None, origin="--local")
    saved = load_profiles()
    key = os.environ.get(KEY_VARIABLE) or None
    if args.url and args.profile:
        raise usage_error("--url and --profile exclude each other", field="--url", hint="give one of them")
    if args.url or (not args.profile and os.environ.get(URL_VARIABLE)):
        origin = "--url" if args.url else URL_VARIABLE
        url = check_url(args.url or os.environ[URL_VARIABLE], origin)
        return Target(url, key or saved.key_for(url), origin)
    name = args.profile or saved.current
    profile = saved.profiles.get(name)
    if profile is None:
        if args.profile:
            known = ", ".join(saved.profiles) or "none"
            raise usage_error(
                f"there is no profile '{name}' (saved: {known})",
                field="--profile",
                hint=f"proofbox login URL --profile {name}",
            )
        return Target(None, origin="no URL is known")
    saved_key = profile.api_key
    # A profile that was named is used with its key: the variable may be for another service.
    chosen = (saved_key or key) if args.profile else (key or saved_key)
    return Target(profile.url, chosen, f"profile {name}" if name != DEFAULT else "proofbox login")


def note_local_store(place: str) -> None:
    """Name on stderr the place that a command of this machine uses, if a service is known that it does not use.

    Args:
        place: what it uses, such as its store.
    """
    known = os.environ.get(URL_VARIABLE) and f"the service at {URL_VARIABLE}"
    if not known:
        with contextlib.suppress(CommandError):  # not needed here
            known = "the service of 'proofbox login'" if load_profiles().profiles else ""
    if known:
        sys.stderr.write(f"proofbox: this command uses {place}, not {known}\n")


def store_of(data_dir: Path, database_url: str) -> str:
    """The store of a service of this machine, without the password of its database."""
    if not database_url:
        return f"the store {data_dir.resolve()}"
    parts = urlsplit(database_url)
    return f"the database {parts.path.lstrip('/')} at {parts.hostname or 'this machine'}"


def check_url(text: str, field: str) -> str:
    """The URL of a service, without a slash at its end.

    Raises:
        CommandError: it is not an HTTP URL, or has a key in it.
    """
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        parts, has_host = None, False
    if parts is None or parts.scheme not in {"http", "https"} or not has_host or parts.query or parts.fragment:
        raise usage_error(
            f"'{text}' is not the URL of a service", field=field, hint="such as http://127.0.0.1:8080"
        )
    if parts.username is not None:
        raise usage_error("the URL has a user name or key in it", field=field, hint=f"use {KEY_VARIABLE}")
    return text.rstrip("/")


@contextlib.contextmanager
def connect(args: argparse.Namespace, terminal: Terminal, *, is_stored: bool = True) -> Iterator["Client"]:
    """A client of the service that the options name.

    Args:
        args: the options.
        terminal: where the service in use is named.
        is_stored: without a URL, whether the private store outlives the command.

    Raises:
        CommandError: the options are wrong.
        ServiceError: there is no URL, and the sandbox engine cannot be used.
    """
    target = resolve_target(args)
    with contextlib.ExitStack() as stack:
        if target.url is not None:
            terminal.note(f"proofbox: service {target.url} ({target.origin})", "dim")
            if target.api_key and _is_readable_on_the_way(target.url):
                terminal.note("proofbox: the API key is sent unencrypted; use an https URL")
            url, key = target.url, target.api_key
        else:
            where = local_store() if is_stored else stack.enter_context(temporary_store())
            store = str(where) if is_stored else "a temporary store"
            terminal.note(f"proofbox: local sandbox, {store} ({target.origin})", "dim")
            with terminal.progress("starting the sandbox engine"):
                from proofbox.cli.local_service import run_local_service  # noqa: PLC0415 - the whole service

                url, key = stack.enter_context(run_local_service(where, is_single_call=True))
        from proofbox.client import Client  # noqa: PLC0415 - takes longer than all else here

        yield stack.enter_context(Client(url, key))


def local_store() -> Path:
    """The private store of local commands that name a conversation (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(base) if base.startswith("/") else Path.home() / ".local" / "share"
    path = folder / "proofbox" / "local"
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def temporary_store() -> Iterator[Path]:
    """A store that is removed when the block ends."""
    import tempfile  # noqa: PLC0415 - with all kinds of archives, which --help does not need

    with tempfile.TemporaryDirectory(prefix="proofbox-") as folder:
        yield Path(folder)


def _is_readable_on_the_way(url: str) -> bool:
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in _LOOPBACK
