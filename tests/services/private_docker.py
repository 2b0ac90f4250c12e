"""A Docker engine of the tests' own, which they may restart and kill; the machine's engine is not touched.

    python -m tests.services.private_docker --start [--remapped] [--live-restore]   prints its DOCKER_HOST
    python -m tests.services.private_docker --print-host [--remapped]
    python -m tests.services.private_docker --stop | --clean    of all that were started here
    python -m tests.services.private_docker --run COMMAND ...   with DOCKER_HOST set, on an engine for it alone

It needs root, and the programs that `tests/services/docker.sh --start` installs. It has a containerd, a socket, a
data folder and control groups of its own, no bridge and no rule in a packet filter. Images stay in the data folder,
so only the first start after a build copies the sandbox image, which takes some ten seconds.
"""

import argparse
import contextlib
import fcntl
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from proofbox.service.app.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]
DEFAULT_IMAGE = Settings().sandbox_image
READERS_IMAGE = "proofbox-readers:latest"
CONTAINERD, DOCKERD = "containerd", "dockerd"
GVISOR = {"path": "/usr/bin/runsc", "runtimeArgs": ["--platform=ptrace", "--network=none", "--oci-seccomp"]}
_START_S = 60
_TERM_S = 20
_CGROUP_ROOT = Path("/sys/fs/cgroup")


