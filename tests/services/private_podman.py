"""A Podman engine of the tests' own: Debian's podman with its own storage and socket.

    python -m tests.services.private_podman --run COMMAND ...   with DOCKER_HOST set

It needs root. What is missing is installed from the distribution. The sandbox image is copied from the machine's
engine unless it is there.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from proofbox.service.app.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]
IMAGE = Settings().sandbox_image
_PACKAGES = ("podman", "crun", "runc")
_START_S = 60


def install() -> None:
    """Installs what is missing."""
    if all(shutil.which(name) for name in _PACKAGES):
        return
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "--yes", "--no-install-recommends", *_PACKAGES]):
        subprocess.run(["apt-get", "-qq", *command], check=True, env=environment, stdout=subprocess.DEVNULL)


def is_hybrid() -> bool:
    """Whether the machine has both versions of control groups."""
    mounts = Path("/proc/mounts").read_text(encoding="utf-8")
    return " cgroup2 " in mounts and " cgroup " in mounts


class PrivatePodman:
    """One engine.

    Attributes:
        host: what DOCKER_HOST is to be.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._run = Path("/run") / f"proofbox-podman-{os.getpid()}"
        self._socket = self._run / "podman.sock"
        self.host = f"unix://{self._socket}"

    def command(self, *arguments: str) -> list[str]:
        """A command of this engine."""
        runtime = ["--runtime", str(shutil.which("runc"))] if is_hybrid() else []
        own = ["--root", str(self._folder / "root"), "--runroot", str(self._run / "run")]
        return [
            *("podman", *runtime, *own, "--storage-driver", "overlay"),
            *("--cgroup-manager", "cgroupfs", "--events-backend", "file", *arguments),
        ]

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Serves its API inside the block."""
        self._run.mkdir(mode=0o711)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._copy_image()
        with (self._run / "log").open("wb") as log:
            service = subprocess.Popen(
                self.command("system", "service", "--time=0", self.host),
                stdout=log,
                stderr=log,
                cwd=self._run,  # where conmon leaves a file for a container that ran out of memory
            )
        try:
            self._wait(service)
            yield
        finally:
            subprocess.run(self.command("rm", "--all", "--force"), check=False, capture_output=True)
            service.terminate()
            service.wait(_START_S)
            shutil.rmtree(self._run, ignore_errors=True)

    def _copy_image(self) -> None:
        wanted = self._id(["docker", "image", "inspect", "--format", "{{.Id}}", IMAGE]).removeprefix("sha256:")
        if wanted == self._id(self.command("image", "inspect", "--format", "{{.Id}}", IMAGE)):
            return
        with subprocess.Popen(["docker", "save", IMAGE], stdout=subprocess.PIPE) as saving:
            subprocess.run(self.command("load", "--quiet"), stdin=saving.stdout, check=True)

    def _id(self, command: list[str]) -> str:
        return subprocess.run(command, check=False, capture_output=True, text=True).stdout.strip()

    def _wait(self, service: "subprocess.Popen[bytes]") -> None:
        deadline = time.monotonic() + _START_S
        while not self._socket.exists():
            if service.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self._run / "log").read_text(encoding="utf-8"))
            time.sleep(0.1)


def main() -> int:
    """Runs the command of the arguments; its exit status."""
    _, option, *command = sys.argv
    assert option == "--run", __doc__
    install()
    engine = PrivatePodman(REPOSITORY / ".services" / "podman")
    with engine.running():
        environment = {**os.environ, "DOCKER_HOST": engine.host}
        return subprocess.run(command, check=False, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
