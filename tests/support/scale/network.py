"""Machines of a test: network namespaces on a bridge of their own, whose links can be cut and slowed.

It needs root, `ip`, `tc` and `nsenter`. The bridge is in a namespace too: no rule of the machine's packet filter
applies to it, and the machine has one new interface, which ends with the network.
"""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

_NAMESPACES = Path("/run/netns")
_OURS = re.compile(r"pbs(\d+)-")
_SUBNETS = range(10, 250)
_HUB = "hub"
_FULL_PACKET_BYTES = 1_600
_QUEUE_S = 30
_END_S = 10.0


class NetworkError(RuntimeError):
    """A command of the network failed."""


class Network:
    """A network of the machine and its hosts; a context manager, which ends all processes in it.

    Attributes:
        address: the machine's own address in it, for servers of the test.
        subnet: all addresses, as ``10.213.n.0/24``.
    """

    def __init__(self) -> None:
        remove_left_networks()
        self._prefix = f"pbs{os.getpid()}-"
        self._link = f"pbs{os.getpid()}"
        self._hosts: dict[str, str] = {}
        self._base = _free_subnet()
        self.address = f"{self._base}.1"
        self.subnet = f"{self._base}.0/24"

    def __enter__(self) -> Self:
        hub = self._namespace(_HUB)
        try:
            run_ip(
                f"netns add {hub}",
                f"link add {self._link} type veth peer name root netns {hub}",
                f"addr add {self.address}/24 dev {self._link}",
                f"link set {self._link} up",
            )
            run_ip(
                "link add bridge type bridge",
                "link set bridge up",
                "link set root master bridge",
                "link set root up",
                "link set lo up",
                namespace=hub,
            )
        except NetworkError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        remove_networks(self._prefix, self._link)

    def add(self, host: str) -> str:
        """Add a host with a link to the bridge; its address."""
        space, hub = self._namespace(host), self._namespace(_HUB)
        address = f"{self._base}.{10 + len(self._hosts)}"
        run_ip(f"netns add {space}", f"-n {hub} link add {host} type veth peer name eth0 netns {space}")
        run_ip(f"link set {host} master bridge", f"link set {host} up", namespace=hub)
        run_ip(f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up", namespace=space)
        self._hosts[host] = address
        return address

    def address_of(self, host: str) -> str:
        """The address of a host."""
        return self._hosts[host]

    def host_of(self, address: str) -> str:
        """The host that has an address; the address itself if none has."""
        return next((host for host, own in self._hosts.items() if own == address), address)

    def command(self, host: str, *words: str) -> list[str]:
        """A command line that runs another one on a host. It becomes that one: the process stays the same.

        `ip netns exec` would also mount a new /sys, without the control groups.
        """
        return ["nsenter", f"--net={_NAMESPACES / self._namespace(host)}", "--", *words]

    # ---- faults

    def cut(self, host: str) -> None:
        """Take the link of a host down: packets are lost, and nobody gets an error at once."""
        run_ip(f"link set {host} down", namespace=self._namespace(_HUB))

    def mend(self, host: str) -> None:
        """Take the link of a host up again, at full speed."""
        hub = self._namespace(_HUB)
        run_ip(f"link set {host} up", namespace=hub)
        subprocess.run(_tc(hub, "del", host), check=False, capture_output=True)

    def slow_down(self, host: str, bits_per_s: int) -> None:
        """Let a link pass so much towards its host; what comes meanwhile waits, so each packet is delayed too.

        A token bucket, for not every kernel has the discipline that only delays (netem).
        """
        shape = ("tbf", "rate", f"{bits_per_s}bit", "burst", str(_FULL_PACKET_BYTES), "latency", f"{_QUEUE_S}s")
        _run([*_tc(self._namespace(_HUB), "replace", host), *shape])

    def connections(self, host: str, port: int) -> dict[str, int]:
        """How many connections a server on a host has from each other host."""
        command = self.command(host, "ss", "-Htn", "state", "established", f"( sport = :{port} )")
        counts: dict[str, int] = {}
        for line in _run(command).splitlines():
            peer = self.host_of(line.split()[-1].rpartition(":")[0])
            counts[peer] = counts.get(peer, 0) + 1
        return counts

    def _namespace(self, host: str) -> str:
        return f"{self._prefix}{host}"


def remove_left_networks() -> None:
    """Remove the networks of test processes that have ended without doing so."""
    if not _NAMESPACES.exists():
        return
    for number in {found[1] for each in _NAMESPACES.iterdir() if (found := _OURS.match(each.name))}:
        if not Path(f"/proc/{number}").exists():
            remove_networks(f"pbs{number}-", f"pbs{number}")


def remove_networks(prefix: str, link: str) -> None:
    """End all processes in the namespaces with a prefix, and remove these and a link; all that can be removed."""
    names = [each.name for each in _NAMESPACES.iterdir() if each.name.startswith(prefix)]
    deadline = time.monotonic() + _END_S
    while pids := [pid for name in names for pid in _pids(name)]:
        if time.monotonic() > deadline:
            break
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    subprocess.run(["ip", "link", "del", link], check=False, capture_output=True)
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def run_ip(*lines: str, namespace: str = "") -> None:
    """Run commands of `ip`, one after the other, in a namespace.

    Raises:
        NetworkError: one failed.
    """
    for line in lines:
        _run(["ip", *(["-n", namespace] if namespace else []), *line.split()])


def _tc(namespace: str, action: str, link: str) -> list[str]:
    return ["tc", "-n", namespace, "qdisc", action, "dev", link, "root"]


def _pids(namespace: str) -> list[int]:
    found = subprocess.run(["ip", "netns", "pids", namespace], check=False, capture_output=True, text=True)
    return [int(pid) for pid in found.stdout.split()]


def _run(command: Sequence[str]) -> str:
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    if ran.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {ran.stderr.strip()}")
    return ran.stdout


def _free_subnet() -> str:
    """The first three numbers of a network that the machine has no address in."""
    used = _run(["ip", "-4", "-o", "addr"])
    first = _SUBNETS.start + os.getpid() % len(_SUBNETS)
    candidates = (*range(first, _SUBNETS.stop), *_SUBNETS)
    return next(base for n in candidates if f"{(base := f'10.213.{n}')}." not in used)
