"""One shell for the commands of a page: in a copy of the checkout, in a network of its own."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.docs_commands.page_blocks import ROOT, Block, differing_line

PAGE_S = 240
_STOP_S = 30
_PORT = 8080
_GET_FLAGS, _SET_FLAGS = 0x8913, 0x8914
_NEW_NETWORK = f"""
import fcntl, socket, struct, sys
with socket.socket() as s:
    flags = struct.unpack("16sH", fcntl.ioctl(s, {_GET_FLAGS}, struct.pack("16sH14x", b"lo", 0))[:18])[1]
    fcntl.ioctl(s, {_SET_FLAGS}, struct.pack("16sH14x", b"lo", flags | 1))
print("up", flush=True)
sys.stdin.read()  # until the tests end
"""


class CommandFailedError(Exception):
    """A command of a page failed, or printed something else than the page shows."""


class Network:
    """Networks with a loopback interface alone, in which port 8080 is free; without root, the machine's network."""

    def __init__(self, process: "subprocess.Popen[str] | None") -> None:
        self._process = process

    @classmethod
    @contextlib.contextmanager
    def open(cls) -> Iterator["Network"]:
        """Make a network, and remove it at the end."""
        if os.geteuid() != 0:
            yield cls(None)
            return
        command = ["unshare", "--net", sys.executable, "-c", _NEW_NETWORK]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            try:
                yield cls(process)
            finally:
                process.kill()

    def inside(self, *command: str) -> list[str]:
        """A command that runs in the network."""
        if self._process is None:
            return list(command)
        return ["nsenter", f"--net=/proc/{self._process.pid}/ns/net", *command]


def copy_checkout(folder: Path) -> Path:
    """Copy the files of the checkout that git does not ignore, and link its Python environment."""
    copy = folder / "proofbox"
    copy.mkdir()
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True)
    there = [name for name in listed.stdout.split("\0") if name and os.path.lexists(ROOT / name)]
    # One program for all files: there are thousands, and a copy for each page.
    copying = ["xargs", "--null", "cp", "--archive", "--parents", "--target-directory", str(copy)]
    subprocess.run(copying, cwd=ROOT, input="\0".join(there), text=True, check=True)
    environment = (ROOT / ".venv").resolve()
    assert (environment / ".done").exists(), "make venv first"
    (copy / ".venv").symlink_to(environment)
    # Older than the environment, or make would install the copy into it.
    for name in ("requirements.lock", "pyproject.toml"):
        os.utime(copy / name, (0, 0))
    return copy


def page_environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a page's shell: no settings, the program on the path, curl fails where HTTP does."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / ".curlrc").write_text("fail-with-body\n")
    kept = {
        name: value for name, value in os.environ.items() if not name.upper().startswith(("PROOFBOX_", "PYTEST"))
    }
    path = f"{ROOT / '.venv' / 'bin'}:{kept['PATH']}"
    # Small, so that the shell of a page starts a service quickly.
    quick = {"PROOFBOX_POOL_SIZE": "1", "PROOFBOX_IMPORT_ONCE": "off"}
    sizes = quick | {"PYTHONPATH": str(ROOT), "NO_COLOR": "1", "XDG_CONFIG_HOME": str(home)}
    return kept | {"HOME": str(home), "PATH": path} | sizes | more


class PageSession:
    """Runs blocks in one shell: what a block exports or changes into holds for the next."""

    def __init__(self, folder: Path, network: Network, environment: dict[str, str]) -> None:
        self._folder = folder
        self._network = network
        self._environment = environment
        self._checkout = copy_checkout(folder)

    def run(self, blocks: list[Block]) -> None:
        """Run blocks in order.

        Raises:
            CommandFailedError: one failed; the message has the page, the line and the output.
        """
        script = "set -eo pipefail\n"
        for number, block in enumerate(blocks):
            (self._folder / f"{number}.sh").write_text(self._shell_text(block))
            files = (shlex.quote(str(self._folder / f"{number}.{kind}")) for kind in ("sh", "out"))
            script += "source {} >{} 2>&1 </dev/null\n".format(*files)
            script += f"echo ended >{shlex.quote(str(self._folder / f'{number}.end'))}\n"
        (self._folder / "page.sh").write_text(script)
        problem = self._run_script()
        for number, block in enumerate(blocks):
            output = self._folder / f"{number}.out"
            printed = output.read_text(errors="replace") if output.exists() else ""
            where = f"{block.page}:{block.line}\n{block.text}"
            if not (self._folder / f"{number}.end").exists():
                raise CommandFailedError(f"{where}{problem}; printed was:\n{printed}")
            if block.expected is not None and (differs := differing_line(block.expected, printed.splitlines())):
                raise CommandFailedError(f"{where}{differs}")

    def _shell_text(self, block: Block) -> str:
        if not block.is_python:
            return block.text
        program = self._folder / f"{block.line}.py"
        program.write_text(block.text)
        return f"python {shlex.quote(str(program))}\n"

    def _run_script(self) -> str:
        """Run the script, end all that it left running; how it ended."""
        command = self._network.inside("bash", str(self._folder / "page.sh"))
        process = subprocess.Popen(
            command,
            cwd=self._checkout,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return f"exit status {process.wait(PAGE_S)}"
        except subprocess.TimeoutExpired:
            return f"still running after {PAGE_S} s"
        finally:
            end_group(process.pid)


def end_group(group: int) -> None:
    """End the processes of a group: a service needs a moment to remove its containers."""
    deadline = time.monotonic() + _STOP_S
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)
        while _has_running(group) and time.monotonic() < deadline:
            time.sleep(0.05)


def _has_running(group: int) -> bool:
    """Whether a process of a group runs; one that nobody has waited for does not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of_group = stat.read_text().rpartition(")")[2].split()[:3]
            if int(of_group) == group and state != "Z":
                return True
    return False


@contextlib.contextmanager
def running_service(folder: Path, network: Network) -> Iterator[Path]:
    """A service at 127.0.0.1:8080 of a network; its data folder."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "data"
    environment = page_environment(folder, PROOFBOX_DATA_DIR=str(data))
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen(
            network.inside("proofbox", "serve"),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait = ["curl", "-sf", "--retry", "60", "--retry-delay", "1", "--retry-all-errors", "-o", os.devnull]
        ready = subprocess.run([*network.inside(*wait), f"http://127.0.0.1:{_PORT}/readyz"], check=False)
        assert (ready.returncode, process.poll()) == (0, None), (folder / "service.log").read_text()
        yield data
    finally:
        end_group(process.pid)
        process.wait()
