"""Whether the service can listen on its port, before anything expensive is started."""

import errno
import socket
from typing import Any

from proofbox.service.errors import ServiceError

_REASONS = {
    errno.EADDRINUSE: "another program listens there; choose another port with --port or PROOFBOX_PORT",
    errno.EACCES: "this user may not listen there; choose a port from 1024 on with --port or PROOFBOX_PORT",
    errno.EADDRNOTAVAIL: "this machine does not have the address; choose another with --host or PROOFBOX_HOST",
}


class PortUnavailableError(ServiceError):
    """The service cannot listen on its address and port."""


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
