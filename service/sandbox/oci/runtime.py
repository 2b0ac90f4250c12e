"""The OCI runtime as a program: which one, and how it is started."""

import logging
import os
import re
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.public_cause import public_cause
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.oci.transport import read_available

log = logging.getLogger("proofbox.engine")

_KNOWN = ("crun", "runc")  # in this order: the first is the faster one
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_VERSION = re.compile(r"(?P<name>\S+) version \S")
_VERSION_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class Runtime:
    """A program that starts containers.

    Attributes:
        name: what it calls itself, such as ``crun``.
        command: what stands before its own arguments.
        mounts_fd: the mount namespace that it is started in; None for the service's own.
    """

    name: str
    command: tuple[str, ...]
    mounts_fd: int | None = None

    @classmethod
    def found(cls, wanted: str, cgroups: Cgroups) -> "Runtime":
        """The runtime named or at the path ``wanted``, or the first known one if that is empty. Blocks.

        Raises:
            EngineUnavailableError: there is none.
        """
        for program in [wanted] if wanted else _KNOWN:
            path = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_PATH}")
            if path is not None:
                return cls._at(path, cgroups)
        raise EngineUnavailableError(
            f"the engine 'oci' needs an OCI runtime and there is no {wanted or ' and no '.join(_KNOWN)}: "
            "install the package crun or runc, or set PROOFBOX_OCI_RUNTIME to its path"
        )

    @classmethod
    def _at(cls, path: str, cgroups: Cgroups) -> "Runtime":
        try:
            output = subprocess.run(  # noqa: S603 - the operator's choice
                [path, "--version"], capture_output=True, text=True, check=True, timeout=_VERSION_S_MAX
            ).stdout
        except (OSError, subprocess.SubprocessError) as exc:
            raise EngineUnavailableError(f"{path} does not answer as an OCI runtime: {exc}") from exc
        match = _VERSION.match(output)
        if match is None:
            raise EngineUnavailableError(f"{path} does not answer as an OCI runtime: it says no version")
        name = match["name"]
        if name == "crun" and cgroups.is_hybrid:
            # crun refuses to start where version 2 is mounted beside version 1, although it needs no part of it.
            assert cgroups.v2 is not None
            fd = _mounts_without(cgroups.v2)
            inside = ("nsenter", f"--mount=/proc/{os.getpid()}/fd/{fd}", "--", path)
            return cls(name, inside, fd)
        return cls(name, (path,))

    def run(self, place: tuple[Path, Path], container_id: str, stream: socket.socket, timeout_s: float) -> int:
        """Creates and starts a container; the reading end of its standard error.

        ``place`` is the runtime's own folder and the bundle. The container's standard input and output are
        ``stream``; it inherits nothing else. Blocks.

        Raises:
            EngineUnavailableError: the runtime failed; it may have left parts of the container.
        """
        records, bundle = place
        command = [
            *self.command, "--root", str(records),
            "run", "--detach", "--bundle", str(bundle), container_id,
        ]  # fmt: skip
        stderr_fd, their_stderr = os.pipe()
        os.set_blocking(stderr_fd, False)
        try:
            subprocess.run(  # noqa: S603 - every argument is ours
                command,
                stdin=stream.fileno(),
                stdout=stream.fileno(),
                stderr=their_stderr,
                check=True,
                cwd="/",
                env={"PATH": _PATH},
                start_new_session=True,  # a signal to the service's group is not one to its sandboxes
                timeout=timeout_s,
            )
        except (OSError, subprocess.SubprocessError) as exc:
            output = read_available(stderr_fd).decode(errors="replace").strip()
            os.close(stderr_fd)
            log.warning("%s could not start a container: %s", self.name, output or exc)
            cause = public_cause(output or str(exc))
            raise EngineUnavailableError(f"{self.name} could not start a sandbox: {cause}") from exc
        finally:
            os.close(their_stderr)
        return stderr_fd

    def check(self) -> None:
        """Looks whether the programs that start a container are still there.

        Raises:
            EngineUnavailableError: one is gone, or may not be run.
        """
        programs = self.command[-1:] if self.mounts_fd is None else (self.command[0], self.command[-1])
        for program in programs:
            if shutil.which(program, path=_PATH) is None:
                raise EngineUnavailableError(
                    f"the OCI runtime cannot be started: there is no program {Path(program).name}; install it again"
                )

    def close(self) -> None:
        """Lets go of the mount namespace."""
        if self.mounts_fd is not None:
            os.close(self.mounts_fd)


def _mounts_without(hidden: Path) -> int:
    """A descriptor of a mount namespace as this one, but without what is mounted at ``hidden``."""
    script = 'umount "$1" && echo done && read -r _'
    command = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", script, "sh", str(hidden)]
    with subprocess.Popen(  # noqa: S603 - fixed but for a mount point
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"PATH": _PATH}
    ) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != b"done\n":
                raise EngineUnavailableError(
                    f"crun needs a mount namespace without {hidden}, which cannot be made; use runc"
                )
            return os.open(f"/proc/{process.pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            assert process.stdin is not None
            process.stdin.close()