class PrivateDocker:
    """One engine; two of different names share nothing.

    Attributes:
        host: what DOCKER_HOST, or the setting ``engine_host``, is to be.
        live_restore: whether containers outlive the daemon; to be changed while it is down.
        remapped: whether root inside of containers is nobody outside of them.
    """

    def __init__(self, name: str = "docker", *, remapped: bool = False, live_restore: bool = False) -> None:
        self.remapped = remapped
        self.live_restore = live_restore
        name += "-remapped" if remapped else ""
        self._short = f"proofbox-{name}-{hashlib.sha256(bytes(REPOSITORY)).hexdigest()[:8]}"
        self._run = Path("/run") / self._short
        self._data = _data_folder(name, self._short)
        self._cgroup = f"/{self._short}"
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._lock_fd = -1
        self.host = f"unix://{self._run}/docker.sock"

    # ---- its life

    def start(self, image: str = DEFAULT_IMAGE) -> "PrivateDocker":
        """Starts both daemons, and copies an image from the machine's engine unless it is there."""
        self._data.mkdir(parents=True, exist_ok=True, mode=0o711)
        self._lock()
        self._end()  # what a run that was killed has left
        self._run.mkdir(mode=0o711, exist_ok=True)
        self.start_containerd()
        self.start_dockerd()
        if left := self.docker("ps", "--all", "--quiet").stdout.split():
            self.docker("rm", "--force", *left)
        self.copy(image)
        return self

    def stop(self) -> None:
        """Ends everything and leaves nothing but the data folder, whatever state it is in.

        Raises:
            RuntimeError: it is the engine of another test run, which goes on.
        """
        if not self._data.exists():
            return
        self._lock()
        self._end()
        self._unlock()

    def clean(self) -> None:
        """Removes the data folder too."""
        self.stop()
        shutil.rmtree(self._data, ignore_errors=True)

    def start_containerd(self) -> None:
        config = self._run / "containerd.toml"
        config.write_text(
            f'version = 2\nroot = "{self._data}/containerd"\nstate = "{self._run}/containerd"\n'
            f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "{self._run}/containerd.sock"\n'
        )
        self._launch(CONTAINERD, "--config", str(config))
        _wait_for(lambda: self._listens("containerd.sock"), "containerd does not listen", self._log(CONTAINERD))

    def start_dockerd(self) -> None:
        """Starts the daemon, or another one after the first has gone."""
        config = self._run / "daemon.json"
        settings = {
            "runtimes": {"runsc": GVISOR},
            "live-restore": self.live_restore,
            "data-root": f"{self._data}/docker",
            "exec-root": f"{self._run}/docker",
            "containerd": f"{self._run}/containerd.sock",
            "bridge": "none",
            "iptables": False,
            "ip6tables": False,
            "exec-opts": ["native.cgroupdriver=cgroupfs"],
            "cgroup-parent": self._cgroup,
        }
        if self.remapped:
            settings["userns-remap"] = "default"
        config.write_text(json.dumps(settings))
        for left in ("docker.sock", "docker.pid"):  # by one that was killed
            (self._run / left).unlink(missing_ok=True)
        self._launch(DOCKERD, "--config-file", str(config), "-H", self.host, "--pidfile", f"{self._run}/docker.pid")
        _wait_for(self.answers, "dockerd does not answer", self._log(DOCKERD))

    def restart_dockerd(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        self.end(DOCKERD, with_signal)
        self.start_dockerd()

    def end(self, program: str, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """Ends one of the daemons by a signal, and waits until it is gone."""
        pid = self.pid(program)
        if pid is None:
            return
        os.kill(pid, with_signal)
        deadline = time.monotonic() + _TERM_S
        while self.pid(program) is not None:
            if time.monotonic() > deadline:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        if child := self._children.pop(program, None):
            child.wait()

    # ---- what it is doing

    def pid(self, program: str) -> int | None:
        """The process of a daemon; None when it does not run."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self._run / f"{program}.pid").read_text())
            told = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
            if str(self._run) in told and _state_of(pid) != "Z":
                return pid
        return None

    def answers(self) -> bool:
        return self.docker("version", check=False).returncode == 0

    def shims(self) -> dict[str, int]:
        """The shim of each container, by the container's id."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if "containerd-shim" in words[0] and f"{self._run}/containerd.sock" in words:
                    found[words[words.index("-id") + 1]] = int(process.name)
        return found

    def docker(
        self, *arguments: str, check: bool = True, stdin: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command of the client, on this engine."""
        return subprocess.run(
            ["docker", *arguments],
            env={**os.environ, "DOCKER_HOST": self.host},
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            capture_output=True,
            text=True,
            check=check,
        )

    # ---- beneath

    def _launch(self, program: str, *arguments: str) -> None:
        # A daemon that is to have no bridge removes docker0, so it gets a network of its own, where there is none.
        alone = ["unshare", "--net"] if program == DOCKERD else []
        with self._log(program).open("ab") as log:
            child = subprocess.Popen(
                [*alone, program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self._run / f"{program}.pid").write_text(str(child.pid))
        self._children[program] = child

    def _log(self, program: str) -> Path:
        return self._data / f"{program}.log"

    def _listens(self, socket_name: str) -> bool:
        return f"{self._run}/{socket_name}\n" in Path("/proc/net/unix").read_text()

    def copy(self, image: str) -> None:
        """Brings an image in, unless the one that came last had the same id in the other engine."""
        wanted = _docker_out("image", "inspect", "--format", "{{.Id}}", image)
        mark = self._data / f"id-of-{image.partition(':')[0]}"
        there = self.docker("image", "inspect", image, check=False).returncode == 0
        if there and mark.exists() and mark.read_text() == wanted:
            return
        with subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE) as saved:
            assert saved.stdout is not None
            self.docker("load", stdin=saved.stdout.fileno())
        mark.write_text(wanted)
        self.docker("image", "prune", "--force")

    def _end(self) -> None:
        self.end(DOCKERD)
        for shim in self.shims().values():
            for pid in [shim, *_descendants(shim)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.end(CONTAINERD)
        for path in _mount_points(self._run, self._data):
            subprocess.run(["umount", "--lazy", path], check=False)
        # Not by a pattern: groups of other tests come and go while it is looked for.
        for folder, names, _ in os.walk(_CGROUP_ROOT):
            if self._short in names:
                _remove_group(Path(folder) / self._short)
        shutil.rmtree(self._run, ignore_errors=True)

    def _lock(self) -> None:
        if self._lock_fd >= 0:
            return
        self._lock_fd = os.open(self._data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._unlock()
            raise RuntimeError(f"another test run uses the engine of {self._data}: wait for it to end") from None

    def _unlock(self) -> None:
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def _data_folder(name: str, short: str) -> Path:
    """Below the checkout, or elsewhere if others than its owner cannot go there: root of a container is another."""
    wanted = REPOSITORY / ".services" / name
    parents = [folder for folder in wanted.parents if folder.exists()]
    reachable = all(folder.stat().st_mode & 0o001 for folder in parents)
    return wanted if reachable else Path("/var/tmp") / short


def _docker_out(*arguments: str) -> str:
    return subprocess.run(["docker", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def _wait_for(is_so, complaint: str, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{complaint}; see {log}")
        time.sleep(0.05)


def _state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


def _descendants(pid: int) -> list[int]:
    children = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (process / "stat").read_text().rpartition(") ")[2].split()
            children.setdefault(int(fields[1]), []).append(int(process.name))
    found, left = [], [pid]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


def _mount_points(*tops: Path) -> list[str]:
    """What is mounted below folders, the innermost first."""
    rows = Path("/proc/self/mountinfo").read_text().splitlines()
    paths = [row.split()[4] for row in rows]
    return [path for path in reversed(paths) if any(path.startswith(f"{top}/") for top in tops)]


def _remove_group(group: Path) -> None:
    """Removes a control group and those below it, once what was killed in them has gone."""
    deadline = time.monotonic() + _TERM_S
    for folder in sorted((f for f in [group, *group.rglob("*")] if f.is_dir()), key=lambda f: -len(f.parts)):
        while folder.exists() and time.monotonic() < deadline:
            try:
                folder.rmdir()
            except OSError:
                time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description="A Docker engine of the tests' own.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--run", nargs=argparse.REMAINDER, metavar="COMMAND")
    for mode in ("start", "stop", "clean", "print-host"):
        what.add_argument(f"--{mode}", action="store_const", dest="mode", const=mode)
    parser.add_argument("--remapped", action="store_true")
    parser.add_argument("--live-restore", action="store_true")
    chosen = parser.parse_args()
    if chosen.run:
        return _run(chosen.run, PrivateDocker("docker-run", remapped=chosen.remapped))
    if chosen.mode in ("stop", "clean"):
        for name, remapped in itertools.product(("docker", "docker-run"), (False, True)):
            getattr(PrivateDocker(name, remapped=remapped), chosen.mode)()
        return 0
    engine = PrivateDocker(remapped=chosen.remapped, live_restore=chosen.live_restore)
    if chosen.mode == "start":
        engine.start()
    sys.stdout.write(f"{engine.host}\n")
    return 0


def _run(command: list[str], engine: PrivateDocker) -> int:
    try:
        engine.start()
        engine.copy(READERS_IMAGE)
        return subprocess.run(command, env={**os.environ, "DOCKER_HOST": engine.host}, check=False).returncode
    finally:
        engine.stop()


if __name__ == "__main__":
    sys.exit(main())
