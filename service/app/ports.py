"""The address of a process: whether it can listen there, before anything expensive is started, and its file."""

import errno
import os
import socket
from pathlib import Path
from typing import Any

from proofbox.service.errors import ServiceError

_REASONS = {
    errno.EADDRINUSE: "another program listens there; choose another port with --port or PROOFBOX_PORT",
    errno.EACCES: "this user may not listen there; choose a port from 1024 on with --port or PROOFBOX_PORT",
    errno.EADDRNOTAVAIL: "this machine does not have the address; choose another with --host or PROOFBOX_HOST",
}


_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - of a listener, which others chose


class PortUnavailableError(ServiceError):
    """The service cannot listen on its address and port."""


class AddressFileError(ServiceError):
    """The file of the process's address cannot be written."""


def check_port(host: str, port: int) -> None:
    """Bind the port for a moment.

    Raises:
        PortUnavailableError: it cannot be bound; the message has the reason and the remedy.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in found:
            _bind(family, address)
    except OSError as exc:
        reason = _REASONS.get(exc.errno or 0, f"{exc.strerror or exc}; choose another with --host and --port")
        raise PortUnavailableError(f"cannot listen on {host}, port {port}: {reason}") from exc


def _bind(family: int, address: tuple[Any, ...]) -> None:
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)


def format_url(host: str, port: int) -> str:
    """The URL of a listener.

    Args:
        host: its name or address, IPv6 without brackets.
        port: its port.
    """
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def write_address(path: Path, host: str, port: int) -> None:
    """Write the URL at which this machine reaches a listener; a reader sees all of it, or the one before.

    Args:
        path: the file.
        host: the address that the process listens on; all addresses become loopback.
        port: its port.

    Raises:
        AddressFileError: the file cannot be written; the message has the reason and the remedy.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(f"{format_url(_UNSPECIFIED.get(host, host), port)}\n", encoding="ascii")
        fresh.replace(path)
    except OSError as exc:
        raise AddressFileError(
            f"address_file: {path} cannot be written ({exc.strerror or exc}); name a file in a folder that this "
            "user can write to, with PROOFBOX_ADDRESS_FILE, or unset it"
        ) from exc
