"""Ports of this machine for servers of the tests, chosen by their scripts before a start."""

import random
import socket
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_TRIES = 100
_RANGE_FIRST, _RANGE_END_MIN = 10_000, 20_000


def choose_ports(names: Iterable[str], old: Mapping[str, str]) -> dict[str, int]:
    """A free port on loopback for each name; the old one, unless another program has taken it.

    Ports come from below the range that the kernel gives to clients: a connection of another test must not take one
    between this choice and the server's start.
    """
    held: list[socket.socket] = []  # until all are chosen, so that no port is chosen twice
    try:
        return {name: _choose_one(int(old.get(name, 0)), held) for name in names}
    finally:
        for each in held:
            each.close()


def read_settings(file: Path) -> dict[str, str]:
    """The lines ``NAME=value`` of a file; none if it does not exist."""
    return dict(line.split("=", 1) for line in file.read_text().split()) if file.exists() else {}


def _choose_one(old: int, held: list[socket.socket]) -> int:
    range_end = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    others = random.sample(range(_RANGE_FIRST, max(range_end, _RANGE_END_MIN)), _TRIES)
    for port in (old, *others) if old else others:
        held.append(socket.socket())
        try:
            held[-1].bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
    sys.exit("no port is free")
