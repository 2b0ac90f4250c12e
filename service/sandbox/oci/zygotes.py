"""Zygotes in containers that an OCI runtime starts, on the same unpacked image as sandboxes."""

import itertools
import os
import socket
from dataclasses import dataclass, field

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.oci.bundle import BundleSettings, zygote_config
from proofbox.service.sandbox.oci.container_start import Starter
from proofbox.service.sandbox.oci.container_state import boot_of
from proofbox.service.sandbox.oci.transport import read_available
from proofbox.service.sandbox.zygotes.manager import Kind
from proofbox.service.sandbox.zygotes.settings import zygote_settings
from proofbox.service.sandbox.zygotes.zygote import Zygote

_READY_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class OciZygotes:
    """Starts zygotes of one process of the service.

    Attributes:
        starter: starts their containers.
        bundle: what these have in common with sandboxes.
        boot_id: this process of the service.
        seccomp: the filter of their forks, as the kernel takes it.
    """

    starter: Starter
    bundle: BundleSettings
    boot_id: str
    seccomp: bytes
    _count: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    def start(self, kind: Kind) -> Zygote:
        """Starts one, and blocks until it is ready.

        Raises:
            NotForkedError: it cannot be started.
        """
        place = self.starter.place
        container_id = f"zygote-{self.boot_id}-{next(self._count)}"
        config = zygote_config(self.bundle, kind, place.cgroup_of(container_id))
        try:
            connection, stderr_fd = self.starter.run(container_id, config, socket.SOCK_SEQPACKET)
        except (EngineUnavailableError, OSError) as exc:
            raise NotForkedError(str(exc)) from exc

        def end() -> None:
            os.close(stderr_fd)
            place.remove(container_id)

        zygote = Zygote(connection, end)
        try:
            zygote.prepare(zygote_settings(kind, self.seccomp), _READY_WITHIN_S)
        except NotForkedError as exc:
            lines = read_available(stderr_fd).decode(errors="replace").strip().splitlines()
            zygote.end()
            raise NotForkedError(f"{exc}: {lines[-1]}" if lines else str(exc)) from exc
        return zygote

    def remove_left(self) -> None:
        """Removes those of earlier processes of the service: they end by themselves.

        Where the cleanup process died too, something is left.

        Raises:
            NotForkedError: one does not go.
        """
        place = self.starter.place
        try:
            for container_id in place.zygotes():
                if boot_of(container_id) != self.boot_id:
                    place.remove(container_id)
        except OSError as exc:
            raise NotForkedError(f"a zygote of an earlier process does not end: {exc}") from exc
