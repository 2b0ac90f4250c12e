"""Zygotes in containers of a Docker engine on this machine."""

import contextlib
import itertools
import os
import re
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.docker.client import EngineClient
from proofbox.service.sandbox.docker.container_config import (
    LABEL_BOOT,
    LABEL_ZYGOTE,
    ContainerSettings,
    zygote_container_config,
)
from proofbox.service.sandbox.docker.direct_socket import DirectSocketError, take_socket_now
from proofbox.service.sandbox.zygotes.manager import Kind
from proofbox.service.sandbox.zygotes.settings import zygote_settings
from proofbox.service.sandbox.zygotes.zygote import Zygote

_READY_WITHIN_S = 60.0
_SOCKET_WITHIN_S = 20.0
_RUNTIMES = frozenset({"runc", "crun", "io.containerd.runc.v2"})
_CAPABILITIES_NEEDED = {"SYS_ADMIN": 21, "SYS_PTRACE": 19}


@dataclass(frozen=True, slots=True)
class DockerZygotes:
    """Starts zygotes of one process of the service.

    Attributes:
        client: the engine.
        settings: what their containers have in common with sandboxes.
        seccomp: the filter of their forks, as the kernel takes it.
    """

    client: EngineClient
    settings: ContainerSettings
    seccomp: bytes
    _count: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def start(self, kind: Kind) -> Zygote:
        """Starts one, and blocks until it is ready.

        Raises:
            NotForkedError: it cannot be started.
        """
        name = f"proofbox-zygote-{self.settings.boot_id}-{next(self._count)}"
        try:
            config = zygote_container_config(self.settings, kind)
            container_id, first_process = self.client.start_now(config, name)
        except EngineUnavailableError as exc:
            raise NotForkedError(str(exc)) from exc

        def end() -> None:
            with contextlib.suppress(EngineUnavailableError):  # it ends by itself when we hang up
                self.client.remove_now(container_id)

        try:
            connection = take_socket_now(first_process, container_id, socket.SOCK_SEQPACKET, _SOCKET_WITHIN_S)
        except DirectSocketError as exc:
            end()
            raise NotForkedError(str(exc)) from exc
        zygote = Zygote(connection, end)
        try:
            zygote.prepare(zygote_settings(kind, self.seccomp), _READY_WITHIN_S)
        except NotForkedError:
            zygote.end()
            raise
        return zygote

    def remove_left(self) -> None:
        """Removes those of earlier processes of the service, which end by themselves when their service does.

        Raises:
            NotForkedError: the engine does not do it.
        """
        try:
            for row in self.client.labelled_now(LABEL_ZYGOTE, self.settings.service_name):
                if row["Labels"].get(LABEL_BOOT) != self.settings.boot_id:
                    self.client.remove_now(str(row["Id"]))
        except EngineUnavailableError as exc:
            raise NotForkedError(str(exc)) from exc


def check_machine(client: EngineClient, runtime: str) -> None:
    """Whether processes of this service can be forked into containers of the engine.

    Raises:
        NotForkedError: why not.
    """
    if sys.platform != "linux" or not client.is_on_this_machine:
        raise NotForkedError("the engine's containers are not on this machine")
    if runtime not in _RUNTIMES:
        raise NotForkedError(f"nothing can be forked into containers of the runtime {runtime}")
    match = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
    held = int(match[1], 16) if match else 0
    if os.geteuid() != 0 or not all(held >> bit & 1 for bit in _CAPABILITIES_NEEDED.values()):
        raise NotForkedError("the service is not root with CAP_SYS_ADMIN and CAP_SYS_PTRACE")
