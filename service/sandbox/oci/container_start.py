"""Starting one container: its bundle on the disk, its stream, the runtime."""

import os
import socket
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from proofbox.service.sandbox.oci.container_state import ContainerState
from proofbox.service.sandbox.oci.runtime import Runtime
from proofbox.service.sandbox.service_cgroup import ServiceCgroup


@dataclass(frozen=True, slots=True)
class Starter:
    """Starts containers of one service.

    Attributes:
        runtime: the program that starts them.
        place: where they are.
        together: what bounds all of them together.
        start_s: how long the runtime may take for one.
    """

    runtime: Runtime
    place: ContainerState
    together: ServiceCgroup
    start_s: float

    def run(
        self, container_id: str, config: dict[str, Any], kind: socket.SocketKind = socket.SOCK_STREAM
    ) -> tuple[socket.socket, int]:
        """Starts a container of this configuration, and blocks meanwhile.

        Gives our end of the socket that is its standard input and output, and the reading end of its stderr.

        Raises:
            EngineUnavailableError: the runtime failed; no part of the container is left.
            OSError: a folder cannot be written, or what the runtime left does not go.
        """
        place = self.place
        stderr_fd = None
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        try:
            with theirs:
                # Each time: the cleanup process of an earlier process may just have removed them.
                for folder in (place.folder, place.records, place.bundles):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self.together.keep()
                bundle = place.bundle(container_id)
                bundle.mkdir(mode=0o700)
                (bundle / "config.json").write_bytes(to_json(config))
                stderr_fd = self.runtime.run((place.records, bundle), container_id, theirs, self.start_s)
                place.cgroups.bound_tcp(place.cgroup_of(container_id))
        except BaseException:
            ours.close()
            if stderr_fd is not None:
                os.close(stderr_fd)
            place.remove(container_id)
            raise
        return ours, stderr_fd
